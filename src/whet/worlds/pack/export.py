"""Scenarios as the files of the AgentWorldModel format: one JSON object a line, for any program that reads that format.

Each variant of a scenario is a scenario there, for its tasks share one database. Programs need fastapi and sqlalchemy,
verifiers the standard library alone; neither needs whet.
"""

from __future__ import annotations

import textwrap
from collections.abc import Iterator
from contextlib import closing
from functools import cache
from pathlib import Path
from typing import Any

import msgspec

from whet.core import InputError, Solution, World
from whet.worlds.database import DatabaseWorld, Draft, restore
from whet.worlds.database.checking import changes_between, judged
from whet.worlds.database.damage import damaged_solutions
from whet.worlds.database.scenario import Drawn, tools_of_scenario
from whet.worlds.database.statements import data_statements, schema_statements
from whet.worlds.database.world import brief_of
from whet.worlds.pack.program import endpoints, program
from whet.worlds.pack.sources import collect

_VERIFIER = '''\
def {function}({parameters}):
    """{what}"""
{imports}

{code}

    check = {check}

    def opened(path):
        return sqlite3.connect("file:" + urllib.parse.quote(str(path)) + "?mode=ro", uri=True)

    with contextlib.closing(opened(initial_db_path)) as before, contextlib.closing(opened(final_db_path)) as after:
        changes = changes_between(before, after)
'''
_DECIDE = """\
    if changes is None or not judged(check, changes, final_answer or "")["passed"]:
        return {"result": "others"}
    return {"result": "complete"}
"""
_TELL = """\
    if changes is None:
        return {"schema_changed": True}
    found = judged(check, changes, "")
    facts = {name: found[name] for name in ("missing", "extra")}
    return {"schema_changed": False, "changes": changes, "expected_answer": check["answer"], **facts}
"""


SOLUTIONS = "whet_solutions.jsonl"
"""Not of the format: the known way through each task, and the same with something wrong, for `whet audit`."""


class Written(msgspec.Struct, frozen=True):
    """What an export has written: rows of each file."""

    files: dict[str, int]


def export_world(world: World, folder: Path) -> Written:
    """Write the files of the format into `folder`; files of the same names there are replaced."""
    if not isinstance(world, DatabaseWorld):
        raise InputError(f"the world {world.name} is not made of scenarios", hint="whet world export pack DIR")
    files: dict[str, list[dict[str, Any]]] = {}
    for drawn in world.drawn:
        for name, row in _rows(drawn):
            files.setdefault(name, []).append(row)
    folder.mkdir(parents=True, exist_ok=True)
    for name, rows in files.items():
        (folder / name).write_bytes(b"".join(msgspec.json.encode(row) + b"\n" for row in rows))
    return Written({name: len(rows) for name, rows in files.items()})


def exported_name(drawn: Drawn) -> str:
    return drawn.scenario.name if drawn.variant == 0 else f"{drawn.scenario.name}_{drawn.variant + 1}"


def _rows(drawn: Drawn) -> Iterator[tuple[str, dict[str, Any]]]:
    scenario, name = drawn.scenario, exported_name(drawn)
    told, tools = [brief_of(scenario, draft) for draft in drawn.drafts], tools_of_scenario(scenario)
    with closing(restore(drawn.image)) as connection:
        schema, data = schema_statements(connection), data_statements(connection)
    yield "gen_scenario.jsonl", {"name": name, "description": scenario.about}
    yield "gen_tasks.jsonl", {"scenario": name, "tasks": told}
    yield "gen_db.jsonl", {"scenario": name, "db_schema": {"tables": schema}, "db_path": f"{name}.db"}
    yield (
        "gen_sample.jsonl",
        {
            "scenario": name,
            "tables_count": len(data),
            "inserts_count": sum(len(table["insert_statements"]) for table in data),
            "sample_data": {"tables": data},
        },
    )
    groups = [{"group_name": scenario.name, "endpoints": endpoints(scenario)}]
    yield "gen_spec.jsonl", {"scenario": name, "api_spec": {"api_groups": groups}}
    yield "gen_envs.jsonl", {"scenario": name, "db_path": f"{name}.db", "full_code": program(scenario)}
    for place, (text, draft) in enumerate(zip(told, drawn.drafts, strict=True)):
        row = {"scenario": name, "task_idx": place, "task": text}
        pure, telling = verifier(draft), verifier(draft, decide=False)
        yield "gen_verifier.pure_code.jsonl", {**row, "verification": {"code": pure, "raw_response": ""}}
        yield "gen_verifier.jsonl", {**row, "verification": {"code": telling, "function_name": "verify_task"}}
        good, wrong = draft.solution, damaged_solutions(drawn, tools, draft)
        yield (
            SOLUTIONS,
            {"scenario": name, "task_idx": place, **_plain(good), "damaged": [_plain(one) for one in wrong]},
        )


def _plain(solution: Solution) -> dict[str, Any]:
    return {"acts": msgspec.to_builtins(solution.acts), "answer": solution.answer}


def verifier(draft: Draft, *, decide: bool = True) -> str:
    """One function that needs nothing around it: the check of the task as data, and the functions that judge by it."""
    imports, code = _judging()
    head = _VERIFIER.format(
        function="verify_task_completion" if decide else "verify_task",
        parameters="initial_db_path, final_db_path" + (", final_answer=None" if decide else ""),
        what="Whether the task is done and nothing else was changed."
        if decide
        else "What was changed, what was to be.",
        imports=imports,
        code=code,
        check=repr(msgspec.to_builtins(draft.check)),
    )
    return head + (_DECIDE if decide else _TELL)


@cache
def _judging() -> tuple[str, str]:
    """Imports and functions that every verifier has, as they stand inside one."""
    collected = collect([judged, changes_between])
    imports = {*collected.imports, "import contextlib", "import sqlite3", "import urllib.parse"}
    return textwrap.indent("\n".join(sorted(imports)), "    "), textwrap.indent(collected.text(), "    ")
