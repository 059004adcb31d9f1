"""What the pack of tool worlds costs: a call, opening a session, branching it, judging it; and copies of databases.

Every tool is called in fresh sessions, as known-good solutions call it, in this process; beside it the same calls go
through the pack's exported programs (FastAPI and SQLAlchemy, called by ASGI without a port), which is the form that
such worlds have elsewhere. CPU microseconds of the process: of each tool the lower quartile of its calls, of all tools
the median. Writes results/pack.json and .md; exit code 1 if a promise is not kept.
"""

from __future__ import annotations

import argparse
import asyncio
import itertools
import json
import os
import sqlite3
import statistics
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable, Iterable
from contextlib import closing
from pathlib import Path
from typing import Any

from machine import table, write_results
from whet.core import Act, Split
from whet.worlds.database import DatabaseWorld, ScenarioSettings, State, clone, clone_file, restore, snapshot
from whet.worlds.database.scenario import functions_of, tools_of_scenario
from whet.worlds.pack import SCENARIOS, pack
from whet.worlds.pack.program import program
from whet.worlds.schema import example_of

MOST_CALL = 50.0
MOST_FORK = 1000.0
SIZES = (64, 1024, 16 * 1024)
"""Of databases to copy, in KiB."""


def cpu() -> float:
    return time.process_time_ns() / 1000


def timer() -> float:
    """What asking for the time costs, which every measured step has in it."""
    began = [cpu() for _ in range(2001)]
    return statistics.median(later - earlier for earlier, later in itertools.pairwise(began))


def undisturbed(samples: dict[str, list[float]]) -> dict[str, float]:
    """The lower quartile of each: who else uses the cores and their caches can only add."""
    return {name: statistics.quantiles(values, n=4)[0] for name, values in samples.items()}


def acts_of(world: DatabaseWorld) -> list[list[Act]]:
    """Solutions of all tasks, and a call of each tool that none of them uses."""
    tasks = [task for split in Split for task in world.tasks(split)]
    solved = [list(world.known_good(task).acts) for task in tasks]
    tools = tools_of_scenario(world.drawn[0].scenario)
    used = {act.tool for acts in solved for act in acts}
    with closing(restore(world.drawn[0].image)) as connection:
        stray = world.drawn[0].scenario.stray(State(connection))
    rest = [Act(name, plain_arguments(tool.spec.parameters)) for name, tool in tools.items() if name not in used]
    return [*solved, [stray if act.tool == stray.tool else act for act in rest]]


def plain_arguments(parameters: dict[str, Any]) -> dict[str, Any]:
    """An example of each, and a day where a pattern asks for one."""
    patterned = {name for name, schema in parameters["properties"].items() if "pattern" in schema}
    return {name: "2031-12-01" if name in patterned else value for name, value in example_of(parameters).items()}


async def measure_scenario(world: DatabaseWorld, rounds: int) -> tuple[dict[str, float], dict[str, float]]:
    tasks = [task for split in Split for task in world.tasks(split)]
    calls: dict[str, list[float]] = {}
    steps: dict[str, list[float]] = {"open": [], "fork": [], "judge": []}
    for _ in range(rounds):
        for place, acts in enumerate(acts_of(world)):
            task = tasks[place % len(tasks)]
            began = cpu()
            session = await world.open(task, 0)
            steps["open"].append(cpu() - began)
            for act in acts:
                began = cpu()
                await session.call(act.tool, act.arguments)
                calls.setdefault(act.tool, []).append(cpu() - began)
            began = cpu()
            fork = await session.fork()
            steps["fork"].append(cpu() - began)
            await fork.close()
            began = cpu()
            await session.judge("Done.")
            steps["judge"].append(cpu() - began)
            await session.close()
    return undisturbed(calls), undisturbed(steps)


async def post(app: Any, path: str, body: bytes) -> int:
    """One request as a server would hand it to the application."""
    status = 0
    headers = [(b"content-type", b"application/json"), (b"content-length", str(len(body)).encode())]
    scope = {"type": "http", "asgi": {"version": "3.0"}, "method": "POST", "path": path, "raw_path": path.encode()}
    scope |= {"query_string": b"", "headers": headers, "http_version": "1.1", "scheme": "http", "client": ("a", 1)}

    async def receive() -> dict[str, Any]:
        return {"type": "http.request", "body": body, "more_body": False}

    async def send(message: dict[str, Any]) -> None:
        nonlocal status
        status = message.get("status", status)

    await app(scope | {"server": ("a", 80), "root_path": ""}, receive, send)
    return status


