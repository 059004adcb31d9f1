"""Plays what a gate's rule asks for, and hands it the evidence."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

import msgspec

from whet.core import Policy, Priority, Purpose, Ruling, Task, Trajectory, seed_from
from whet.gate import Arm, Ask, Evidence, PlannedPlay, make_rule
from whet.rollout import Engine
from whet.training.config import GateSettings
from whet.training.monitor import Stage


async def judge(
    engine: Engine,
    settings: GateSettings,
    tasks: Sequence[Task],
    candidate: Policy,
    incumbent: Policy,
    best: float | None,
    stage: Stage,
    *,
    first_sample: int = 0,
) -> tuple[Ruling, int]:
    """Compare `candidate` with `incumbent` on the selection tasks.

    Samples of the incumbent before `first_sample` are what got it chosen. Gives the ruling, and the first sample that
    was not looked at.
    """
    by_id = {task.id: task for task in tasks}
    policies = {Arm.CANDIDATE: candidate, Arm.INCUMBENT: incumbent}
    rule = make_rule(
        settings.rule,
        tasks=list(by_id),
        metric=settings.metric,
        mix=settings.mix,
        best=best,
        level=settings.level,
        max_passes=settings.max_passes,
        seed=seed_from(candidate.fingerprint, incumbent.fingerprint),
        chunk=settings.chunk,
        first_sample=first_sample,
    )
    evidence = Evidence()
    fresh = first_sample

    async def play(asked: PlannedPlay) -> Trajectory:
        played = await engine.play(policies[asked.arm], by_id[asked.task], sample=asked.sample)
        stage.done += asked.arm is Arm.CANDIDATE
        return played

    while isinstance(step := rule.next(evidence), Ask):
        async with asyncio.TaskGroup() as plays:
            started = [plays.create_task(play(asked)) for asked in step.plays]
        for asked, played in zip(step.plays, started, strict=True):
            outcome = played.result()
            evidence.add(asked.task, asked.arm, asked.sample, hard=outcome.hard, soft=outcome.soft)
            fresh = max(fresh, asked.sample + 1)
    return step, fresh


BACKGROUND_WIDTH = 16
"""Episodes that nothing waits for are played in the pauses of the others: few at once, so as not to delay them."""


async def play_all(
    engine: Engine,
    policy: Policy,
    tasks: Sequence[Task],
    stage: Stage,
    *,
    sample: int = 0,
    priority: Priority = Priority.CRITICAL,
    purpose: Purpose = Purpose.ROLLOUT,
) -> list[Trajectory]:
    """One try at each task, in the order of `tasks` whatever the order of their ends."""
    played: list[Trajectory | None] = [None] * len(tasks)
    waiting = iter(enumerate(tasks))

    async def work() -> None:
        # Each takes the next task when it is done with one, so no more tasks are alive than can play.
        for number, task in waiting:
            played[number] = await engine.play(policy, task, sample=sample, priority=priority, purpose=purpose)
            stage.done += 1

    width = BACKGROUND_WIDTH if priority is Priority.BACKGROUND else engine.width
    async with asyncio.TaskGroup() as workers:
        for _ in range(min(width, len(tasks))):
            workers.create_task(work())
    return [trajectory for trajectory in played if trajectory is not None]


def not_worse(measured: Ruling, best: float | None) -> Ruling:
    """The ruling on a shorter candidate that was measured in full: it is taken unless something is lost."""
    accepted = measured.candidate >= measured.incumbent
    lost = f"it scores {measured.candidate:.4f}, the longer one {measured.incumbent:.4f}"
    return msgspec.structs.replace(
        measured,
        accepted=accepted,
        new_best=accepted and (best is None or measured.candidate >= best),
        reason=f"nothing is lost: {lost}" if accepted else f"something is lost: {lost}",
    )
