"""Sessions of a generated world: whet's forks in the sandbox beside one server process a session, reached by MCP.

Both play the same scenario (the pack's shop, exported to the AgentWorldModel format), with the same calls and the same
verifier, in one run. Times are medians of a machine that others use too; what counts is their ratio.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import subprocess
import sys
import tempfile
import time
from contextlib import suppress
from pathlib import Path
from statistics import median
from typing import Any

import overhead
from machine import RESULTS, table, write_results
from overhead import Peer
from whet.core import Solution, Split, Task
from whet.worlds import load_world
from whet.worlds.awm import AwmWorld, admit
from whet.worlds.database import DatabaseWorld
from whet.worlds.pack.export import export_world

BENCH = Path(__file__).resolve().parent
REQUIREMENTS = ("fastapi-mcp==0.4.0", "fastapi==0.115.14", "mcp==1.12.4", "pydantic==2.11.9", "sqlalchemy==2.0.43")
PEERS = {"server a session": Peer((*REQUIREMENTS, "uvicorn==0.35.0"))}
SCENARIO = "shop"
LIMITS = {"first use": 1500.0, "reset": 15.0, "call beyond the program": 2.0, "verdict": 25.0}
"""In milliseconds."""
MOST_GIB = 4.0


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sessions", type=int, default=40, help="of whet; the servers are given an eighth")
    parser.add_argument("--open", type=int, default=256, help="sessions open at once")
    parser.add_argument("--churn", type=int, default=1024, help="sessions opened and closed")
    parser.add_argument("--results", type=Path, default=RESULTS)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        world = load_world("pack", {"scenarios": [SCENARIO]}, base_dir=folder)
        assert isinstance(world, DatabaseWorld)
        export_world(world, folder)
        ours = asyncio.run(measure_whet(world, folder, options))
        theirs = measure_servers(folder, ours.pop("asked"), max(3, options.sessions // 8))
    rows = compared(ours, theirs)
    promises = kept(ours, options)
    text = "\n\n".join([table(rows), table(promises)])
    print(text)
    write_results("worlds", [*rows, *promises], text, options.results)
    return 1 if any(row[""] != "reached" for row in promises) else 0


async def measure_whet(pack: DatabaseWorld, folder: Path, options: argparse.Namespace) -> dict[str, Any]:
    await admit(folder)
    world = load_world("awm", {"path": str(folder)}, base_dir=folder)
    assert isinstance(world, AwmWorld)
    task, solution = matching(pack, world)
    found: dict[str, Any] = {"asked": asked_of(folder, task, solution)}
    try:
        began = time.perf_counter()
        await (await world.open(task, 0)).close()
        found["pool and first use"] = time.perf_counter() - began
        found["first use"] = await first_use(folder, task)
        resets, calls, verdicts = [], [], []
        for seed in range(options.sessions):
            reset, took, verdict, passed = await played(world, task, solution, seed)
            assert passed, "the known solution passes"
            resets.append(reset)
            calls += took
            verdicts.append(verdict)
        found |= {"reset": median(resets), "call": median(calls), "verdict": median(verdicts)}
        found["program"] = program_time(found["asked"])
        found["many"] = await many_open(world, task, options.open)
        found["left"] = await churned(world, task, options.churn)
    finally:
        await world.aclose()
    return found


def matching(pack: DatabaseWorld, world: AwmWorld) -> tuple[Task, Solution]:
    """The exported task with the longest known solution."""
    known = [(pack.known_good(task), str(task.inputs["text"])) for split in Split for task in pack.tasks(split)]
    solution, text = max(known, key=lambda one: len(one[0].acts))
    tasks = [task for split in Split for task in world.tasks(split)]
    return next(task for task in tasks if text in str(task.inputs["text"])), solution


def asked_of(folder: Path, task: Task, solution: Solution) -> dict[str, Any]:
    def lines(name: str) -> list[dict[str, Any]]:
        return [json.loads(line) for line in (folder / name).read_text().splitlines()]

    (schema,) = [line["db_schema"] for line in lines("gen_db.jsonl")]
    (sample,) = [line["sample_data"] for line in lines("gen_sample.jsonl")]
    index = int(task.id.rpartition("/")[2])
    (verifier,) = [line for line in lines("gen_verifier.pure_code.jsonl") if line["task_idx"] == index]
    return {
        "program": lines("gen_envs.jsonl")[0]["full_code"],
        "ddl": [statement for one in schema["tables"] for statement in (one["ddl"], *one["indexes"])],
        "inserts": [statement for one in sample["tables"] for statement in one["insert_statements"]],
        "acts": [(act.tool, act.arguments) for act in solution.acts],
        "answer": solution.answer,
        "verifier": verifier["verification"]["code"],
    }


async def first_use(folder: Path, task: Task) -> float:
    """In a pool that runs already, as it does after the first scenario of a world: loading, forking, first answer."""
    world = load_world("awm", {"path": str(folder)}, base_dir=folder)
    assert isinstance(world, AwmWorld)
    try:
        await world._stages.pool()
        began = time.perf_counter()
        session = await world.open(task, 0)
        took = time.perf_counter() - began
        await session.close()
        return took
    finally:
        await world.aclose()


async def played(world: AwmWorld, task: Task, solution: Solution, seed: int) -> tuple[float, list[float], float, bool]:
    began = time.perf_counter()
    session = await world.open(task, seed)
    reset = time.perf_counter() - began
    took: list[float] = []
    for act in solution.acts:
        at = time.perf_counter()
        await session.call(act.tool, act.arguments)
        took.append(time.perf_counter() - at)
    at = time.perf_counter()
    verdict = await session.judge(solution.answer)
    judged = time.perf_counter() - at
    await session.close()
    return reset, took, judged, verdict.hard


def program_time(asked: dict[str, Any]) -> float:
    """A call of the program alone, in a process of its own, without a sandbox or a wire: its own time."""
    script = """
