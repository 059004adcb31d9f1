"""What the page about the gate shows runs, and its numbers are those of the benchmark."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "gate.md").read_text("utf-8")
MEASURED = {
    (row["rule"], row["what"]): row["measured"]
    for row in json.loads((ROOT / "bench/results/gate.json").read_text())["rows"]
}


def rows() -> list[list[str]]:
    tables = re.findall(r"<!-- numbers: bench/results/gate.json -->\n(.*?)<!-- end -->", PAGE, re.DOTALL)
    assert len(tables) == 2
    lines = [line for table in tables for line in table.splitlines()[2:] if line]
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]


def agrees(shown: str, measured: float) -> bool:
    """To the digits that are shown; points are hundredths."""
    scale = 100 if "point" in shown else 1
    number = shown.removesuffix(" points").lstrip("+")
    digits = len(number.partition(".")[2])
    return round(scale * measured, digits) == float(number)


def test_the_numbers_of_the_page_are_those_of_the_benchmark() -> None:
    compared = 0
    for name, first, second in rows():
        for rule, what, shown in (
            ("strict", name, first),
            ("paired", name, second),
            ("certificate", f"{name}: certified", first),
            ("certificate", f"{name}: passes of both arms", second),
        ):
            if (rule, what) in MEASURED and shown:
                assert agrees(shown, MEASURED[rule, what]), (rule, what, MEASURED[rule, what])
                compared += 1
    assert compared >= 28


def test_every_program_of_the_page_runs(tmp_path: Path) -> None:
    programs = re.findall(r"^```python\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)
    assert len(programs) == 2
    for program in programs:
        command = [sys.executable, "-W", "error", "-c", program]
        done = subprocess.run(command, cwd=tmp_path, env=os.environ, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
