"""Before training: is the verifier any good, is the suite large enough, what will it cost?

The verifier is probed task by task without a model. The suite and the bill are read off a few rollouts of the starting
policy, which are stored like any others, so the training that follows does not play them again.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable, Sequence
from enum import StrEnum
from typing import Any

import msgspec

from whet.core import Split, Task, Trajectory, Verdict, World, WorldFault, seed_from
from whet.gate import Interval, smallest_gain, tasks_needed, wilson

TALK = "I have completed the task."


class Probe(StrEnum):
    """An agent that is none, and what the verifier must say of it."""

    DO_NOTHING = "do_nothing"
    TALK_ONLY = "talk_only"
    KNOWN_GOOD = "known_good"
    DAMAGED = "damaged"
    REPEATED = "repeated"


class Outcome(StrEnum):
    SOUND = "sound"
    OFFENDING = "offending"
    ABSENT = "absent"
    """The world has no known-good answer to try."""
    BROKEN = "broken"
    """The world failed instead of judging."""


class TaskAudit(msgspec.Struct, frozen=True):
    task: str
    split: Split
    outcomes: dict[Probe, Outcome]
    note: str = ""
    """The offending case, to look at."""

    @property
    def sound(self) -> bool:
        return not any(outcome in (Outcome.OFFENDING, Outcome.BROKEN) for outcome in self.outcomes.values())


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


async def audit_verifier(world: World, tasks: Sequence[Task], *, width: int = 32) -> list[TaskAudit]:
    """Probe each task; in the order of `tasks`."""
    places = asyncio.Semaphore(width)

    async def one(task: Task) -> TaskAudit:
        async with places:
            return await _audit_task(world, task)

    async with asyncio.TaskGroup() as probing:
        probed = [probing.create_task(one(task)) for task in tasks]
    return [audit.result() for audit in probed]


async def _audit_task(world: World, task: Task) -> TaskAudit:
    good = _known_good(world, task)
    outcomes: dict[Probe, Outcome] = {}
    notes: list[str] = []

    async def expect(probe: Probe, answer: str, right: Callable[[Verdict], bool]) -> None:
        try:
            verdict = await _judged(world, task, answer)
        except WorldFault as fault:
            outcomes[probe] = Outcome.BROKEN
            notes.append(f"{probe}: {fault.message}")
            return
        outcomes[probe] = Outcome.SOUND if right(verdict) else Outcome.OFFENDING
        if not right(verdict):
            said = "passed" if verdict.hard else f"failed ({verdict.feedback or 'no reason'})"
            notes.append(f"{probe}: {answer[:80]!r} {said}")

    await expect(Probe.DO_NOTHING, "", _failed)
    await expect(Probe.TALK_ONLY, TALK, _failed)
    if good is None:
        outcomes |= dict.fromkeys((Probe.KNOWN_GOOD, Probe.DAMAGED), Outcome.ABSENT)
    else:
        await expect(Probe.KNOWN_GOOD, good, lambda verdict: verdict.hard)
        await expect(Probe.DAMAGED, damaged(good), _failed)
    await _repeat(world, task, good if good is not None else TALK, outcomes, notes)
    return TaskAudit(task.id, task.split, outcomes, "; ".join(notes))


async def _repeat(world: World, task: Task, answer: str, outcomes: dict[Probe, Outcome], notes: list[str]) -> None:
    try:
        first, second = await _judged(world, task, answer), await _judged(world, task, answer)
    except WorldFault as fault:
        outcomes[Probe.REPEATED] = Outcome.BROKEN
        notes.append(f"{Probe.REPEATED}: {fault.message}")
        return
    same = (first.hard, first.soft) == (second.hard, second.soft)
    outcomes[Probe.REPEATED] = Outcome.SOUND if same else Outcome.OFFENDING
    if not same:
        notes.append(f"{Probe.REPEATED}: {answer[:80]!r} was judged {first.soft:g}, then {second.soft:g}")


def _failed(verdict: Verdict) -> bool:
    return not verdict.hard


async def _judged(world: World, task: Task, answer: str) -> Verdict:
    session = await world.open(task, seed_from(task.fingerprint, "audit"))
    try:
        return await session.judge(answer)
    finally:
        await session.close()


def _known_good(world: World, task: Task) -> str | None:
    known_good: Any = getattr(world, "known_good", None)
    answer: Any = known_good(task) if callable(known_good) else None
    return None if answer is None else str(answer)


_NUMBER = re.compile(r"\d+(?:\.\d+)?")


def damaged(answer: str) -> str:
    """A good answer made wrong in one place: its last number, or else its last word."""
    numbers = list(_NUMBER.finditer(answer))
    if numbers:
        last = numbers[-1]
        # Far enough off for any tolerance, and below a limit that a game may set, so that it stays an answer.
        wrong = "0" if float(last.group()) != 0 else "7"
        return answer[: last.start()] + wrong + answer[last.end() :]
    words = answer.split()
    return " ".join([*words[:-1], f"not{words[-1]}"]) if words else "something"


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
