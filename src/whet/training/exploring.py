"""Answers that nobody proposed: drawn by the world from all that it allows, judged, and learned from like others."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from whet.core import ConfigError, End, Task, Trajectory, World, assistant, seed_from, user

EXPLORED = "explored"
"""Stands where a trajectory names the policy that played it."""


def require_explorable(world: World, tasks: Sequence[Task]) -> None:
    """Raises ConfigError where the world draws no answers."""
    if not tasks or _drawn(world, tasks[0], 0) is None:
        raise ConfigError(f"adapter.explore: {world.name} cannot draw answers", hint="Leave it at 0.")


async def explore(world: World, tasks: Sequence[Task], count: int, seed: int) -> list[Trajectory]:
    """`count` drawn answers for each task, with their verdicts; the same seed draws the same."""
    tried: list[Trajectory] = []
    for task in tasks:
        for number in range(count):
            answer = _drawn(world, task, seed_from(task.fingerprint, EXPLORED, seed, number))
            tried.append(await _judged(world, task, answer or "", number))
    return tried


async def _judged(world: World, task: Task, answer: str, number: int) -> Trajectory:
    session = await world.open(task, seed_from(task.fingerprint, number))
    try:
        brief = session.brief.text
        verdict = await session.judge(answer)
    finally:
        await session.close()
    said = (user(brief), assistant(answer))
    return Trajectory(
        EXPLORED, task.id, task.split, number, said, answer, End.ANSWERED, verdict, turns=1, kind=task.kind
    )


def _drawn(world: World, task: Task, seed: int) -> str | None:
    offered: Any = getattr(world, "explore", None)
    if not callable(offered):
        return None
    answer: Any = offered(task, seed)
    return None if answer is None else str(answer)
