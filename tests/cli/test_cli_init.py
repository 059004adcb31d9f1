"""`whet init` writes a project that works, and never over anything."""

from __future__ import annotations

import json
from pathlib import Path

import house_tasks
from calling_whet import Whet

from whet.cli.init import FILES
from whet.core import Split
from whet.training import load_config, prepare


def test_init_writes_every_file_and_says_what_is_next(whet: Whet, tmp_path: Path) -> None:
    done = whet("init", tmp_path / "new")
    assert done.exit_code == 0
    assert all((tmp_path / "new" / name).is_file() for name in FILES)
    assert f"  cd {tmp_path / 'new'}\n  whet train\n  whet show\n" in done.stdout


def test_init_as_json_names_the_files(whet: Whet, tmp_path: Path) -> None:
    told = json.loads(whet("init", tmp_path, "--json").stdout)
    assert [Path(name).relative_to(tmp_path).as_posix() for name in told["files"]] == list(FILES)


def test_the_project_is_sound_and_its_tasks_are_split_80_40_100(whet: Whet, project: Path) -> None:
    loaded = prepare(load_config(project), project)
    assert [len(loaded.tasks(split)) for split in (Split.TRAIN, Split.SELECTION, Split.TEST)] == [80, 40, 100]
    assert whet("world", "check", project / "whet.toml").exit_code == 0


def test_shipped_tasks_are_what_the_seed_makes_and_all_distinct() -> None:
    made = house_tasks.splits()
    for split, rows in made.items():
        assert (house_tasks.TASKS / f"{split}.jsonl").read_text() == house_tasks.as_lines(rows)
    questions = [row["question"] for rows in made.values() for row in rows]
    assert len(set(questions)) == len(questions) == 220


def test_init_refuses_what_is_there_names_it_and_writes_nothing(whet: Whet, tmp_path: Path) -> None:
    (tmp_path / "skill").mkdir()
    (tmp_path / "skill/SKILL.md").write_text("mine")
    done = whet("init", tmp_path)
    assert done.exit_code == 2
    assert f"{tmp_path / 'skill/SKILL.md'} exists already" in done.stderr
    assert [path.name for path in tmp_path.rglob("*")] == ["skill", "SKILL.md"]
    assert (tmp_path / "skill/SKILL.md").read_text() == "mine"


def test_init_fills_an_empty_file(whet: Whet, tmp_path: Path) -> None:
    (tmp_path / "README.md").touch()
    assert whet("init", tmp_path).exit_code == 0
    assert (tmp_path / "README.md").read_text()


def test_init_into_a_file_is_refused(whet: Whet, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("mine")
    done = whet("init", tmp_path / "file")
    assert done.exit_code == 2
    assert "is not a folder" in done.stderr
