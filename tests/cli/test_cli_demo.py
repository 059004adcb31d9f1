"""The demonstration, whole, on the real embedded model, with fewer tasks than the shipped one has."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from whet.cli.demonstrating import write_demo

SMALLER = {"train = 96": "train = 40", "selection = 50": "selection = 14", "confirm = 60": "confirm = 16"}
SMALLER |= {"test = 100": "test = 16", "batch_size = 48": "batch_size = 40", "epochs = 2": "epochs = 1"}


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_the_demo_sharpens_trains_proves_publishes_serves_and_goes_on(tmp_path: Path, models_home: Path) -> None:
    home, folder = tmp_path / "home", tmp_path / "demo"
    home.mkdir()
    (home / "models").symlink_to(models_home / "models")
    write_demo(folder, "house.toml", as_json=True)
    text = (folder / "whet.toml").read_text()
    for shipped, smaller in SMALLER.items():
        assert shipped in text
        text = text.replace(shipped, smaller)
    (folder / "whet.toml").write_text(text + "\n[local]\nthreads = 1\n")
    first, again = demo(folder, home), demo(folder, home)
    stages = {stage["stage"]: stage for stage in first["stages"]}
    assert list(stages) == ["bare model", "with skill", "with adapter", "through gateway"]
    assert stages["bare model"]["passed"] <= 1
    assert stages["with adapter"]["passed"] >= 2
    assert abs(stages["through gateway"]["passed"] - stages["with adapter"]["passed"]) <= 2
    assert stages["with adapter"]["prompt_tokens"] < 0.3 * stages["with skill"]["prompt_tokens"]
    assert first["record"]
    assert again["record"] == first["record"]
    assert [stage["passed"] for stage in again["stages"][:3]] == [stage["passed"] for stage in first["stages"][:3]]


def demo(folder: Path, home: Path) -> dict[str, Any]:
    done = subprocess.run(
        [sys.executable, "-m", "whet", "demo", "--dir", str(folder), "--json"],
        env={**os.environ, "WHET_HOME": str(home)},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr[-2000:]
    return json.loads(done.stdout)
