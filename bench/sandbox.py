"""What it costs to run a verifier that we did not write: a bare process, each level afresh, and the warm pool.

The verifier reads two SQLite files and compares them. CPU time is that of everything a run needs: the process, its
parent's part and, for the warm pool, its share of the zygote. It cannot be told for what bubblewrap starts, whose
children are not counted to it (-). Writes results/sandbox.json and .md; exit code 1 if a promise is not kept.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import resource
import sqlite3
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

from machine import RESULTS, table, write_results
from whet.sandbox import Host, Level, Pool, Program
from whet.sandbox.levels import bubblewrap

SOURCE = """
import sqlite3
def verify(before, after):
    counts = []
    for path in (before, after):
        database = sqlite3.connect(f"file:{path}?mode=ro&immutable=1", uri=True)
        counts.append(database.execute("select count(*), sum(id) from t").fetchone())
    return counts[0] != counts[1]
"""
BARE = f"{SOURCE}\nimport json, sys\nprint(json.dumps(verify(sys.argv[1], sys.argv[2])))"
MOST_WARM_MS = 13.0
LEAST_GAIN = 5.0


def databases(folder: Path) -> tuple[Path, Path]:
    paths = folder / "before.db", folder / "after.db"
    for extra, path in enumerate(paths):
        with sqlite3.connect(path) as database:
            database.execute("create table t (id integer)")
            database.executemany("insert into t values (?)", [(number,) for number in range(1000 + extra)])
        database.close()
    return paths


def cpu() -> float:
    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(each.ru_utime + each.ru_stime for each in used)


async def timed(name: str, times: int, run: Callable[[], Awaitable[None]]) -> dict[str, Any]:
    """The median of single runs, one after the other; CPU as the mean, because children are counted when they end."""
    walls: list[float] = []
    await run()
    before = cpu()
    for _ in range(times):
        began = time.perf_counter()
        await run()
        walls.append(time.perf_counter() - began)
    return row(name, walls, cpu() - before)


def row(name: str, walls: list[float], used: float) -> dict[str, Any]:
    """Both the median and the least, because a machine that others use as well makes the first of them larger."""
    is_counted = "namespaces" not in name and "bubblewrap" not in name
    return {
        "what": name,
        "runs": len(walls),
        "ms": statistics.median(walls) * 1e3,
        "least_ms": min(walls) * 1e3,
        "cpu_ms": used / len(walls) * 1e3 if is_counted else "-",
    }


async def warm(name: str, times: int, level: Level, arguments: dict[str, Any], read: list[Path]) -> dict[str, Any]:
    """The zygote's CPU is known when it has ended, so its start is within these numbers too."""
    walls: list[float] = []
    async with Pool(level=level) as pool:
        started = cpu()
        for _ in range(times):
            began = time.perf_counter()
            outcome = await pool.run(Program(SOURCE, "verify"), arguments, read=read)
            walls.append(time.perf_counter() - began)
            assert outcome.value is True, outcome
    return row(name, walls, cpu() - started)


async def forked(name: str, times: int, level: Level) -> dict[str, Any]:
    walls: list[float] = []
    async with Pool(level=level) as pool:
        template = await pool.template(Host("whet.worlds.unit_tests.answer:AnswerHost"))
        started = cpu()
        for _ in range(times):
            began = time.perf_counter()
            worker = await template.fork()
            await worker.ask(b'{"type":"load","source":["x = 1"]}')
            await worker.close()
            walls.append(time.perf_counter() - began)
    return row(name, walls, cpu() - started)


async def measure(fresh: int, many: int, folder: Path) -> list[dict[str, Any]]:
    before, after = databases(folder)
    paths = [str(before), str(after)]
    arguments: dict[str, Any] = {"before": paths[0], "after": paths[1]}

    async def bare() -> None:
        done = await asyncio.to_thread(
            subprocess.run, [sys.executable, "-I", "-c", BARE, *paths], capture_output=True, check=True
        )
        assert json.loads(done.stdout) is True

    async def in_bubblewrap() -> None:
        command = [*bubblewrap(()), sys.executable, "-I", "-c", BARE, *paths]
        done = await asyncio.to_thread(subprocess.run, command, capture_output=True, check=True)
        assert json.loads(done.stdout) is True

    def afresh(level: Level) -> Callable[[], Awaitable[None]]:
        async def run() -> None:
            async with Pool(preload=("sqlite3", "json"), level=level) as pool:
                outcome = await pool.run(Program(SOURCE, "verify"), arguments, read=[before, after])
            assert outcome.value is True, outcome

        return run

    return [
        await timed("bare process, open to all", fresh, bare),
        await timed("bubblewrap alone, no limits", fresh, in_bubblewrap),
        await timed("confined afresh: kernel", fresh, afresh(Level.KERNEL)),
        await timed("confined afresh: namespaces", fresh, afresh(Level.NAMESPACES)),
        await warm("warm pool: kernel", many, Level.KERNEL, arguments, [before, after]),
        await warm("warm pool: namespaces", many, Level.NAMESPACES, arguments, [before, after]),
        await forked("worker of a template: kernel", many, Level.KERNEL),
        await forked("worker of a template: namespaces", many, Level.NAMESPACES),
    ]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--fresh", type=int, default=30)
    parser.add_argument("--warm", type=int, default=300)
    parser.add_argument("--results", type=Path, default=RESULTS)
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="whet-bench-") as name:
        Path(name).chmod(0o755)
        rows = asyncio.run(measure(asked.fresh, asked.warm, Path(name)))
    by_name = {row["what"]: row for row in rows}
    kept = True
    lines = [table(rows), ""]
    for level in (Level.KERNEL, Level.NAMESPACES):
        afresh, pooled = by_name[f"confined afresh: {level}"], by_name[f"warm pool: {level}"]
        walls = afresh["ms"] / pooled["ms"]
        good = pooled["ms"] <= MOST_WARM_MS and walls >= LEAST_GAIN
        kept = kept and good
        lines.append(
            f"{level}: warm {pooled['ms']:.1f} ms (promised: at most {MOST_WARM_MS:g}), {walls:.1f} times less than"
            f" afresh (at least {LEAST_GAIN:g}): {'kept' if good else 'NOT KEPT'}"
        )
    write_results("sandbox", rows, "\n".join(lines), asked.results)
    print("\n".join(lines))
    return 0 if kept else 1


if __name__ == "__main__":
    sys.exit(main())
