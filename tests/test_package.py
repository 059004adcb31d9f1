"""The wheel holds all it needs: installed into an empty environment, it works from another folder."""

from __future__ import annotations

import os
import subprocess
import sys
import venv
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]


def run(*command: str | Path, cwd: Path) -> str:
    environment = {key: value for key, value in os.environ.items() if not key.startswith(("PYTHON", "VIRTUAL_ENV"))}
    done = subprocess.run([str(part) for part in command], cwd=cwd, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, f"{command}\n{done.stdout}\n{done.stderr}"
    return done.stdout


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_the_wheel_works_in_an_empty_environment_from_another_folder(tmp_path: Path) -> None:
    pip = (sys.executable, "-m", "pip", "--disable-pip-version-check")
    run(
        *pip,
        "wheel",
        "--quiet",
        "--no-deps",
        "--no-build-isolation",
        "--wheel-dir",
        tmp_path / "wheel",
        ROOT,
        cwd=tmp_path,
    )
    (wheel,) = (tmp_path / "wheel").glob("whet-*.whl")
    venv.create(tmp_path / "venv", with_pip=True)
    python = tmp_path / "venv" / "bin" / "python"
    install = (python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check")
    run(*install, "--require-hashes", "-r", ROOT / "requirements" / "run.txt", cwd=tmp_path)
    run(*install, "--no-deps", wheel, cwd=tmp_path)

    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    whet = tmp_path / "venv" / "bin" / "whet"
    assert "whet" in run(whet, "--version", cwd=elsewhere)
    run(whet, "init", "demo", cwd=elsewhere)
    said = run(whet, "train", "--plain", cwd=elsewhere / "demo")
    assert "run-1" in said
    assert (elsewhere / "demo" / "runs" / "run-1" / "best" / "SKILL.md").read_text().strip()
    found = run(python, "-c", "import whet.core; print(whet.core.__file__)", cwd=elsewhere)
    assert str(tmp_path) in found, "it ran the tree and not the wheel"
