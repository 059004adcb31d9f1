"""The skill lever: reflect on what happened, merge what was learned, select what fits the budget, apply it."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Sequence

import msgspec

from whet.core import (
    Edit,
    EditResult,
    Patch,
    Policy,
    Proposal,
    Purpose,
    Ruling,
    Source,
    Step,
    Task,
    Trajectory,
    content_key,
)
from whet.learners.skill.answers import BudgetAnswer, RankAnswer, ReflectAnswer
from whet.learners.skill.appendix import add_notes, consolidate
from whet.learners.skill.budget import edit_budget
from whet.learners.skill.buffer import BufferEntry, make_entry, show_buffer
from whet.learners.skill.epoch import EpochEnd, Play, compare, remember, slow_update
from whet.learners.skill.evidence import show_edits, show_trajectories
from whet.learners.skill.merge import MergeTree, merge_final
from whet.learners.skill.minibatch import Minibatch, minibatches
from whet.learners.skill.optimizer import Advisor, Optimizer, section
from whet.learners.skill.rewriting import apply
from whet.learners.skill.screening import most_promising
from whet.learners.skill.settings import AppendixSource, Schedule, SkillSettings, UpdateMode
from whet.learners.skill.tidying import tidied
from whet.learners.skill.trials import Trials, Tried

_PURPOSE = {Source.FAILURE: Purpose.REFLECT_FAILURE, Source.SUCCESS: Purpose.REFLECT_SUCCESS}


class SkillLearner:
    """Proposes changes to the policy's skill with the help of an optimizer model.

    It remembers the steps of the epoch and what earlier epochs taught; both follow from what was played and answered,
    so a resumed training comes to the same.
    """

    def __init__(self, advisor: Advisor, settings: SkillSettings, play: Play) -> None:
        self._advisor = advisor
        self._settings = settings
        self._play = play
        self._buffer: list[BufferEntry] = []
        self._epoch = 0
        self._memory = ""

    async def propose(
        self, incumbent: Policy, tasks: Sequence[Task], evidence: Sequence[Awaitable[Trajectory]], step: Step
    ) -> Proposal:
        """`evidence` is in the order of `tasks` and still arriving; the outcome does not depend on how it arrives."""
        self._enter(step.epoch)
        arriving = [asyncio.ensure_future(trajectory) for trajectory in evidence]
        draws = [step.key, *(content_key("proposal", step.key, n) for n in range(1, self._settings.proposals))]
        async with asyncio.TaskGroup() as drawing:
            trials = self._trials(drawing, incumbent, tasks, arriving)
            drawn = [drawing.create_task(self._draw(incumbent, arriving, trials, step, key)) for key in draws]
        proposals = [proposal.result() for proposal in drawn]
        return await most_promising(proposals, tasks[: self._settings.screen_tasks], self._play)

    async def conclude(
        self,
        current: Policy,
        proposal: Proposal,
        ruling: Ruling | None,
        trajectories: Sequence[Trajectory],
        step: Step,
    ) -> Policy:
        """Remember how a step came out. Gives the policy to go on with: reminders are kept whatever was ruled."""
        self._buffer.append(make_entry(step.number, trajectories, proposal, ruling))
        skill = add_notes(current.skill, proposal.notes)
        if skill.fingerprint == current.skill.fingerprint:
            return current
        optimizer = self._advisor.at(step.key, self._memory)
        return current.with_skill(await consolidate(optimizer, skill, self._settings.consolidate_above))

    async def end_epoch(self, end: EpochEnd, tasks: Sequence[Task]) -> Proposal:
        """Guidance and memory from comparing two policies on the same train tasks."""
        settings = self._settings
        if not (settings.slow_update or settings.memory):
            return Proposal(None, skipped="skip_off")
        pairs = await compare(end, tasks, self._play, settings)
        optimizer = self._advisor.at(end.key, self._memory)
        async with asyncio.TaskGroup() as asking:
            guidance = asking.create_task(slow_update(optimizer, end, pairs)) if settings.slow_update else None
            memory = asking.create_task(remember(optimizer, end, pairs, self._memory)) if settings.memory else None
        if memory is not None:
            self._memory = memory.result()
        return Proposal(None, skipped="skip_off") if guidance is None else guidance.result()

    async def join(self, start: Policy, one: Sequence[Edit], other: Sequence[Edit], key: bytes) -> Proposal:
        """What two policies learned since `start`, in one. Only edits can be joined, not whole documents."""
        if self._settings.update is not UpdateMode.PATCH or not one or not other:
            return Proposal(None, skipped="skip_no_patches")
        optimizer = self._advisor.at(key, self._memory)
        merged = await merge_final(optimizer, start.skill.text, Patch("", tuple(one)), Patch("", tuple(other)))
        edits = merged.edits if merged is not None else ()
        return await self._candidate(optimizer, start, merged, edits, None, ())

    async def tidy(self, current: Policy, key: bytes) -> Proposal:
        """A shorter skill that should do as well."""
        return await tidied(self._advisor.at(key, self._memory), current)

    def _enter(self, epoch: int) -> None:
        """The step buffer is an epoch's own."""
        if epoch != self._epoch:
            self._epoch = epoch
            self._buffer.clear()

    def _trials(
        self,
        group: asyncio.TaskGroup,
        incumbent: Policy,
        tasks: Sequence[Task],
        evidence: Sequence[asyncio.Future[Trajectory]],
    ) -> Trials | None:
        most = self._settings.try_edits
        return Trials(group, incumbent, tasks, evidence, most, self._play) if most else None

    async def _draw(
        self,
        incumbent: Policy,
        evidence: Sequence[asyncio.Future[Trajectory]],
        trials: Trials | None,
        step: Step,
        key: bytes,
    ) -> Proposal:
        settings = self._settings
        optimizer = self._advisor.at(key, self._memory)
        budget = edit_budget(settings, step.number, step.total)
        history = section("Earlier steps of this epoch", show_buffer(self._buffer))
        skill = incumbent.skill.text
        reflections: list[asyncio.Task[_Reflection]] = []
        async with asyncio.TaskGroup() as reading:
            trees = {source: MergeTree(reading, optimizer, skill, source, settings.merge_size) for source in Source}
            async for batch in minibatches(evidence, settings.minibatch_size, key):
                if batch.source is Source.FAILURE or not settings.failure_only:
                    reflection = reading.create_task(self._reflect(optimizer, skill, batch, budget, history))
                    reflections.append(reflection)
                    trees[batch.source].add(reading.create_task(_patch_of(reflection)))
            failure, success = await asyncio.gather(*(trees[source].finish() for source in Source))
        merged = await merge_final(optimizer, skill, failure, success)
        edits = () if merged is None else merged.edits
        tried = Tried(edits) if trials is None else await trials.sort_out(edits)
        budget, edits = await self._select(optimizer, skill, tried.kept, budget)
        notes = tuple(note for done in reflections for note in done.result().notes)
        proposal = await self._candidate(optimizer, incumbent, merged, edits, budget, notes)
        return _with_left_out(proposal, tried.left_out)

    async def _reflect(
        self, optimizer: Optimizer, skill: str, batch: Minibatch, budget: int | None, history: str
    ) -> _Reflection:
        inputs = {
            "skill": skill or "(empty)",
            "budget": "as many as are needed" if budget is None else str(budget),
            "form": optimizer.prompt(f"reflect_form_{optimizer.mode}"),
            "sorting": self._sorting(optimizer, batch.source),
            "history": history,
            "trajectories": show_trajectories(batch.trajectories),
        }
        answer = await optimizer.ask(
            _PURPOSE[batch.source],
            inputs,
            ReflectAnswer,
            place=str(batch.number),
            instead="this minibatch teaches nothing",
        )
        if answer is None:
            return _Reflection(None)
        items = answer.patch.of(optimizer.mode)
        tasks = tuple(dict.fromkeys(trajectory.task for trajectory in batch.trajectories))
        edits = tuple(
            msgspec.structs.replace(edit, source=batch.source, support=len(batch.trajectories), tasks=tasks)
            for edit in (items if budget is None else items[:budget])
        )
        patterns = tuple(pattern.as_pattern() for pattern in answer.failure_summary or ())
        wanted = bool(inputs["sorting"])
        return _Reflection(
            Patch(answer.patch.reasoning, edits, patterns), (answer.appendix_notes or ()) if wanted else ()
        )

    def _sorting(self, optimizer: Optimizer, source: Source) -> str:
        settings = self._settings
        only_failures = settings.appendix_source is AppendixSource.FAILURE_ONLY
        if not settings.skill_aware or (source is Source.SUCCESS and only_failures):
            return ""
        return "\n\n" + optimizer.prompt("sorting")

    async def _select(
        self, optimizer: Optimizer, skill: str, edits: tuple[Edit, ...], budget: int | None
    ) -> tuple[int | None, tuple[Edit, ...]]:
        if self._settings.schedule is Schedule.AUTONOMOUS and edits and optimizer.mode is not UpdateMode.FULL_REWRITE:
            budget = await _asked_budget(optimizer, skill, edits)
        if budget is None or len(edits) <= budget:
            return budget, edits
        return budget, await _ranked(optimizer, skill, edits, budget) if budget else ()

    async def _candidate(
        self,
        optimizer: Optimizer,
        incumbent: Policy,
        merged: Patch | None,
        edits: tuple[Edit, ...],
        budget: int | None,
        notes: tuple[str, ...],
    ) -> Proposal:
        changed = await apply(optimizer, incumbent.skill, edits, self._settings.max_tokens) if edits else None
        said = Proposal(
            None,
            reasoning=merged.reasoning if merged else "",
            patterns=merged.failure_summary if merged else (),
            skipped="skip_no_rewrite" if edits else "skip_no_patches",
            fallbacks=optimizer.fallbacks,
            notes=notes,
            budget=budget,
        )
        if changed is None:
            return said
        skill, results = changed
        if skill.fingerprint == incumbent.skill.fingerprint:
            return msgspec.structs.replace(said, edits=results, skipped="skip_no_change")
        return msgspec.structs.replace(said, candidate=incumbent.with_skill(skill), edits=results, skipped="")


