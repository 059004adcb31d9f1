"""Whole trainings against the shortest time that their dependencies allow.

The ideal counts, for each call, only what it truly needs: a reflection its own trajectories, a merge its own patches,
a rollout the policy it plays; every call starts at once when these are there and takes as long as the server made its
first sending wait. Loading Python modules is not counted. whet's own work, and calls waiting for each other without
need, show as the ratio to it.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import tempfile
import time
from pathlib import Path
from typing import Any

import aiohttp  # noqa: F401 - loaded here, since whet loads it within the first call
import msgspec

from machine import table, write_results
from mock_server import MockServer
from whet.core import (
    ModelReply,
    ModelRequest,
    Priority,
    Purpose,
    Source,
    Split,
    SystemClock,
    Task,
    Trajectory,
    content_key,
)
from whet.learners.skill import minibatches
from whet.models import Models, Prices, RecordedModel
from whet.store import RunReader
from whet.testing.project import KEY, KEY_VARIABLE, write_project
from whet.training import Project, Report, load_config, plan, prepare, train
from whet.training.folder import STORE_FILE

LIMITS = {0.0: 1.3, 0.05: 1.5}


class TracedModels(Models):
    """Notes which calls belong to which salt; the salt says what a call is for."""

    def __init__(self, environ: dict[str, str], base_dir: Path) -> None:
        super().__init__(environ=environ, base_dir=base_dir, prices=Prices(), clock=SystemClock())
        self.keys: dict[bytes, list[str]] = {}

    def open(self, *arguments: Any) -> Any:
        return TracedModel(super().open(*arguments), self.keys)


class TracedModel:
    def __init__(self, model: RecordedModel, keys: dict[bytes, list[str]]) -> None:
        self.model = model
        self.keys = keys
        self.ref = model.ref

    async def complete(
        self, request: ModelRequest, *, purpose: Purpose, salt: bytes = b"", priority: Priority = Priority.CRITICAL
    ) -> ModelReply:
        key = content_key("call", self.ref.provider, self.ref.name, request, salt).hex()
        self.keys.setdefault(salt, []).append(key)
        return await self.model.complete(request, purpose=purpose, salt=salt, priority=priority)


class Ideal:
    """The training once more on paper."""

    def __init__(self, project: Project, report: Report, folder: Path, seconds: dict[bytes, float]) -> None:
        self.project = project
        self.report = report
        self.seconds = seconds
        self.played: dict[bytes, float] = {}
        with RunReader(folder / STORE_FILE) as reader:
            self.trajectories = {
                (stored.trajectory.policy, stored.trajectory.task): stored.trajectory for stored in reader.rollouts()
            }

    async def finish(self) -> float:
        project, report, train = self.project, self.report, self.project.config.train
        selection, test = project.tasks(Split.SELECTION), project.tasks(Split.TEST)
        now, baseline = 0.0, self.play_all(report.start, selection, 0.0)
        tested = self.play_all(report.start, test, 0.0)
        for planned, record in zip(
            plan(project.tasks(Split.TRAIN), train.epochs, train.batch_size, train.seed), report.steps, strict=True
        ):
            now = await self.propose(record.current, list(planned.tasks), planned.step.key, now)
            if record.candidate:
                now = max(baseline, self.play_all(record.candidate, selection, now))
        return max(tested, *(self.play_all(policy, test, now) for policy in (report.best, report.last)))

    def play_all(self, policy: str, tasks: list[Task], start: float) -> float:
        return max(self.play(policy, task, start) for task in tasks)

    def play(self, policy: str, task: Task, start: float) -> float:
        world, seed = self.project.world.fingerprint, self.project.config.train.seed
        key = content_key("rollout", world, task.id, task.fingerprint, policy, 0, seed)
        if key not in self.played:
            self.played[key] = start + self.seconds[content_key("turn", key, 0)]
        return max(start, self.played[key])

    async def propose(self, policy: str, tasks: list[Task], step: bytes, start: float) -> float:
        ends = {task.id: self.play(policy, task, start) for task in tasks}
        arrived = Arrivals()
        evidence = [arrived.at(ends[task.id], self.trajectories[policy, task.id]) for task in tasks]
        patches: dict[Source, list[float]] = {source: [] for source in Source}
        async for batch in minibatches(evidence, self.project.config.skill.minibatch_size, step):
            purpose = Purpose.REFLECT_FAILURE if batch.source is Source.FAILURE else Purpose.REFLECT_SUCCESS
            patches[batch.source].append(arrived.last + self.call(step, purpose, str(batch.number)))
        failure = self.merge(step, Purpose.MERGE_FAILURE, patches[Source.FAILURE])
        success = self.merge(step, Purpose.MERGE_SUCCESS, patches[Source.SUCCESS])
        merged = max(failure, success) + self.call(step, Purpose.MERGE_FINAL, "")
        return max(merged + self.call(step, Purpose.RANK, ""), *ends.values())

    def merge(self, step: bytes, purpose: Purpose, waiting: list[float]) -> float:
        size, level = self.project.config.skill.merge_size, 0
        while len(waiting) > 1:
            level += 1
            groups = [waiting[start : start + size] for start in range(0, len(waiting), size)]
            waiting = [
                max(group) + self.call(step, purpose, f"{level}.{number}") for number, group in enumerate(groups)
            ]
        return waiting[0] if waiting else 0.0

    def call(self, step: bytes, purpose: Purpose, place: str) -> float:
        return self.seconds.get(content_key("optimizer", step, purpose, place), 0.0)


class Arrivals:
    """What is in a minibatch is certain when all before its last member have arrived, for they could be in it too."""

    def __init__(self) -> None:
        self.last = 0.0

    async def at(self, end: float, trajectory: Trajectory) -> Trajectory:
        self.last = max(self.last, end)
        return trajectory


def measure(slow_share: float, seed: int) -> dict[str, Any]:
    arguments = ["--script", "simulated:answer", "--latency-ms", "50", "--slow-share", str(slow_share), "--core", "1"]
    with tempfile.TemporaryDirectory() as folder, MockServer(*arguments) as server:
        base = Path(folder)
        path = write_project(base, server.base_url, in_flight=1024)
        config = load_config(
            path, [f"train.seed={seed}", "skill.slow_update=false", "skill.memory=false", "gate.chunk=1000"]
        )
        project = prepare(config, base, environ={KEY_VARIABLE: KEY})
        models = TracedModels({KEY_VARIABLE: KEY}, base)
        project = msgspec.structs.replace(project, models=models)
        run = base / "runs" / "run-1"
        began, cpu = time.perf_counter(), time.process_time()
        report = asyncio.run(train(project, run))
        wall, cpu = time.perf_counter() - began, time.process_time() - cpu
        delays = server.delays()
        seconds = {salt: sum(delays[key] for key in keys if key in delays) for salt, keys in models.keys.items()}
        ideal = asyncio.run(Ideal(project, report, run, seconds).finish())
        sent = server.stats()["requests"]
    return {
        "slow calls": f"{slow_share:.0%}",
        "seed": seed,
        "steps": len(report.steps),
        "calls": len(delays),
        "sent again": sent - len(delays),
        "ideal s": ideal,
        "wall s": wall,
        "ratio": wall / ideal,
        "limit": LIMITS[slow_share],
        "cpu ms/call": 1000 * cpu / len(delays),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=3)
    options = parser.parse_args()
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, {0})
    rows = [measure(share, seed) for share in LIMITS for seed in range(1, options.seeds + 1)]
    text = table(rows)
    print(text)
    write_results("critical_path", rows, text)


if __name__ == "__main__":
    main()
