"""Edits tried alone, on the tasks whose failures they came from: one that helps with none of them is left out.

The gate takes or refuses a step's edits together, so one that does harm takes the others down with it, and one that
does nothing comes in with them. A few plays of train tasks tell them apart before the gate's many.

A failure that does not come again was chance, and any edit would seem to mend it. So what failed is first tried once
more as it was; an edit is compared with that second try, under the same chance.

Last, what is kept must do together what each did alone: where it does not, the edit without which it does is left out.
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


class _Alone(msgspec.Struct, frozen=True):
    objection: str = ""
    """Why it is left out."""
    mended: tuple[str, ...] = ()
    """The tasks that it helped with."""


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
            trials = [trying.create_task(self._alone(edit)) for edit in edits]
        alone = {edit: done.result() for edit, done in zip(edits, trials, strict=True)}
        left_out = {edit: found.objection for edit, found in alone.items() if found.objection}
        kept = [edit for edit in edits if edit not in left_out]
        mended = list(dict.fromkeys(task for edit in kept for task in alone[edit].mended))
        for edit in await self._spoilers(kept, mended):
            left_out[edit] = "with it, the others no longer did what they had done alone"
        return Tried(
            tuple(edit for edit in edits if edit not in left_out),
            tuple(EditResult(edit, EditStatus.LEFT_OUT, left_out[edit]) for edit in edits if edit in left_out),
        )

    async def _second_try(self, task: Task, first: Awaitable[Trajectory]) -> float | None:
        """How the incumbent scores at a failed task when it is played again; None if there is nothing to mend."""
        if (await first).hard:
            return None
        (again,) = await self._play(self._incumbent, [task], SECOND_TRY)
        return None if again.hard else again.soft

    async def _alone(self, edit: Edit) -> _Alone:
        """One that cannot be tried has the benefit of the doubt: the gate sees it too."""
        _, (result,) = apply_edits(self._incumbent.skill, [edit])
        behind = [name for name in edit.tasks if name in self._tasks]
        if edit.source is not Source.FAILURE or not behind or not result.status.changed:
            return _Alone()
        failing = [name for name in behind if await self._again[name] is not None][: self._most]
        if not failing:
            return _Alone("the failures it came from did not come again")
        mended = await self._mended([edit], failing)
        if not mended:
            return _Alone("tried alone, it did not help" + (f" with any of {len(failing)}" if len(failing) > 1 else ""))
        return _Alone(mended=mended)

    async def _spoilers(self, kept: Sequence[Edit], mended: Sequence[str]) -> list[Edit]:
        """Edits, one at a time, without which the rest mend more than half again of what each mended alone."""
        found: list[Edit] = []
        rest = list(kept)
        together = len(await self._mended(rest, mended)) if len(rest) > 1 and mended else len(mended)
        while 2 * together <= len(mended) and len(rest) > 1:
            async with asyncio.TaskGroup() as trying:
                without = [trying.create_task(self._mended(_except(rest, edit), mended)) for edit in rest]
            best = max(range(len(rest)), key=lambda number: len(without[number].result()))
            if len(without[best].result()) <= together:
                break
            together = len(without[best].result())
            found.append(rest.pop(best))
        return found

    async def _mended(self, edits: Sequence[Edit], names: Sequence[str]) -> tuple[str, ...]:
        """Which of these tasks come out better with these edits than at the incumbent's second try."""
        skill, _ = apply_edits(self._incumbent.skill, edits)
        tasks = [self._tasks[name] for name in names]
        played = await self._play(self._incumbent.with_skill(skill), tasks, SECOND_TRY)
        before = {name: await self._again[name] for name in names}
        return tuple(one.task for one in played if one.hard or one.soft > (before[one.task] or 0.0))


def _except(edits: Sequence[Edit], out: Edit) -> list[Edit]:
    return [edit for edit in edits if edit is not out]