async def measure_program(world: DatabaseWorld, rounds: int, folder: Path) -> dict[str, float]:
    """The same calls through the exported program, on a database file that is put back for each task."""
    drawn = world.drawn[0]
    path = folder / f"{drawn.scenario.name}.db"
    os.environ["DATABASE_PATH"] = f"sqlite:///{path}"
    scope: dict[str, Any] = {"__name__": f"exported_{drawn.scenario.name}"}
    # Not with this module's own way of keeping hints as text, which pydantic could not resolve.
    exec(compile(program(drawn.scenario), "program", "exec", dont_inherit=True), scope)  # noqa: S102
    calls: dict[str, list[float]] = {}
    for _ in range(rounds):
        for acts in acts_of(world):
            path.write_bytes(drawn.image)
            for act in acts:
                began = cpu()
                status = await post(scope["app"], f"/{act.tool}", json.dumps(act.arguments).encode())
                calls.setdefault(act.tool, []).append(cpu() - began)
                assert status in (200, 409), (act, status)
    return undisturbed(calls)


async def measure_calls(rounds: int, folder: Path) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = []
    every: dict[str, list[float]] = {"call": [], "program": [], "open": [], "fork": [], "judge": []}
    for scenario in SCENARIOS:
        world = pack(ScenarioSettings(scenarios=(scenario.name,)))
        calls, steps = await measure_scenario(world, rounds)
        programmed = await measure_program(world, max(2, rounds // 10), folder)
        found = {"call": list(calls.values()), "program": list(programmed.values())}
        found |= {name: [value] for name, value in steps.items()}
        assert len(calls) == len(programmed) == len(functions_of(scenario))
        for name, values in found.items():
            every[name] += values
        rows.append(row(scenario.name, len(calls), found))
    return [*rows, row("all", len(every["call"]), every)]


def row(name: str, tools: int, found: dict[str, list[float]]) -> dict[str, Any]:
    middle = {key: statistics.median(values) for key, values in found.items()}
    return {
        "scenario": name,
        "tools": tools,
        "call_us": round(middle["call"], 1),
        "slowest_us": round(max(found["call"]), 1),
        "program_us": round(middle["program"], 1),
        "ratio": round(middle["program"] / middle["call"], 1),
        "open_us": round(middle["open"], 1),
        "fork_us": round(middle["fork"], 1),
        "judge_us": round(middle["judge"], 1),
    }


def measure_copies(rounds: int, folder: Path) -> list[dict[str, Any]]:
    """A copy in memory by bytes and as `clone` makes it; a copy of a file by cloning and by SQLite's backup."""
    rows: list[dict[str, Any]] = []
    for size in SIZES:
        path, target = folder / f"{size}.db", folder / "copy.db"
        with closing(sqlite3.connect(path)) as made:
            made.execute("CREATE TABLE t (a INTEGER PRIMARY KEY, b BLOB)")
            made.executemany("INSERT INTO t (b) VALUES (?)", [(os.urandom(900),)] * size)
            made.commit()
            with closing(restore(snapshot(made))) as memory:
                ways: dict[str, Callable[[], Any]] = {
                    "bytes_us": lambda memory=memory: restore(snapshot(memory)).close(),
                    "clone_us": lambda memory=memory: clone(memory).close(),
                    "file_clone_us": lambda path=path, target=target: clone_file(path, target),
                    "file_backup_us": lambda made=made, target=target: backed_up(made, str(target)),
                }
                rows.append(
                    {"KiB": path.stat().st_size // 1024, **{name: timed(way, rounds) for name, way in ways.items()}}
                )
    return rows


def backed_up(connection: sqlite3.Connection, target: str) -> None:
    with closing(sqlite3.connect(target)) as copy:
        connection.backup(copy)


def timed(way: Callable[[], Any], rounds: int) -> float:
    def once() -> float:
        began = cpu()
        way()
        return cpu() - began

    return round(statistics.quantiles([once() for _ in range(rounds)], n=4)[0], 1)


def run(measuring: Awaitable[Any]) -> Any:
    async def main() -> Any:
        return await measuring

    return asyncio.run(main())


def problems(rows: Iterable[dict[str, Any]], copies: Iterable[dict[str, Any]]) -> list[str]:
    found: list[str] = []
    for one in rows:
        if one["scenario"] == "all" and one["call_us"] > MOST_CALL:
            found.append(f"a call of the middle tool takes {one['call_us']} us, more than {MOST_CALL}")
        if one["fork_us"] > MOST_FORK:
            found.append(f"{one['scenario']}: a fork takes {one['fork_us']} us, more than {MOST_FORK}")
    found += [
        f"at {one['KiB']} KiB another copy is quicker" for one in copies if one["clone_us"] > 1.2 * one["bytes_us"]
    ]
    return found


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=30)
    parser.add_argument("--results", type=Path, default=None)
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="whet-pack-") as name:
        rows = run(measure_calls(asked.rounds, Path(name)))
        copies = measure_copies(asked.rounds, Path(name))
    wrong = problems(rows, copies)
    text = f"{table(rows)}\n\nThe timer itself: {timer():.2f} us.\n\nCopies of a database:\n\n{table(copies)}"
    print(text)
    where = {} if asked.results is None else {"folder": asked.results}
    write_results("pack", [*rows, *copies], text, **where)
    for problem in wrong:
        print(problem, file=sys.stderr)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
