from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

PAGE = Path(__file__).parents[2] / "docs" / "worlds.md"
BLOCK = re.compile(r"^```(?P<kind>\w+)(?: (?P<file>\S+))?\n(?P<text>.*?)^```$", re.MULTILINE | re.DOTALL)


def test_every_block_of_the_page_runs(tmp_path: Path) -> None:
    ran = 0
    for block in BLOCK.finditer(PAGE.read_text("utf-8")):
        if block["file"]:
            path = tmp_path / block["file"]
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(block["text"], "utf-8")
        else:
            assert block["kind"] == "python"
            command = [sys.executable, "-W", "error", "-c", block["text"]]
            done = subprocess.run(command, cwd=tmp_path, env=os.environ, capture_output=True, text=True, check=False)
            assert done.returncode == 0, done.stderr
            ran += 1
    assert ran == 1
