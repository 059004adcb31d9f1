"""What the README and the examples say is run."""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from whet.core import Split
from whet.training import config_from, load_config, prepare, read_report

ROOT = Path(__file__).resolve().parents[1]
README = (ROOT / "README.md").read_text(encoding="utf-8")
EXAMPLES = sorted(path.parent.name for path in (ROOT / "examples").glob("*/whet.toml"))


def blocks(language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```", README, re.DOTALL | re.MULTILINE)


def whet(*arguments: str, cwd: Path) -> str:
    done = subprocess.run(
        [sys.executable, "-m", "whet", *arguments],
        cwd=cwd,
        env={**os.environ, "NO_COLOR": "1"},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.mark.slow
def test_the_commands_of_the_readme_work_in_the_order_in_which_they_stand(tmp_path: Path) -> None:
    folder = tmp_path
    commands = [line.partition("#")[0].strip() for line in blocks("sh")[1].splitlines()]
    assert commands[0].startswith("whet init")
    for command in filter(None, commands):
        name, *arguments = shlex.split(command)
        if name == "cd":
            folder = folder / arguments[0]
        else:
            assert name == "whet"
            whet(*arguments, cwd=folder)
    assert (folder / "runs" / "run-1" / "best" / "SKILL.md").exists()


def test_the_first_commands_of_the_readme_are_targets_of_the_makefile() -> None:
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    named = re.findall(r"^make (\w+)", blocks("sh")[0], re.MULTILINE)
    assert named == ["demo", "test"]
    assert all(re.search(rf"^{name}:", makefile, re.MULTILINE) for name in named)


@pytest.mark.parametrize("text", blocks("toml"))
def test_the_settings_of_the_readme_exist(text: str) -> None:
    base = {"world": {"use": "jsonl"}, "target": {"model": "openai/x"}}
    assert config_from({**base, **tomllib.loads(text)}).target.model


def test_links_of_the_readme_lead_somewhere() -> None:
    for target in re.findall(r"\]\(([^)#:]+)\)", README):
        assert (ROOT / target).exists(), target


@pytest.mark.parametrize("file", sorted((ROOT / "examples" / "drills").glob("[!b]*.toml")), ids=lambda file: file.stem)
def test_every_drill_is_a_project_whose_tasks_are_sound(file: Path) -> None:
    project = prepare(load_config(file), file.parent, agent=False)
    assert project.world.name == file.stem
    assert len(project.tasks(Split.CONFIRM)) == 60


@pytest.mark.slow
@pytest.mark.parametrize("name", EXAMPLES)
def test_every_example_runs_end_to_end_and_learns(name: str, tmp_path: Path) -> None:
    project = tmp_path / name
    shutil.copytree(ROOT / "examples" / name, project, ignore=shutil.ignore_patterns("runs", "__pycache__"))
    whet("train", "--plain", cwd=project)
    report = read_report(project / "runs" / "run-1")
    assert report is not None
    assert not report.stopped
    assert report.best != report.start
    assert report.comparison is not None
    assert report.comparison.gain > 0


def test_every_example_is_named_in_their_list() -> None:
    listed = (ROOT / "examples" / "README.md").read_text(encoding="utf-8")
    assert EXAMPLES
    assert all(f"[{name}]({name})" in listed for name in EXAMPLES)
