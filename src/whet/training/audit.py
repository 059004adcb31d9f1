"""Before training: is the verifier any good, is the suite large enough, what will it cost?

`probing` tries the verifier task by task. What is here reads suite and bill off a few rollouts of the starting policy,
which are stored like any others, so the training that follows does not play them again. Pure.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

import msgspec

from whet.core import Task, Trajectory
from whet.gate import Interval, smallest_gain, tasks_needed, wilson


class Suite(msgspec.Struct, frozen=True):
    """What the starting policy, played twice on each selection task, shows of the tasks."""

    tasks: int
    rate: float
    interval: Interval
    flips: int
    """Tasks whose verdict differed between two identical tries."""
    always: tuple[str, ...]
    never: tuple[str, ...]
    twins: tuple[tuple[str, str], ...]
    """Tasks of different splits that say the same but for case, space and punctuation."""
    sees: float | None
    """The smallest gain that these tasks show with power 0.8; None: no gain is shown so reliably."""
    needed_for_five_points: int


class Bill(msgspec.Struct, frozen=True):
    """What the training will take at most, from a few sample rollouts."""

    rollouts: int
    calls: int
    tokens: int
    usd: float | None
    minutes: float


def audit_suite(
    selection: Sequence[Task],
    others: Sequence[Task],
    first: Sequence[Trajectory],
    second: Sequence[Trajectory],
) -> Suite:
    """`first` and `second` are two identical plays of `selection`."""
    passed = [int(a.hard) + int(b.hard) for a, b in zip(first, second, strict=True)]
    total = sum(passed)
    flips = passed.count(1)
    noise = flips / max(1, len(passed))
    return Suite(
        tasks=len(selection),
        rate=total / max(1, 2 * len(passed)),
        interval=wilson(total, 2 * len(passed)),
        flips=flips,
        always=tuple(task.id for task, count in zip(selection, passed, strict=True) if count == 2),
        never=tuple(task.id for task, count in zip(selection, passed, strict=True) if count == 0),
        twins=find_twins([*selection, *others]),
        sees=smallest_gain(len(selection), noise),
        needed_for_five_points=tasks_needed(0.05, noise),
    )


def make_bill(
    sample: Sequence[Trajectory], seconds: float, *, rollouts: int, optimizer_calls: int, usd_per_rollout: float | None
) -> Bill:
    """`sample` are a few rollouts that took `seconds` of calls together, played as densely as the training will."""
    count = max(1, len(sample))
    turns = sum(one.turns for one in sample) / count
    tokens = sum(one.usage.input_tokens + one.usage.output_tokens for one in sample) / count
    return Bill(
        rollouts=rollouts,
        calls=round(rollouts * turns) + optimizer_calls,
        tokens=round(rollouts * tokens),
        usd=None if usd_per_rollout is None else rollouts * usd_per_rollout,
        minutes=rollouts * seconds / count / 60,
    )


def find_twins(tasks: Sequence[Task]) -> tuple[tuple[str, str], ...]:
    """Pairs of tasks in different splits that differ only in case, space and punctuation."""
    seen: dict[str, Task] = {}
    twins: list[tuple[str, str]] = []
    for task in tasks:
        text = " ".join(re.findall(r"\w+", msgspec.json.encode(task.inputs, order="sorted").decode().casefold()))
        other = seen.setdefault(text, task)
        if other.split is not task.split:
            twins.append((other.id, task.id))
    return tuple(twins)
