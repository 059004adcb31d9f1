"""Tries what a model wrote: statements, a program, a solution, a verifier. All of it runs in the sandbox.

What the code does wrong is a `Trial` with a problem; SandboxFault is raised only where the sandbox itself broke.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Iterator, Sequence
from contextlib import asynccontextmanager
from typing import Any, cast

import msgspec

from whet.core import Act, Json, Solution, WorldFault
from whet.making.answers import Endpoint
from whet.making.asking import Trial
from whet.making.parts import Parts, told_tools
from whet.sandbox import Program, SandboxFault
from whet.training.probing import TALK, damaged
from whet.worlds.awm.admission import ANOTHER_DATE, program_problems
from whet.worlds.awm.inside.messages import Changes
from whet.worlds.awm.layout import Verifier
from whet.worlds.awm.stages import MOMENT, Playing, Ready, Stages
from whet.worlds.awm.verifying import LIMITS, States, read_result, run_verifier
from whet.worlds.database import RewardType
from whet.worlds.schema import problems_of

_LOADING = Program("from whet.worlds.awm.inside.loading import loaded\n", entry="loaded")
_AT_ONCE = 4
_MOST_ACTS = 30
_SHOWN = 600


class Played(msgspec.Struct, frozen=True):
    """A solution, played."""

    problems: tuple[str, ...]
    told: str
    """Each act, and what its tool said."""
    image: bytes
    changes: Changes
    writes: tuple[int, ...]
    """The places of the acts that changed rows."""


class Bench:
    """One pool of sandboxes, for a whole making."""

    def __init__(self) -> None:
        self._stages = Stages(MOMENT)
        self._places = asyncio.Semaphore(_AT_ONCE)

    async def aclose(self) -> None:
        await self._stages.aclose()

    async def data(self, parts: Parts) -> Trial:
        """Schema and rows load, and every foreign key leads somewhere."""
        pool = await self._stages.pool()
        scenario = parts.scenario
        arguments: dict[str, Json] = {"ddl": list(scenario.ddl), "inserts": list(scenario.inserts), "moment": MOMENT}
        async with self._places:
            outcome = await pool.run(_LOADING, arguments, limits=LIMITS)
        if not outcome.done:
            return Trial.of([f"the statements cannot be loaded: {outcome.error}"])
        seen = cast("dict[str, Any]", outcome.value)
        tables: dict[str, int] = seen["tables"]
        missing = [one.name for one in parts.schema.tables if one.name not in tables]
        problems = [*(f"does not load: {failed}" for failed in seen["failed"]), *seen["orphans"]]
        problems += [f"the statements of {name} make no table of that name" for name in missing]
        return Trial.of(problems, f"{len(tables)} tables, {sum(tables.values())} rows")

    async def program(self, parts: Parts) -> Trial:
        """It loads, keeps what the specification promises, and every tool answers its example."""
        async with self._places:
            try:
                ready = await self._stages.ready(parts.scenario)
                problems = [*program_problems(parts.scenario, ready), *_unfit(parts, ready)]
                if not problems:
                    problems = [problem async for problem in self._examples(parts)]
            except WorldFault as fault:
                return Trial.of([_faulty(fault)])
        return Trial.of(problems, told_tools(ready.tools))

    async def solution(self, parts: Parts, solution: Solution) -> Trial:
        """Every act is accepted; and it changes something, or answers."""
        try:
            played = await self._played(parts, solution)
        except WorldFault as fault:
            return Trial.of([_faulty(fault)])
        problems = list(played.problems)
        if len(solution.acts) > _MOST_ACTS:
            problems.append(f"it has {len(solution.acts)} acts; the most are {_MOST_ACTS}")
        if not problems and not played.changes.count and not solution.answer.strip():
            problems.append("it changes nothing and answers nothing: an agent that does nothing would do the same")
        return Trial.of(problems, msgspec.json.encode((played.told, played.changes.text)).decode())

    async def verifier(self, parts: Parts, solution: Solution, code: str) -> Trial:
        """It fails whoever does nothing, passes the solution, and fails every damaged one."""
        verifier = Verifier(code, judged=False)
        try:
            ready = await self._stages.ready(parts.scenario)
            good = await self._played(parts, solution)
            wrong = [one async for one in self._damaged(parts, solution, good)]
            problems = [problem async for problem in self._misjudged(verifier, ready, solution, good, wrong)]
        except WorldFault as fault:
            return Trial.of([_faulty(fault)])
        return msgspec.structs.replace(Trial.of(problems), damaged=tuple(solution for solution, _ in wrong))

    async def _examples(self, parts: Parts):
        async with self._session(parts) as playing:
            for endpoint in parts.api.endpoints:
                problem = await _answers(playing, endpoint)
                if problem:
                    yield f"{endpoint.operation_id}, called with its example {_json(endpoint.example)}, {problem}"

    async def _played(self, parts: Parts, solution: Solution) -> Played:
        problems: list[str] = []
        told: list[str] = []
        writes: list[int] = []
        async with self._places, self._session(parts) as playing:
            image, changes = await playing.state()
            for place, act in enumerate(solution.acts):
                said, problem = await _act(playing, act)
                told.append(f"{place + 1}. {act.tool} {_json(act.arguments)}\n   {said}")
                if problem:
                    problems.append(f"act {place + 1}, {act.tool} {_json(act.arguments)}, {problem}")
                before = changes
                image, changes = await playing.state()
                if changes != before:
                    writes.append(place)
        return Played(tuple(problems), "\n".join(told) or "(no calls)", image, changes, tuple(writes))

    async def _damaged(self, parts: Parts, solution: Solution, good: Played):
        """Without one of its writes, where that comes to other rows; with another answer, where that is all of it."""
        for left_out in good.writes:
            other = Solution((*solution.acts[:left_out], *solution.acts[left_out + 1 :]), solution.answer)
            played = await self._played(parts, other)
            if played.changes != good.changes:
                yield other, played
        if not good.changes.count:
            yield Solution(solution.acts, damaged(solution.answer)), good

    async def _misjudged(
        self,
        verifier: Verifier,
        ready: Ready,
        solution: Solution,
        good: Played,
        wrong: Sequence[tuple[Solution, Played]],
    ):
        for moment in (MOMENT, ANOTHER_DATE):
            if not await self._passes(verifier, ready, good.image, solution.answer, moment):
                when = "" if moment == MOMENT else " on another date"
                yield f'it says "others" of the way through the task that is shown above{when}'
        for answer in ("", TALK):
            if await self._passes(verifier, ready, ready.image, answer):
                yield f'it says "complete" where nothing was done and the answer is {answer!r}'
        if good.changes.count and await self._passes(verifier, ready, ready.image, solution.answer):
            yield 'it says "complete" where nothing was done and the right answer is given'
        for other, played in wrong:
            if await self._passes(verifier, ready, played.image, other.answer):
                yield f'it says "complete" {_difference(solution, other)}; rows changed: {played.changes.text[:_SHOWN]}'

    async def _passes(
        self, verifier: Verifier, ready: Ready, image: bytes, answer: str, moment: float = MOMENT
    ) -> bool:
        end = self._stages.place(image)
        try:
            said = await run_verifier(await self._stages.pool(), verifier, States(ready.start, end, moment), answer)
        finally:
            end.unlink()
        return read_result(said).result is RewardType.COMPLETE

    @asynccontextmanager
    async def _session(self, parts: Parts) -> AsyncGenerator[Playing]:
        playing = await self._stages.open(parts.scenario, 0)
        try:
            yield playing
        finally:
            await playing.close()


def _unfit(parts: Parts, ready: Ready) -> Iterator[str]:
    """Where a tool does not take what the specification says."""
    for endpoint in parts.api.endpoints:
        tool = ready.tools.get(endpoint.operation_id)
        if tool is None:
            yield f"no operation has the operation_id {endpoint.operation_id}"
            continue
        for name in endpoint.request_params:
            if name not in tool.spec.parameters["properties"]:
                yield f"{endpoint.operation_id} has no parameter {name}, which the specification names"
        for problem in problems_of(endpoint.example, tool.spec.parameters):
            yield f"{endpoint.operation_id} would not take its example {_json(endpoint.example)}: {problem}"


async def _answers(playing: Playing, endpoint: Endpoint) -> str:
    reply = await playing.do(playing.ready.tools[endpoint.operation_id].request(endpoint.example))
    return f"answers {reply.status}: {reply.body[:_SHOWN]}" if reply.status >= 500 or reply.status == 422 else ""


async def _act(playing: Playing, act: Act) -> tuple[str, str]:
    """What the tool said, and what is wrong with the call."""
    tool = playing.ready.tools.get(act.tool)
    if tool is None:
        return "", f"is none of the tools: {', '.join(playing.ready.tools)}"
    problems = problems_of(act.arguments, tool.spec.parameters)
    if problems:
        return "", f"does not fit the tool: {'; '.join(problems)}"
    reply = await playing.do(tool.request(act.arguments))
    said = reply.body[:_SHOWN]
    return said, f"was refused ({reply.status}): {said}" if reply.status >= 400 else ""


def _faulty(fault: WorldFault) -> str:
    """What the code did wrong, in words for whoever wrote it. What the sandbox did wrong is nobody's to mend there."""
    if isinstance(fault, SandboxFault):
        raise fault
    return fault.message


def _difference(good: Solution, other: Solution) -> str:
    if good.answer != other.answer:
        return f"of the wrong answer {other.answer!r}"
    left = next((n for n, act in enumerate(other.acts) if act != good.acts[n]), len(other.acts))
    return f"though act {left + 1} ({good.acts[left].tool}) was left out"


def _json(value: Any) -> str:
    return msgspec.json.encode(value).decode()[:_SHOWN]
