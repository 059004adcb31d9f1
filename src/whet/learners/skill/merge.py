"""Joins patches: in groups, level by level, failures and successes apart, then once with failures first."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import TypeAlias

import msgspec

from whet.core import Edit, Patch, Purpose, Source
from whet.learners.skill.answers import MergeAnswer
from whet.learners.skill.evidence import show_patches
from whet.learners.skill.optimizer import Optimizer

PatchTask: TypeAlias = "asyncio.Task[Patch | None]"

_PURPOSE = {Source.FAILURE: Purpose.MERGE_FAILURE, Source.SUCCESS: Purpose.MERGE_SUCCESS}


class MergeTree:
    """The patches of one source, merged in groups of `size`, and the results again, until one is left.

    A group is sent as soon as its own patches are there, while others are still being written.
    """

    def __init__(self, tasks: asyncio.TaskGroup, optimizer: Optimizer, skill: str, source: Source, size: int) -> None:
        self._tasks = tasks
        self._optimizer = optimizer
        self._skill = skill
        self._source = source
        self._size = size
        self._open: list[list[PatchTask]] = [[]]
        self._closed: list[int] = [0]

    def add(self, patch: PatchTask, level: int = 0) -> None:
        self._open[level].append(patch)
        if len(self._open[level]) == self._size:
            self._close(level)

    async def finish(self) -> Patch | None:
        """No more patches will be added."""
        level = 0
        while self._closed[level] or len(self._open[level]) > 1:
            if self._open[level]:
                self._close(level)
            level += 1
        return await self._open[level][0] if self._open[level] else None

    def _close(self, level: int) -> None:
        members, number = self._open[level], self._closed[level]
        if level + 1 == len(self._open):
            self._open.append([])
            self._closed.append(0)
        self._open[level] = []
        self._closed[level] += 1
        merging = _merge_group(self._optimizer, self._skill, self._source, members, level + 1, number)
        self.add(self._tasks.create_task(merging), level + 1)


async def merge_final(optimizer: Optimizer, skill: str, failure: Patch | None, success: Patch | None) -> Patch | None:
    if failure is None or success is None:
        return failure or success
    if not failure.edits or not success.edits:
        # Nothing to join, but what the failures had in common is still worth telling.
        kept = failure if failure.edits else success
        return msgspec.structs.replace(kept, failure_summary=(*failure.failure_summary, *success.failure_summary))
    level = 1 + max(edit.merge_level for edit in (*failure.edits, *success.edits))
    inputs = {
        "skill": skill or "(empty)",
        "form": optimizer.prompt(f"merge_form_{optimizer.mode}"),
        "failure_patch": show_patches([failure]),
        "success_patch": show_patches([success]),
    }
    answer = await optimizer.ask(
        Purpose.MERGE_FINAL, inputs, MergeAnswer, place="", instead="joined as they are, failures first"
    )
    return _joined(optimizer, [failure, success], answer, None, level)


async def _merge_group(
    optimizer: Optimizer,
    skill: str,
    source: Source,
    members: Sequence[PatchTask],
    level: int,
    number: int,
) -> Patch | None:
    arrived = [await member for member in members]
    patches = [patch for patch in arrived if patch is not None and patch.edits]
    if len(patches) < 2:
        return patches[0] if patches else None
    answer = await optimizer.ask(
        _PURPOSE[source],
        {
            "skill": skill or "(empty)",
            "form": optimizer.prompt(f"merge_form_{optimizer.mode}"),
            "patches": show_patches(patches),
        },
        MergeAnswer,
        place=f"{level}.{number}",
        instead="joined as they are",
    )
    return _joined(optimizer, patches, answer, source, level)


def _joined(
    optimizer: Optimizer, patches: Sequence[Patch], answer: MergeAnswer | None, source: Source | None, level: int
) -> Patch:
    """The merged patch; without a usable answer, the lists one after another."""
    before = tuple(edit for patch in patches for edit in patch.edits)
    patterns = tuple(pattern for patch in patches for pattern in patch.failure_summary)
    if answer is None:
        reasoning = "\n".join(patch.reasoning for patch in patches if patch.reasoning)
        return Patch(reasoning, before, patterns)
    edits = tuple(_with_origin(edit, before, source, level) for edit in answer.of(optimizer.mode))
    return Patch(answer.reasoning, edits, patterns)


def _with_origin(edit: Edit, before: Sequence[Edit], source: Source | None, level: int) -> Edit:
    """A merged edit stands on the trajectories of those it came from: its twins if there are any.

    Without a twin it may come from any of them: it counts as much as the largest, and names the tasks of all.
    """
    twins = [
        other for other in before if (other.op, other.target, other.content) == (edit.op, edit.target, edit.content)
    ]
    if twins:
        support = sum(other.support for other in twins)
    else:
        support = max((other.support for other in before), default=0)
    origin = source or (twins[0].source if twins else Source.FAILURE)
    tasks = tuple(dict.fromkeys(task for other in twins or before for task in other.tasks))
    return msgspec.structs.replace(edit, source=origin, support=support, tasks=tasks, merge_level=level)
