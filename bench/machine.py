"""Where and when a number was measured, for the files in results/."""

from __future__ import annotations

import json
import os
import platform
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

RESULTS = Path(__file__).resolve().parent / "results"


def machine() -> dict[str, Any]:
    return {
        "date": datetime.now(UTC).strftime("%Y-%m-%d"),
        "cpu": _cpu(),
        "cores": os.cpu_count(),
        "python": platform.python_version(),
        "load": round(os.getloadavg()[0], 2),
    }


def write_results(name: str, rows: list[dict[str, Any]], text: str, folder: Path = RESULTS) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    where = machine()
    (folder / f"{name}.json").write_text(json.dumps({"machine": where, "rows": rows}, indent=1) + "\n")
    told = ", ".join(f"{key} {value}" for key, value in where.items())
    (folder / f"{name}.md").write_text(f"# {name}\n\n{told}\n\n```\n{text.rstrip()}\n```\n")


def table(rows: list[dict[str, Any]]) -> str:
    """Columns by key, numbers to the right."""
    names = list(rows[0])
    cells = [names] + [[_shown(row[name]) for name in names] for row in rows]
    widths = [max(len(line[column]) for line in cells) for column in range(len(names))]
    return "\n".join("  ".join(cell.rjust(width) for cell, width in zip(line, widths, strict=True)) for line in cells)


def _shown(value: Any) -> str:
    return f"{value:.3f}" if isinstance(value, float) else str(value)


def _cpu() -> str:
    for line in Path("/proc/cpuinfo").read_text().splitlines() if Path("/proc/cpuinfo").exists() else ():
        if line.startswith("model name"):
            return line.partition(":")[2].strip()
    return platform.processor() or "unknown"
