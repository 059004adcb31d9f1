"""Edits tried alone, on the tasks whose failures they came from: one that helps with none of them is left out.

The gate takes or refuses a step's edits together, so one that does harm takes the others down with it, and one that
does nothing comes in with them. A few plays of train tasks tell them apart before the gate's many.

A failure that does not come again was chance, and any edit would seem to mend it. So what failed is first tried once
more as it was; an edit is compared with that second try, under the same chance.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Sequence

import msgspec

from whet.core import Edit, EditResult, EditStatus, Policy, Source, Task, Trajectory
from whet.learners.skill.epoch import Play
from whet.learners.skill.patcher import apply_edits

SECOND_TRY = 1
"""The sample under which the incumbent's failures and the edits are played; sample 0 is what the edits came from."""


class Tried(msgspec.Struct, frozen=True):
    """Both in the order of the edits that were tried."""

    kept: tuple[Edit, ...]
    left_out: tuple[EditResult, ...] = ()


class Trials:
    """What the edits of one step are tried on: the failures of its own batch."""

    def __init__(
        self,
        group: asyncio.TaskGroup,
        incumbent: Policy,
        tasks: Sequence[Task],
        evidence: Sequence[Awaitable[Trajectory]],
        most: int,
        play: Play,
    ) -> None:
        """Second tries start in `group` as the first ones come in, while their lessons are still being written."""
        self._incumbent = incumbent
        self._most = most
        self._play = play
        self._tasks = {task.id: task for task in tasks}
        self._again = {
            task.id: group.create_task(self._second_try(task, first))
            for task, first in zip(tasks, evidence, strict=True)
        }

    async def sort_out(self, edits: Sequence[Edit]) -> Tried:
        """Successes hold no failure to mend, so what was learned from them is not tried."""
        async with asyncio.TaskGroup() as trying:
            objections = [trying.create_task(self._objection(edit)) for edit in edits]
        judged = [(edit, done.result()) for edit, done in zip(edits, objections, strict=True)]
        return Tried(
            tuple(edit for edit, objection in judged if not objection),
            tuple(EditResult(edit, EditStatus.LEFT_OUT, objection) for edit, objection in judged if objection),
        )

    async def _second_try(self, task: Task, first: Awaitable[Trajectory]) -> float | None:
        """How the incumbent scores at a failed task when it is played again; None if there is nothing to mend."""
        if (await first).hard:
            return None
        (again,) = await self._play(self._incumbent, [task], SECOND_TRY)
        return None if again.hard else again.soft

    async def _objection(self, edit: Edit) -> str:
        """Why an edit is left out. One that cannot be tried has the benefit of the doubt: the gate sees it too."""
        skill, (result,) = apply_edits(self._incumbent.skill, [edit])
        behind = [name for name in edit.tasks if name in self._tasks]
        if edit.source is not Source.FAILURE or not behind or not result.status.changed:
            return ""
        failing = {name: score for name in behind if (score := await self._again[name]) is not None}
        if not failing:
            return "the failures it came from did not come again"
        chosen = list(failing)[: self._most]
        played = await self._play(self._incumbent.with_skill(skill), [self._tasks[name] for name in chosen], SECOND_TRY)
        if any(one.hard or one.soft > failing[one.task] for one in played):
            return ""
        return (
            f"tried alone, it helped with none of {len(chosen)}" if len(chosen) > 1 else "tried alone, it did not help"
        )
