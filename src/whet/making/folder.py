"""The folder that worlds are made in: what is there already, and how a scenario is put there.

A file is replaced whole, and the list of tasks last: a scenario is there with all of its files, or it is not there.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec

from whet.core import fingerprint
from whet.making.answers import Sketch
from whet.making.facts import verify_task
from whet.making.parts import Parts
from whet.worlds.awm.layout import (
    CODED,
    JUDGED,
    PROGRAMS,
    SAMPLES,
    SCENARIOS,
    SCHEMAS,
    SOLUTIONS,
    SPECS,
    TASKS,
    normal_name,
    read_layout,
)

FILES = (SCENARIOS, SCHEMAS, SAMPLES, SPECS, PROGRAMS, CODED, JUDGED, SOLUTIONS, TASKS)
STORE = Path(".making") / "run.db"
_TABLE = re.compile(r"\s*CREATE\s+TABLE\s+(?:IF\s+NOT\s+EXISTS\s+)?[\"'`\[]?(\w+)", re.IGNORECASE)


def known_in(folder: Path) -> tuple[Sketch, ...]:
    """What a folder holds, as far as nearness goes by it."""
    if not (folder / TASKS).is_file():
        return ()
    scenarios = read_layout(folder).scenarios.values()
    return tuple(
        Sketch(one.title, one.description, tuple(found[1] for ddl in one.ddl if (found := _TABLE.match(ddl))))
        for one in scenarios
    )


def content_in(folder: Path, name: str) -> str:
    """Of all lines of a scenario as they are there now; empty where there are none."""
    lines = [line for file in FILES for line in _lines(folder / file) if _name_in(line) == name]
    return fingerprint("made lines", lines) if lines else ""


def put(folder: Path, parts: Parts) -> None:
    """Add a scenario, or write it anew; the lines of others stay as they are."""
    name = normal_name(parts.sketch.name)
    for file, rows in _files(parts).items():
        kept = [line for line in _lines(folder / file) if _name_in(line) != name]
        ours = [msgspec.json.encode(row) + b"\n" for row in rows]
        beside = folder / f"{file}.new"
        beside.write_bytes(b"".join((*kept, *ours)))
        beside.replace(folder / file)


def _files(parts: Parts) -> dict[str, list[dict[str, Any]]]:
    name, place = parts.sketch.name, f"{parts.sketch.name}.db"
    data = [{"table_name": one.table_name, "insert_statements": one.insert_statements} for one in parts.sample.tables]
    groups = [{"group_name": name, "endpoints": parts.api.endpoints}]
    texts = [task.text for task in parts.tasks]
    rows: dict[str, list[dict[str, Any]]] = {
        SCENARIOS: [{"name": name, "description": parts.sketch.description}],
        SCHEMAS: [{"scenario": name, "db_schema": {"tables": parts.schema.tables}, "db_path": place}],
        SAMPLES: [
            {
                "scenario": name,
                "tables_count": len(data),
                "inserts_count": len(parts.sample.statements),
                "sample_data": {"tables": data},
            }
        ],
        SPECS: [{"scenario": name, "api_spec": {"api_groups": groups}}],
        PROGRAMS: [{"scenario": name, "db_path": place, "full_code": parts.code}],
        CODED: [],
        JUDGED: [],
        SOLUTIONS: [],
        TASKS: [{"scenario": name, "tasks": texts}],
    }
    gathering = inspect.getsource(verify_task)
    for place_in, task in enumerate(parts.tasks):
        head: dict[str, Any] = {"scenario": name, "task_idx": place_in}
        named = {**head, "task": task.text}
        rows[CODED].append({**named, "verification": {"code": task.verifier, "raw_response": ""}})
        rows[JUDGED].append({**named, "verification": {"code": gathering, "function_name": verify_task.__name__}})
        way = {"acts": task.solution.acts, "answer": task.solution.answer, "damaged": task.damaged}
        rows[SOLUTIONS].append({**head, **way})
    return rows


def _lines(path: Path) -> Iterator[bytes]:
    """Each ends in a newline, also the last of a file that lacks one."""
    if path.is_file():
        with path.open("rb") as file:
            yield from (line if line.endswith(b"\n") else line + b"\n" for line in file if line.strip())


class _Named(msgspec.Struct):
    scenario: str = ""
    name: str = ""


def _name_in(line: bytes) -> str:
    """The scenario that a line is of; empty for a line that says none."""
    try:
        found = msgspec.json.decode(line, type=_Named)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return ""
    return normal_name(found.scenario or found.name)
