"""Agents that are none, and what a verifier must say of them: task by task, without a model."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable, Iterable, Sequence
from contextlib import AsyncExitStack
from enum import StrEnum

import msgspec

from whet.core import (
    Act,
    Json,
    Session,
    Solution,
    Split,
    Task,
    ToolFault,
    ToolSpec,
    Verdict,
    World,
    WorldFault,
    seed_from,
)
from whet.worlds import held
from whet.worlds.solving import known_good, play

TALK = "I have completed the task."

NOT_TOOLS = (
    "judge",
    "verify",
    "verify_task",
    "done",
    "reset",
    "state",
    "close",
    "fork",
    "list_tasks",
    "list_scenarios",
    "__list_scenarios__",
    "get_reward",
    "step",
    "_judge",
    "__class__",
)
"""Names that an agent may try in the hope of reaching the trainer's side."""

STRANGE: tuple[Json, ...] = ("'; DROP TABLE users; --", "x" * 100_000, -1, 10**30, "\x00", [], {}, None)
"""What no tool expects, and each must survive."""

ANOTHER_DATE = 4_000_000_000.0
"""October 2096, in seconds since 1970."""


class Probe(StrEnum):
    DO_NOTHING = "do_nothing"
    TALK_ONLY = "talk_only"
    KNOWN_GOOD = "known_good"
    DAMAGED = "damaged"
    REPEATED = "repeated"
    TWO_DATES = "two_dates"
    TAMPER = "tamper"


class Outcome(StrEnum):
    SOUND = "sound"
    OFFENDING = "offending"
    ABSENT = "absent"
    """The world has nothing to try it with: no known-good solution, no tools, no other date."""
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


async def audit_verifier(world: World, tasks: Sequence[Task], *, width: int = 32) -> list[TaskAudit]:
    """Probe each task; in the order of `tasks`."""
    places = asyncio.Semaphore(width)
    on_date: Callable[[float], World] | None = getattr(world, "on_date", None)
    elsewhere = None if on_date is None else on_date(ANOTHER_DATE)

    async def one(task: Task) -> TaskAudit:
        async with places:
            return await Prober(world, elsewhere, task).audit()

    async with AsyncExitStack() as ending:
        if elsewhere is not None:
            await ending.enter_async_context(held(elsewhere))
        async with asyncio.TaskGroup() as probing:
            probed = [probing.create_task(one(task)) for task in tasks]
    return [audit.result() for audit in probed]


class _Offence(Exception):
    """What a probe found, to look at."""


class Prober:
    """All probes of one task. Each opens sessions of its own."""

    def __init__(self, world: World, elsewhere: World | None, task: Task) -> None:
        self._world = world
        self._elsewhere = elsewhere
        """The same world on another date."""
        self._task = task
        self._good = known_good(world, task)

    async def audit(self) -> TaskAudit:
        probes = {
            Probe.DO_NOTHING: self._do_nothing,
            Probe.TALK_ONLY: self._talk_only,
            Probe.KNOWN_GOOD: self._known_good,
            Probe.DAMAGED: self._damaged,
            Probe.REPEATED: self._repeated,
            Probe.TWO_DATES: self._two_dates,
            Probe.TAMPER: self._tamper,
        }
        outcomes: dict[Probe, Outcome] = {}
        notes: list[str] = []
        for probe, tried in probes.items():
            try:
                outcomes[probe] = Outcome.SOUND if await tried() else Outcome.ABSENT
            except _Offence as offence:
                outcomes[probe] = Outcome.OFFENDING
                notes.append(f"{probe}: {offence}")
            except WorldFault as fault:
                outcomes[probe] = Outcome.BROKEN
                notes.append(f"{probe}: {fault.message}")
        return TaskAudit(self._task.id, self._task.split, outcomes, "; ".join(notes))

    async def _do_nothing(self) -> bool:
        return await self._must_fail(Solution())

    async def _talk_only(self) -> bool:
        return await self._must_fail(Solution(answer=TALK))

    async def _known_good(self) -> bool:
        if self._good is None:
            return False
        verdict = await self._played(self._good)
        if not verdict.hard:
            raise _Offence(f"{said(self._good)} failed ({verdict.feedback or 'no reason'})")
        return True

    async def _damaged(self) -> bool:
        found = () if self._good is None else damaged_solutions(self._world, self._task, self._good)
        for solution in found:
            await self._must_fail(solution)
        return bool(found)

    async def _repeated(self) -> bool:
        solution = self._good or Solution(answer=TALK)
        first, second = await self._played(solution), await self._played(solution)
        if (first.hard, first.soft) != (second.hard, second.soft):
            raise _Offence(f"{said(solution)} was judged {first.soft:g}, then {second.soft:g}")
        return True

    async def _two_dates(self) -> bool:
        """A world that can be had as of another day says the same on it."""
        if self._elsewhere is None:
            return False
        solution = self._good or Solution(answer=TALK)
        now, then = await self._played(solution), await self._played(solution, self._elsewhere)
        if now.hard != then.hard:
            raise _Offence(f"{said(solution)} {_came_out(now)} today and {_came_out(then)} on another date")
        return True

    async def _tamper(self) -> bool:
        """Whatever an agent names or passes: only tools answer, none breaks, and nothing is passed by it."""
        session = await self._open(self._world)
        try:
            if not session.tools:
                return False
            for name in _unlisted(session.tools):
                result = await session.call(name, {})
                if result.fault is not ToolFault.UNKNOWN_TOOL:
                    raise _Offence(f"{name} is not in the list of tools and answered all the same")
            for act in _strange_calls(session.tools):
                await session.call(act.tool, act.arguments)
            verdict = await session.judge("")
        finally:
            await session.close()
        if verdict.hard:
            raise _Offence("calling tools with nonsense passed")
        return True

    async def _must_fail(self, solution: Solution) -> bool:
        if (await self._played(solution)).hard:
            raise _Offence(f"{said(solution)} passed")
        return True

    async def _played(self, solution: Solution, world: World | None = None) -> Verdict:
        session = await self._open(world or self._world)
        try:
            verdict = await play(session, solution)
        finally:
            await session.close()
        if not verdict.scored:
            raise WorldFault(f"it was not judged: {verdict.feedback or 'no reason given'}")
        return verdict

    async def _open(self, world: World) -> Session:
        return await world.open(self._task, seed_from(self._task.fingerprint, "audit"))


def damaged_solutions(world: World, task: Task, good: Solution) -> Sequence[Solution]:
    """The world's own damaged ones, since it knows what matters; else, of a solution without acts, a damaged answer."""
    offered: Callable[[Task], Sequence[Solution]] | None = getattr(world, "damaged", None)
    if offered is not None:
        return offered(task)
    return () if good.acts else (Solution(answer=damaged(good.answer)),)


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


def said(solution: Solution) -> str:
    """A solution in one line."""
    acts = ", ".join(f"{act.tool}({msgspec.json.encode(act.arguments).decode()[:60]})" for act in solution.acts)
    answer = repr(solution.answer[:80])
    return f"{acts} and {answer}" if acts else answer


def _came_out(verdict: Verdict) -> str:
    return "passed" if verdict.hard else "failed"


def _unlisted(tools: Sequence[ToolSpec]) -> Iterable[str]:
    listed = {tool.name for tool in tools}
    return (name for name in NOT_TOOLS if name not in listed)


def _strange_calls(tools: Sequence[ToolSpec]) -> Iterable[Act]:
    for tool in tools:
        yield Act(tool.name, {"no_such_argument": 1})
        for value in STRANGE:
            yield Act(tool.name, dict.fromkeys(tool.parameters.get("properties", {}), value))