import json, os, sqlite3, sys, tempfile, time
from statistics import median
asked = json.load(open(sys.argv[1]))
os.chdir(tempfile.mkdtemp())
with sqlite3.connect("world.db") as connection:
    for statement in (*asked["ddl"], *asked["inserts"]):
        connection.executescript(statement)
os.environ["DATABASE_PATH"] = "sqlite:///world.db"
from whet.worlds.awm.inside.program import Program, Runner
from whet.worlds.awm.operations import tools_from
program = Program(asked["program"])
runner = Runner(program.app)
tools = {tool.spec.name: tool for tool in tools_from(program.openapi()).tools}
took = []
for name, arguments in asked["acts"] * 20:
    call = tools[name].request(arguments)
    at = time.perf_counter()
    runner.call(call)
    took.append(time.perf_counter() - at)
print(median(took))
"""
    with tempfile.NamedTemporaryFile("w", suffix=".json") as file:
        json.dump(asked, file)
        file.flush()
        ran = subprocess.run([sys.executable, "-c", script, file.name], capture_output=True, text=True, check=True)
    return float(ran.stdout.splitlines()[-1])


async def many_open(world: AwmWorld, task: Task, count: int) -> dict[str, float]:
    """What so many sessions hold at once, pool and template included: shared pages are counted once."""
    before = tree_mb()
    sessions = [await world.open(task, seed) for seed in range(count)]
    for session in sessions:
        await session.call(session.tools[0].name, {})
    after = tree_mb()
    for session in sessions:
        await session.close()
    return {"sessions": count, "GiB": after / 1024, "MB each": (after - before) / count}


async def churned(world: AwmWorld, task: Task, count: int) -> dict[str, int]:
    """Files, processes and folders that so many sessions leave behind."""
    before = await at_rest(world)
    for seed in range(count):
        await (await world.open(task, seed)).close()
    after = await at_rest(world)
    return {"sessions": count, **{name: after[name] - before[name] for name in after}}


async def at_rest(world: AwmWorld) -> dict[str, int]:
    """What stands once it stays so: a process that has ended is buried by its parent a moment later."""
    seen = [standing(world)]
    async with asyncio.timeout(60):
        while len(seen) < 10 or any(one != seen[-1] for one in seen[-10:]):
            await asyncio.sleep(0.05)
            seen.append(standing(world))
    return seen[-1]


def standing(world: AwmWorld) -> dict[str, int]:
    (ready,) = world._stages._ready.values()
    folders = sum(name.startswith("session") for name in os.listdir(ready.result().template.folder))
    return {"files": len(os.listdir("/proc/self/fd")), "processes": len(below()), "folders": folders}


def below() -> list[int]:
    """Processes below this one."""
    above: dict[int, int] = {}
    for status in Path("/proc").glob("[0-9]*/status"):
        with suppress(OSError):
            fields = dict(line.split(":\t", 1) for line in status.read_text().splitlines() if ":\t" in line)
            above[int(fields["Pid"])] = int(fields["PPid"])
    found: list[int] = []
    mine = {os.getpid()}
    while mine := {pid for pid, parent in above.items() if parent in mine}:
        found += mine
    return found


def tree_mb() -> float:
    return sum(pss_mb(pid) for pid in below())


def pss_mb(pid: int) -> float:
    with suppress(OSError):
        for line in Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines():
            if line.startswith("Pss:"):
                return int(line.split()[1]) / 1024
    return 0.0


def measure_servers(folder: Path, asked: dict[str, Any], sessions: int) -> dict[str, float]:
    (name,) = PEERS
    overhead.PEERS["awm"] = PEERS[name]
    python = overhead.environment("awm")
    file = folder / "asked.json"
    file.write_text(json.dumps(asked))
    runner = BENCH / "world_peers" / "run_servers.py"
    ran = subprocess.run(
        [python, runner, file, "--sessions", str(sessions)],
        env={"PATH": os.defpath, "HOME": str(folder)},
        capture_output=True,
        text=True,
        check=False,
    )
    if ran.returncode:
        raise SystemExit(f"the servers failed:\n{ran.stderr[-2000:]}")
    found: list[dict[str, Any]] = json.loads(ran.stdout.splitlines()[-1])
    assert all(one["result"] == "complete" for one in found), "the known solution passes there too"
    return {
        "reset": median(one["reset"] for one in found),
        "call": median(took for one in found for took in one["calls"]),
        "verdict": median(one["verdict"] for one in found),
        "memory": median(one["memory"] for one in found),
    }


def compared(ours: dict[str, Any], theirs: dict[str, float]) -> list[dict[str, Any]]:
    def row(what: str, mine: float, other: float) -> dict[str, Any]:
        return {"what": what, "whet": f"{mine:.2f}", "server a session": f"{other:.2f}", "ratio": f"{other / mine:.1f}"}

    program = 1000 * ours["program"]
    return [
        row("reset, ms", 1000 * ours["reset"], 1000 * theirs["reset"]),
        row("call, ms", 1000 * ours["call"], 1000 * theirs["call"]),
        row("call beyond the program, ms", 1000 * ours["call"] - program, 1000 * theirs["call"] - program),
        row("verdict, ms", 1000 * ours["verdict"], 1000 * theirs["verdict"]),
        row("memory a session, MB", ours["many"]["MB each"], theirs["memory"]),
    ]


def kept(ours: dict[str, Any], options: argparse.Namespace) -> list[dict[str, Any]]:
    seen = {
        "first use": 1000 * ours["first use"],
        "reset": 1000 * ours["reset"],
        "call beyond the program": 1000 * (ours["call"] - ours["program"]),
        "verdict": 1000 * ours["verdict"],
    }
    lines = [
        promise(f"{name}, ms", f"<= {LIMITS[name]:g}", f"{value:.2f}", value <= LIMITS[name])
        for name, value in seen.items()
    ]
    gib, left = ours["many"]["GiB"], {name: ours["left"][name] for name in ("files", "processes", "folders")}
    lines.append(promise(f"{options.open} sessions open, GiB", f"<= {MOST_GIB:g}", f"{gib:.2f}", gib <= MOST_GIB))
    shown = ", ".join(f"{count} {name}" for name, count in left.items())
    lines.append(promise(f"{options.churn} sessions leave behind", "nothing", shown, not any(left.values())))
    lines.append(promise("first use with the pool's start, ms", "-", f"{1000 * ours['pool and first use']:.0f}", True))
    return lines


def promise(about: str, limit: str, seen: str, reached: bool) -> dict[str, str]:
    return {"promise": about, "limit": limit, "seen": seen, "": "reached" if reached else "NOT REACHED"}


if __name__ == "__main__":
    sys.exit(main())
