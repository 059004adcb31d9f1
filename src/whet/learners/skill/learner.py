"""The skill lever: reflect on what happened, merge what was learned, select what fits the budget, apply it."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Sequence

import msgspec

from whet.core import (
    Edit,
    Model,
    Patch,
    Policy,
    Proposal,
    Purpose,
    Sampling,
    Source,
    Step,
    Trajectory,
)
from whet.learners.skill.answers import RankAnswer, ReflectAnswer
from whet.learners.skill.budget import edit_budget
from whet.learners.skill.evidence import show_edits, show_trajectories
from whet.learners.skill.merge import MergeTree, merge_final
from whet.learners.skill.minibatch import Minibatch, minibatches
from whet.learners.skill.optimizer import Optimizer
from whet.learners.skill.patcher import apply_edits
from whet.learners.skill.settings import SkillSettings

_PURPOSE = {Source.FAILURE: Purpose.REFLECT_FAILURE, Source.SUCCESS: Purpose.REFLECT_SUCCESS}


class SkillLearner:
    """Proposes edits to the policy's skill with the help of an optimizer model."""

    def __init__(self, model: Model, sampling: Sampling, settings: SkillSettings) -> None:
        self._model = model
        self._sampling = sampling
        self._settings = settings

    async def propose(self, incumbent: Policy, evidence: Sequence[Awaitable[Trajectory]], step: Step) -> Proposal:
        settings = self._settings
        optimizer = Optimizer(self._model, self._sampling, step.key)
        budget = edit_budget(settings, step.number, step.total)
        skill = incumbent.skill.text
        async with asyncio.TaskGroup() as tasks:
            trees = {source: MergeTree(tasks, optimizer, skill, source, settings.merge_size) for source in Source}
            async for batch in minibatches(evidence, settings.minibatch_size, step.key):
                if batch.source is Source.FAILURE or not settings.failure_only:
                    trees[batch.source].add(tasks.create_task(_reflect_on(optimizer, skill, batch, budget)))
            failure, success = await asyncio.gather(*(trees[source].finish() for source in Source))
        merged = await merge_final(optimizer, skill, failure, success)
        edits = await _select(optimizer, skill, merged, budget)
        return _proposal(incumbent, merged, edits, optimizer.fallbacks)


async def _reflect_on(optimizer: Optimizer, skill: str, batch: Minibatch, budget: int | None) -> Patch | None:
    inputs = {
        "skill": skill or "(empty)",
        "budget": "as many as are needed" if budget is None else str(budget),
        "trajectories": show_trajectories(batch.trajectories),
    }
    answer = await optimizer.ask(
        _PURPOSE[batch.source], inputs, ReflectAnswer, place=str(batch.number), instead="this minibatch teaches nothing"
    )
    if answer is None:
        return None
    patch = answer.as_patch()
    edits = patch.edits if budget is None else patch.edits[:budget]
    tag = {"source": batch.source, "support": len(batch.trajectories)}
    return msgspec.structs.replace(patch, edits=tuple(msgspec.structs.replace(edit, **tag) for edit in edits))


async def _select(optimizer: Optimizer, skill: str, merged: Patch | None, budget: int | None) -> tuple[Edit, ...]:
    """At most `budget` edits, the optimizer's first choices; without a usable answer, those with the most support."""
    edits = () if merged is None else merged.edits
    if budget is None or len(edits) <= budget:
        return edits
    if budget == 0:
        return ()
    inputs = {"skill": skill or "(empty)", "budget": str(budget), "edits": show_edits(edits)}
    answer = await optimizer.ask(
        Purpose.RANK, inputs, RankAnswer, place="", instead="those with the most support are taken"
    )
    if answer is not None:
        chosen = [index for index in dict.fromkeys(answer.selected_indices) if 0 <= index < len(edits)]
        if chosen:
            return tuple(edits[index] for index in chosen[:budget])
    by_support = sorted(range(len(edits)), key=lambda index: (-edits[index].support, index))
    return tuple(edits[index] for index in by_support[:budget])


def _proposal(incumbent: Policy, merged: Patch | None, edits: tuple[Edit, ...], fallbacks: tuple[str, ...]) -> Proposal:
    reasoning = merged.reasoning if merged is not None else ""
    patterns = merged.failure_summary if merged is not None else ()
    if not edits:
        return Proposal(None, (), reasoning, patterns, "skip_no_patches", fallbacks)
    skill, results = apply_edits(incumbent.skill, edits)
    if skill.fingerprint == incumbent.skill.fingerprint:
        return Proposal(None, results, reasoning, patterns, "skip_no_change", fallbacks)
    return Proposal(incumbent.with_skill(skill), results, reasoning, patterns, "", fallbacks)
