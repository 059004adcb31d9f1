"""The benchmark that the numbers in the docs come from still runs."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]


@pytest.mark.slow
def test_the_gates_benchmark_runs() -> None:
    results = ROOT / "bench/results/gate.json"
    before = results.read_bytes()
    done = subprocess.run(
        [sys.executable, ROOT / "bench/gate.py", "--quick"], capture_output=True, text=True, timeout=110, check=True
    )
    assert "20 useless: at least one accepted" in done.stdout
    assert results.read_bytes() == before, "a quick run is no result"
