"""Tells an author what is wrong with a world: everything that is found at once, and one played session to look at.

It plays the world as a stranger would, by the protocol alone, so it works for any World.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from enum import StrEnum
from statistics import median
from typing import Any

import msgspec

from whet.core import (
    Clock,
    Message,
    Session,
    Solution,
    Split,
    SystemClock,
    Task,
    ToolCall,
    ToolSpec,
    UserError,
    Verdict,
    World,
    WorldFault,
    assistant,
    tool_answer,
    user,
)
from whet.worlds.calling import faults
from whet.worlds.holding import held
from whet.worlds.schema import example_of, problems_of, schema_problems
from whet.worlds.solving import known_good, play
from whet.worlds.text import as_text

EMPTY_PROMISES = ("", "I have completed the task.")
"""Answers that no task may be passed with."""

_TOOL_NAME = re.compile(r"[A-Za-z0-9_-]{1,64}")
_SLOW_MS = 1000.0
_TELLING_SIZE = 3
"""A shorter answer may stand in a brief by chance."""


class Severity(StrEnum):
    ERROR = "error"
    WARNING = "warning"


class Problem(msgspec.Struct, frozen=True):
    severity: Severity
    text: str
    task: str = ""
    """The task that shows it; empty where it is the world's."""

    def __str__(self) -> str:
        return f"{self.severity}: {f'task {self.task}: ' if self.task else ''}{self.text}"


class WorldReport(msgspec.Struct, frozen=True):
    world: str
    fingerprint: str
    tasks: dict[Split, int]
    problems: tuple[Problem, ...]
    transcript: tuple[Message, ...] = ()
    """One session, played by a script: the first tool where there is one, then an empty answer."""
    verdict: Verdict | None = None
    """How that session was judged."""
    median_ms: float = 0.0
    """From opening a session to its verdict, without an agent."""

    @property
    def sound(self) -> bool:
        return not any(problem.severity is Severity.ERROR for problem in self.problems)


async def check_world(
    world: World,
    *,
    again: Callable[[], World] | None = None,
    sample: int = 3,
    seed: int = 0,
    clock: Clock | None = None,
) -> WorldReport:
    """Everything that is wrong with `world`, as far as `sample` tasks of each split show it.

    `again` loads the same world a second time. A world with a model as its judge makes calls for this.
    """
    checker = _Checker(world, seed, clock or SystemClock())
    checker.check_lists()
    if again is not None:
        checker.check_reload(again)
    sampled = [task for split in Split for task in world.tasks(split)[:sample]]
    async with held(world):
        for task in sampled:
            await checker.check_task(task)
        checker.check_secrets(sampled)
        checker.note(getattr(world, "left_out", ()))
        transcript, verdict = await checker.show(sampled[0]) if sampled else ((), None)
    return checker.report(transcript, verdict)