class _Reflection(msgspec.Struct, frozen=True):
    patch: Patch | None
    notes: tuple[str, ...] = ()


def _with_left_out(proposal: Proposal, left_out: tuple[EditResult, ...]) -> Proposal:
    if not left_out:
        return proposal
    skipped = "skip_no_help" if proposal.skipped == "skip_no_patches" else proposal.skipped
    return msgspec.structs.replace(proposal, edits=(*proposal.edits, *left_out), skipped=skipped)


async def _patch_of(reflection: asyncio.Task[_Reflection]) -> Patch | None:
    return (await reflection).patch


async def _asked_budget(optimizer: Optimizer, skill: str, edits: Sequence[Edit]) -> int:
    """As many of the items as the optimizer says, knowing them but no default."""
    inputs = {"skill": skill or "(empty)", "edits": show_edits(edits)}
    answer = await optimizer.ask(Purpose.BUDGET, inputs, BudgetAnswer, place="", instead="nothing is applied")
    return min(len(edits), answer.edits) if answer is not None else 0


async def _ranked(optimizer: Optimizer, skill: str, edits: Sequence[Edit], budget: int) -> tuple[Edit, ...]:
    """The optimizer's first choices; without a usable answer, those with the most support."""
    inputs = {"skill": skill or "(empty)", "budget": str(budget), "edits": show_edits(edits)}
    answer = await optimizer.ask(
        Purpose.RANK, inputs, RankAnswer, place="", instead="those with the most support are taken"
    )
    if answer is not None:
        chosen = [index for index in dict.fromkeys(answer.selected_indices) if 0 <= index < len(edits)]
        if chosen:
            return tuple(edits[index] for index in chosen[:budget])
        optimizer.fell_back(Purpose.RANK, "", "no index is one of the list; those with the most support are taken")
    by_support = sorted(range(len(edits)), key=lambda index: (-edits[index].support, index))
    return tuple(edits[index] for index in by_support[:budget])
