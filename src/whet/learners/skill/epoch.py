"""The end of an epoch: the same tasks with the policy of an epoch ago and with today's, and what that teaches."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from random import Random

import msgspec

from whet.core import SKILL_FILE, Edit, EditResult, EditStatus, Policy, Proposal, Purpose, Task, Trajectory, seed_from
from whet.learners.skill.answers import MemoryAnswer, SlowUpdateAnswer
from whet.learners.skill.optimizer import Optimizer
from whet.learners.skill.pairs import Pair, kept, show_pairs
from whet.learners.skill.regions import SLOW_UPDATE, region, with_region
from whet.learners.skill.settings import PairPolicy, SkillSettings

Play = Callable[[Policy, Sequence[Task], int], Awaitable[Sequence[Trajectory]]]
"""Plays train tasks with a policy, in their order; the number is the sample, 0 for the first try at a task."""


class EpochEnd(msgspec.Struct, frozen=True):
    """The policies that are compared, and the epoch's own key."""

    number: int
    key: bytes
    previous: Policy
    current: Policy


async def compare(end: EpochEnd, tasks: Sequence[Task], play: Play, settings: SkillSettings) -> tuple[Pair, ...]:
    """`slow_samples` pairs that the pair policy keeps; `changed` is topped up from the rest, many at a time."""
    order = list(tasks)
    Random(seed_from(end.key, "pairs")).shuffle(order)
    found: list[Pair] = []
    while order and len(found) < settings.slow_samples:
        batch, order = order[: settings.slow_samples], order[settings.slow_samples :]
        before, after = await asyncio.gather(play(end.previous, batch, 0), play(end.current, batch, 0))
        pairs = [Pair(a, b) for a, b in zip(before, after, strict=True)]
        found += kept(pairs, settings.pairs)
        if settings.pairs is not PairPolicy.CHANGED:
            break
    return tuple(found[: settings.slow_samples])


async def slow_update(optimizer: Optimizer, end: EpochEnd, pairs: Sequence[Pair]) -> Proposal:
    """Guidance that outlasts steps, in a region that steps cannot touch."""
    if not pairs:
        return Proposal(None, skipped="skip_no_pairs")
    guidance = region(end.current.skill.text, SLOW_UPDATE)
    inputs = {
        "previous_skill": end.previous.skill.text or "(empty)",
        "skill": end.current.skill.text or "(empty)",
        "guidance": guidance or "(none yet)",
        "pairs": show_pairs(pairs),
    }
    answer = await optimizer.ask(
        Purpose.SLOW_UPDATE, inputs, SlowUpdateAnswer, place="", instead="the guidance stays as it is"
    )
    content = answer.slow_update_content.strip() if answer is not None else ""
    text = with_region(end.current.skill.text, SLOW_UPDATE, content) if content else end.current.skill.text
    if text == end.current.skill.text:
        return Proposal(None, skipped="skip_no_change", fallbacks=optimizer.fallbacks)
    edit = Edit("replace", "SLOW_UPDATE", content)
    return Proposal(
        end.current.with_skill(end.current.skill.with_file(SKILL_FILE, text)),
        (EditResult(edit, EditStatus.APPLIED),),
        answer.reasoning if answer is not None else "",
        fallbacks=optimizer.fallbacks,
    )


async def remember(optimizer: Optimizer, end: EpochEnd, pairs: Sequence[Pair], memory: str) -> str:
    """What the optimizer should know of its own work; the agent never sees it."""
    if not pairs:
        return memory
    inputs = {
        "previous_skill": end.previous.skill.text or "(empty)",
        "skill": end.current.skill.text or "(empty)",
        "pairs": show_pairs(pairs),
    }
    answer = await optimizer.ask(Purpose.MEMORY, inputs, MemoryAnswer, place="", instead="the memory stays as it is")
    return answer.meta_skill_content.strip() if answer is not None else memory
