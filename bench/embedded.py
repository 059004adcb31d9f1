"""What the embedded models do on this machine: tokens a second by type of file, and what a shared beginning costs.

Wall times say little while others use the cores, so work is also counted in CPU milliseconds of one thread, which does
not wait for another. Writes results/embedded.json and .md; exit code 1 if a shared beginning is evaluated more than
once.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import random
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

from machine import RESULTS, table, write_results
from whet.core import ModelReply, ModelRequest, Sampling, system, user
from whet.models.embedded import KNOWN, EmbeddedModel, EmbeddedSettings, original, pull
from whet.models.embedded.storing import store_as
from whet.project import data_folder

MOST_EVALUATED = 1.05
"""How often the prefix may be evaluated, in all: once, and what a state ends within."""

WORDS = (
    "river",
    "stone",
    "lamp",
    "seven",
    "copper",
    "window",
    "garden",
    "north",
    "paper",
    "engine",
    "silver",
    "market",
)


class Measured:
    """Work between two moments: wall seconds, CPU seconds of the process, and what the replies report."""

    def __init__(self, wall: float, cpu: float, replies: list[ModelReply]) -> None:
        self.wall, self.cpu = wall, cpu
        usages = [reply.usage for reply in replies if reply.usage]
        self.prompt = sum(usage.input_tokens - usage.cached_tokens for usage in usages)
        self.generated = sum(usage.output_tokens for usage in usages)


async def measured(work: Callable[[], Awaitable[list[ModelReply]]]) -> Measured:
    wall, cpu = time.perf_counter(), time.process_time()
    replies = await work()
    return Measured(time.perf_counter() - wall, time.process_time() - cpu, replies)


def words(seed: int, count: int) -> str:
    drawn = random.Random(seed)
    return " ".join(drawn.choice(WORDS) for _ in range(count))


def prompt_only(seed: int) -> ModelRequest:
    return ModelRequest((user(words(seed, 500)),), plain=True, sampling=Sampling(1, 0.0))


def long_answer(seed: int, tokens: int) -> ModelRequest:
    return ModelRequest(
        (user(f"A list of {words(seed, 6)}: 1."),), plain=True, sampling=Sampling(tokens, 1.0), seed=seed
    )


async def speed(file: Path, threads: int, options: argparse.Namespace) -> dict[str, float]:
    async with await EmbeddedModel.open(file, settings=EmbeddedSettings(threads=threads)) as model:

        async def ask(*requests: ModelRequest) -> list[ModelReply]:
            return list(await asyncio.gather(*(model.send(request, 3600.0, {}) for request in requests)))

        await ask(long_answer(0, 4))
        read = [await measured(lambda seed=seed: ask(prompt_only(seed))) for seed in range(options.rounds)]
        alone = [await measured(lambda seed=seed: ask(long_answer(seed, 96))) for seed in range(options.rounds)]
        many = await measured(lambda: ask(*(long_answer(seed, 64) for seed in range(100, 132))))
    return {
        "prompt/s": max(one.prompt / one.wall for one in read),
        "alone/s": max(one.generated / one.wall for one in alone),
        "of 32/s": many.generated / many.wall,
        "prompt ms": min(1000 * one.cpu / one.prompt for one in read),
        "alone ms": min(1000 * one.cpu / max(1, one.generated) for one in alone),
        "of 32 ms": 1000 * many.cpu / many.generated,
        "request s": many.cpu / 32,
    }


async def sharing(file: Path, tasks: int) -> dict[str, Any]:
    """Different tasks that all begin with one skill, from a cold start, with all slots in use."""
    skill = system(" ".join(f"Rule {number}: {words(number, 12)}." for number in range(60)))
    async with await EmbeddedModel.open(file) as model:
        requests = [
            ModelRequest((skill, user(f"Task {number}: {words(number, 5)}")), sampling=Sampling(8, 1.0), seed=number)
            for number in range(tasks)
        ]
        sizes = [len(await model.prompt_tokens(request)) for request in requests]
        own = [len(await model.prompt_tokens(ModelRequest(request.messages[1:]))) for request in requests]
        done = await measured(lambda: _all(model, requests))
        prefix = min(sizes) - max(own)
    return {
        "model": file.stem,
        "tasks": tasks,
        "prompt tokens": sum(sizes),
        "evaluated": done.prompt,
        "prefix": prefix,
        "times evaluated": max(0.0, (done.prompt - sum(sizes) + tasks * prefix) / prefix),
        "CPU s a request": done.cpu / tasks,
    }


async def _all(model: EmbeddedModel, requests: list[ModelRequest]) -> list[ModelReply]:
    return list(await asyncio.gather(*(model.send(request, 3600.0, {}) for request in requests)))


async def run(options: argparse.Namespace, folder: Path) -> int:
    rows: list[dict[str, Any]] = []
    shared: list[dict[str, Any]] = []
    for name in options.models:
        pull(name, data_folder(os.environ))
        first = original(name, data_folder(os.environ))
        assert first is not None, "it was pulled"
        files = {"original": first}
        for kind in options.kinds:
            files[kind] = store_as(kind, first, folder / f"{name}.{kind}.gguf")
        for kind, file in files.items():
            by_wall, by_cpu = await speed(file, 0, options), await speed(file, 1, options)
            kept = {key: round(value, 1) for key, value in by_wall.items() if key.endswith("/s")}
            work = {key: round(value, 2) for key, value in by_cpu.items() if not key.endswith("/s")}
            rows.append({"model": name, "file": kind, "MB": file.stat().st_size // 10**6, **kept, **work})
            print(table(rows[-1:]), flush=True)
        shared.append(await sharing(files.get("Q8_0", first), options.tasks))
    worst = max(row["times evaluated"] for row in shared)
    promise = f"a shared beginning is evaluated {worst:.3f} times (at most {MOST_EVALUATED}): "
    promise += "reached" if worst <= MOST_EVALUATED else "NOT REACHED"
    notes = "/s: tokens a second by the clock, all cores. ms: CPU milliseconds a token, one thread."
    text = f"{table(rows)}\n\n{notes}\n\n{table(shared)}\n\n{promise}"
    print(text)
    write_results("embedded", [*rows, *shared], text, options.results)
    return 0 if worst <= MOST_EVALUATED else 1


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--models", nargs="+", default=["smollm2-135m"], choices=list(KNOWN))
    parser.add_argument("--kinds", nargs="*", default=["Q8_0", "F16", "BF16"])
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--tasks", type=int, default=64)
    parser.add_argument("--results", type=Path, default=RESULTS)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        return asyncio.run(run(options, Path(folder)))


if __name__ == "__main__":
    sys.exit(main())