class _Checker:
    """One pass over a world; problems are collected, not raised."""

    def __init__(self, world: World, seed: int, clock: Clock) -> None:
        self._world = world
        self._seed = seed
        self._clock = clock
        self._problems: dict[Problem, None] = {}
        self._times: list[float] = []
        self._briefs: dict[str, str] = {}

    def report(self, transcript: tuple[Message, ...], verdict: Verdict | None) -> WorldReport:
        typical = median(self._times) * 1000 if self._times else 0.0
        if typical > _SLOW_MS:
            self._warn(f"a session takes {typical:.0f} ms without an agent: training plays thousands of them")
        counts = {split: len(self._world.tasks(split)) for split in Split}
        world, problems = self._world, tuple(self._problems)
        return WorldReport(world.name, world.fingerprint, counts, problems, transcript, verdict, typical)

    def note(self, left_out: Iterable[str]) -> None:
        """What the world itself says that it could not take in."""
        for text in left_out:
            self._warn(text)

    def check_lists(self) -> None:
        owner: dict[str, Task] = {}
        names: dict[str, Task] = {}
        for split in Split:
            for task in self._world.tasks(split):
                self._check_place(task, split, owner.setdefault(task.fingerprint, task))
                if names.setdefault(task.id, task) is not task:
                    self._wrong("another task has the same id", task)
        for split in (Split.TRAIN, Split.SELECTION, Split.TEST):
            if not self._world.tasks(split):
                self._warn(f"there are no {split} tasks")

    def _check_place(self, task: Task, split: Split, first: Task) -> None:
        if task.split is not split:
            self._wrong(f"it is listed in {split} and says that it is in {task.split}", task)
        if first is not task:
            where = f"{first.id} in {first.split}" if first.split is not task.split else first.id
            self._wrong(f"it is the same task as {where}", task)

    def check_reload(self, again: Callable[[], World]) -> None:
        try:
            with faults(self._world.name, "loading it again"):
                other = again()
        except (WorldFault, UserError) as error:
            self._wrong(str(error))
            return
        if other.fingerprint != self._world.fingerprint:
            self._wrong("its fingerprint changes from one load to the next: no result could ever be looked up again")
        for split in Split:
            if [task.id for task in other.tasks(split)] != [task.id for task in self._world.tasks(split)]:
                self._wrong(f"its {split} tasks change from one load to the next")

    async def check_task(self, task: Task) -> None:
        try:
            await self._check_brief(task)
            for promise in EMPTY_PROMISES:
                await self._check_promise(task, promise)
            await self._check_known_good(task)
        except (WorldFault, UserError) as error:
            self._wrong(str(error), task)

    async def _check_brief(self, task: Task) -> None:
        brief, tools = await self._seen(task)
        again, tools_again = await self._seen(task)
        self._briefs[task.id] = brief
        if not brief.strip():
            self._wrong("the brief is empty", task)
        if (brief, tools) != (again, tools_again):
            self._wrong("two sessions with the same seed have different briefs or tools", task)
        for problem in tool_problems(tools):
            self._wrong(problem)
        for tool in tools:
            if not tool.description:
                self._warn(f"the tool {tool.name} has no description: the agent has to guess what it does")

    async def _seen(self, task: Task) -> tuple[str, Sequence[ToolSpec]]:
        session = await self._open(task)
        try:
            schema = session.brief.answer_schema
            for problem in schema_problems(schema, "the answer's schema") if schema is not None else []:
                self._wrong(problem)
            return session.brief.text, tuple(session.tools)
        finally:
            await self._close(session, task)

    async def _check_promise(self, task: Task, promise: str) -> None:
        began = self._clock.now()
        session = await self._open(task)
        try:
            verdict = await self._judge(session, task, promise)
            self._times.append(self._clock.now() - began)
            if verdict.hard:
                said = f"the answer '{promise}'" if promise else "an empty answer"
                self._wrong(f"it is passed by doing nothing, with {said}", task)
            if not verdict.scored:
                self._wrong("the verdict of doing nothing is not scored", task)
            await self._check_single_use(session, task)
        finally:
            await self._close(session, task)

    async def _check_single_use(self, session: Session, task: Task) -> None:
        try:
            await self._judge(session, task, "again")
        except (WorldFault, UserError):
            return
        self._wrong("a session can be judged twice: an agent's score could be tried out and improved", task)

    async def _check_known_good(self, task: Task) -> None:
        good = self._known_good(task)
        if good is None:
            return
        session = await self._open(task)
        try:
            schema = session.brief.answer_schema
            with faults(self._world.name, "playing the known good solution", task.id):
                verdict = await play(session, good)
            if not verdict.hard:
                what = "solution" if good.acts else "answer"
                self._wrong(f"the known good {what} does not pass: {verdict.feedback or verdict.soft}", task)
            value = _json_or_none(good.answer)
            if schema is not None and value is not None and problems_of(value, schema):
                self._wrong("the known good answer does not follow the answer's schema", task)
        finally:
            await self._close(session, task)

    def check_secrets(self, tasks: Sequence[Task]) -> None:
        """One task may give its answer by chance; a world gives it away where most of them do."""
        known = [(task, self._secrets(task)) for task in tasks if task.id in self._briefs]
        known = [(task, secrets) for task, secrets in known if secrets and "choices" not in task.inputs]
        in_inputs = [task for task, secrets in known if secrets & {as_text(value) for value in task.inputs.values()}]
        in_brief = [task for task, secrets in known if _stands_in(self._briefs[task.id], secrets)]
        if len(in_inputs) > max(1, len(known) / 2):
            self._wrong(f"the answer key is one of the inputs in {len(in_inputs)} of {len(known)} tasks", in_inputs[0])
        elif len(in_brief) > max(1, len(known) / 2):
            self._warn(f"the right answer stands in the brief of {len(in_brief)} of {len(known)} tasks", in_brief[0])

    def _secrets(self, task: Task) -> set[str]:
        secrets_of: Any = getattr(self._world, "secrets", None)
        held: tuple[str, ...] = secrets_of(task) if secrets_of is not None else ()
        good = self._known_good(task)
        return {*held, good.answer} if good and not good.acts else set(held)

    def _known_good(self, task: Task) -> Solution | None:
        with faults(self._world.name, "known_good", task.id):
            return known_good(self._world, task)

    async def show(self, task: Task) -> tuple[tuple[Message, ...], Verdict | None]:
        """One session as an agent without a mind would play it."""
        said: list[Message] = []
        try:
            session = await self._open(task)
            try:
                said.append(user(session.brief.text))
                for tool in session.tools[:1]:
                    said += await self._tried(session, task, tool)
                said.append(assistant(""))
                return tuple(said), await self._judge(session, task, "")
            finally:
                await self._close(session, task)
        except (WorldFault, UserError) as error:
            self._wrong(str(error), task)
            return tuple(said), None

    async def _tried(self, session: Session, task: Task, tool: ToolSpec) -> list[Message]:
        arguments = example_of(tool.parameters)
        call = ToolCall("call-1", tool.name, msgspec.json.encode(arguments).decode())
        with faults(self._world.name, f"the tool {tool.name}", task.id):
            answer = await session.call(tool.name, arguments)
        return [assistant("", (call,)), tool_answer(call.id, answer.text, error=answer.fault is not None)]

    async def _open(self, task: Task) -> Session:
        with faults(self._world.name, "open", task.id):
            return await self._world.open(task, self._seed)

    async def _judge(self, session: Session, task: Task, answer: str) -> Verdict:
        with faults(self._world.name, "judge", task.id):
            return await session.judge(answer)

    async def _close(self, session: Session, task: Task) -> None:
        with faults(self._world.name, "close", task.id):
            await session.close()

    def _wrong(self, text: str, task: Task | None = None) -> None:
        self._problems[Problem(Severity.ERROR, text, task.id if task else "")] = None

    def _warn(self, text: str, task: Task | None = None) -> None:
        self._problems[Problem(Severity.WARNING, text, task.id if task else "")] = None


def tool_problems(tools: Sequence[ToolSpec]) -> list[str]:
    """What is wrong with a list of tools."""
    names = [tool.name for tool in tools]
    found = [f"two tools are named {name}" for name in dict.fromkeys(names) if names.count(name) > 1]
    for tool in tools:
        if not _TOOL_NAME.fullmatch(tool.name):
            found.append(f"the tool name {tool.name!r} must be 1 to 64 letters, digits, _ or -")
        if tool.parameters.get("type") != "object":
            found.append(f"the parameters of {tool.name} must be a schema of type object")
        found += schema_problems(tool.parameters, tool.name)
    return found


def _stands_in(brief: str, secrets: set[str]) -> bool:
    telling = [secret for secret in secrets if len(secret) >= _TELLING_SIZE]
    return any(re.search(rf"(?<!\w){re.escape(secret)}(?!\w)", brief) for secret in telling)


def _json_or_none(text: str) -> object:
    try:
        return msgspec.json.decode(text)
    except msgspec.DecodeError:
        return None
