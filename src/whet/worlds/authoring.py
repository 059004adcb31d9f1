"""What authors build on: a plain object with a few methods becomes a World and its Sessions.

    tasks()    what there is to do: Tasks, or dicts: `id`, `split` and `kind` are read, the rest are the inputs
    hidden     names of fields of these dicts that are kept out of the inputs and given to the methods as `key`
    brief      the text that the agent is told (or a Brief)
    judge      passed or not, or a score from 0 to 1, or a Verdict
    start      optional: what one session keeps, given to the other methods as `state`
    close      optional: lets go of it
    aclose     optional: lets go of what is held for all sessions together; there may be others after it
    known_good optional: an answer that must pass
    explore    optional: some valid answer, drawn by `rng`: what a learner may try beside the agent's own
    version    optional: a text to change when a verdict could; without it the world's source code is taken
    content    optional: all that decides a verdict beside tasks and keys, in place of version and settings

Each method asks for what it needs by its parameters' names: `task`, `key`, `state`, `rng`, and `judge` for `answer`.
"""

from __future__ import annotations

import random
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, cast

import msgspec

from whet.core import (
    Brief,
    InputError,
    Json,
    Session,
    Split,
    Task,
    ToolResult,
    ToolSpec,
    Verdict,
    fingerprint,
    seed_from,
)
from whet.worlds.calling import Hook, faults
from whet.worlds.splits import Arranged, Listed, SplitSettings, arrange, as_split, raise_problems
from whet.worlds.text import as_text
from whet.worlds.tools import Tool, tools_of, unknown_tool
from whet.worlds.verdicts import as_verdict, source_of

_OFFERED = ("task", "key", "state", "rng")


class SessionOver(RuntimeError):
    """A session was used after its end: a mistake of the caller, not of the world."""


class AuthoredWorld:
    """A World made of an author's object."""

    def __init__(
        self,
        name: str,
        author: object,
        *,
        splits: SplitSettings | None = None,
        settings: msgspec.Struct | None = None,
    ) -> None:
        self._name = name
        self.author = author
        self.hooks = _Hooks(author, name)
        self._pass_mark = _pass_mark(author, name)
        self._arranged = arrange(_listed(author, name), splits or SplitSettings())
        self._fingerprint = _fingerprint(name, author, self._arranged, settings)
        self._by_id = {task.id: task for split in Split for task in self._arranged.tasks[split]}

    @property
    def name(self) -> str:
        return self._name

    @property
    def fingerprint(self) -> str:
        return self._fingerprint

    def tasks(self, split: Split) -> Sequence[Task]:
        return self._arranged.tasks[split]

    async def open(self, task: Task, seed: int) -> Session:
        key = self._key(task)
        offered = {"task": task, "key": key, "rng": random.Random(seed_from(task.fingerprint, seed)), "state": None}
        if self.hooks.start is not None:
            with faults(self.name, "start", task.id):
                offered["state"] = await self.hooks.start(**offered)
        session = AuthoredSession(self.name, self.hooks, offered, self._pass_mark)
        try:
            await session.prepare()
        except BaseException:
            await session.close()
            raise
        return session

    async def aclose(self) -> None:
        """Lets go of what the author holds for all sessions together."""
        if self.hooks.aclose is not None:
            with faults(self.name, "aclose"):
                await self.hooks.aclose()

    def known_good(self, task: Task) -> str | None:
        """An answer that must pass, where the author offers one."""
        if self.hooks.known_good is None:
            return None
        with faults(self.name, "known_good", task.id):
            answer = self.hooks.known_good.now(task=task, key=self._key(task))
            if answer is not None and not isinstance(answer, str):
                raise TypeError(f"known_good must return text or None, not {type(answer).__name__}")
            return answer

    def explore(self, task: Task, seed: int) -> str | None:
        """Some valid answer, where the author can draw one."""
        if self.hooks.explore is None:
            return None
        with faults(self.name, "explore", task.id):
            answer = self.hooks.explore.now(task=task, rng=random.Random(seed))
            if not isinstance(answer, str):
                raise TypeError(f"explore must return text, not {type(answer).__name__}")
            return answer

    def secrets(self, task: Task) -> tuple[str, ...]:
        """What the key of a task holds, as texts: for checks that no agent is shown it."""
        return tuple(as_text(value) for value in _leaves(self._key(task)))

    def _key(self, task: Task) -> dict[str, Json]:
        mine = self._by_id.get(task.id)
        if mine is None or mine.fingerprint != task.fingerprint:
            raise InputError(f"world {self.name} has no task {task.id}", hint="Take tasks from world.tasks(split)")
        return self._arranged.keys[task.id]


class AuthoredSession:
    """One try at one task. The agent's side reaches `brief`, `tools` and `call`; `judge` ends it."""

    def __init__(self, world: str, hooks: _Hooks, offered: dict[str, Any], pass_mark: float) -> None:
        self._world = world
        self._hooks = hooks
        self._offered = offered
        self._pass_mark = pass_mark
        self._task: Task = offered["task"]
        self._brief = Brief("")
        self._over = False
        self._closed = False

    async def prepare(self) -> None:
        with faults(self._world, "brief", self._task.id):
            written = await self._hooks.brief(**self._offered)
            self._brief = as_brief(written, self._hooks.answer_schema)

    @property
    def brief(self) -> Brief:
        return self._brief

    @property
    def tools(self) -> Sequence[ToolSpec]:
        return tuple(tool.spec for tool in self._hooks.tools.values())

    async def call(self, name: str, arguments: dict[str, Json]) -> ToolResult:
        self._must_be_open()
        tool = self._hooks.tools.get(name)
        if tool is None:
            return unknown_tool(name, list(self._hooks.tools))
        with faults(self._world, f"the tool {name}", self._task.id):
            return await tool(arguments, **self._offered)

    async def judge(self, answer: str) -> Verdict:
        self._must_be_open()
        self._over = True
        with faults(self._world, "judge", self._task.id):
            judged = await self._hooks.judge(**self._offered, answer=answer)
            return as_verdict(judged, self._pass_mark)

    async def close(self) -> None:
        self._over = True
        if self._closed:
            return
        self._closed = True
        if self._hooks.close is not None:
            with faults(self._world, "close", self._task.id):
                await self._hooks.close(**self._offered)

    def _must_be_open(self) -> None:
        if self._over:
            raise SessionOver(f"this session of task {self._task.id} is over; open another")


class _Hooks:
    """The author's methods, each checked once, when the world is loaded."""

    def __init__(self, author: object, name: str) -> None:
        where = type(author).__name__
        missing = [wanted for wanted in ("tasks", "brief", "judge") if not callable(getattr(author, wanted, None))]
        raise_problems([f"world {name}: {where} has no {wanted}()" for wanted in missing], f"world {name}")
        self.brief = Hook(_method(author, "brief"), _OFFERED, f"{where}.brief")
        self.judge = Hook(_method(author, "judge"), (*_OFFERED, "answer"), f"{where}.judge")
        self.start = _optional(author, "start", ("task", "key", "rng"))
        self.close = _optional(author, "close", _OFFERED)
        self.aclose = _optional(author, "aclose", ())
        self.known_good = _optional(author, "known_good", ("task", "key"))
        self.explore = _optional(author, "explore", ("task", "rng"))
        self.tools: dict[str, Tool] = tools_of(author, where)
        self.answer_schema: dict[str, Any] | None = getattr(author, "answer_schema", None)


def _method(author: object, name: str) -> Any:
    return getattr(author, name)


def _optional(author: object, name: str, offered: tuple[str, ...]) -> Hook | None:
    method = getattr(author, name, None)
    return None if method is None else Hook(method, offered, f"{type(author).__name__}.{name}")


def as_brief(written: object, answer_schema: dict[str, Any] | None) -> Brief:
    brief = Brief(written, answer_schema=answer_schema) if isinstance(written, str) else written
    if not isinstance(brief, Brief):
        raise TypeError(f"brief must return text or a Brief, not {type(written).__name__}")
    if not brief.text.strip():
        raise ValueError("the brief is empty: an agent that is told nothing can do nothing")
    return brief


def _pass_mark(author: object, name: str) -> float:
    mark: object = getattr(author, "pass_mark", 1.0)
    if isinstance(mark, bool) or not isinstance(mark, int | float) or not 0 < mark <= 1:
        raise InputError(f"world {name}: pass_mark must be above 0 and at most 1, not {mark!r}")
    return float(mark)


def _listed(author: object, name: str) -> Iterator[Listed]:
    hidden: tuple[str, ...] = tuple(getattr(author, "hidden", ()))
    unseen = set(hidden)
    with faults(name, "tasks"):
        rows = cast("Iterable[object]", _method(author, "tasks")())
        for number, row in enumerate(rows, start=1):
            listed = _as_listed(row, hidden, f"world {name}, task number {number}")
            unseen.difference_update(listed.key)
            yield listed
    if unseen:
        raise InputError(f"world {name}: no task has the hidden field '{min(unseen)}'", hint="Is it misspelled?")


def _as_listed(row: object, hidden: tuple[str, ...], where: str) -> Listed:
    if isinstance(row, Listed):
        return row
    if isinstance(row, Task):
        return Listed(row.inputs, row.id, row.split, row.kind)
    if not isinstance(row, dict):
        raise InputError(f"{where} is {type(row).__name__}", hint="tasks() lists dicts or Tasks")
    fields = cast("dict[str, Json]", row)
    try:
        split = as_split(fields.get("split"))
    except ValueError as error:
        raise InputError(f"{where}: {error}") from error
    taken = {"id", "split", "kind", *hidden}
    return Listed(
        {name: value for name, value in fields.items() if name not in taken},
        id=str(fields.get("id", "")),
        split=split,
        kind=str(fields.get("kind", "")),
        key={name: fields[name] for name in hidden if name in fields},
        where="" if "id" in fields else where,
    )


def _leaves(value: Json) -> Iterator[Json]:
    """The texts and numbers in a value; true, false and null tell nothing."""
    if isinstance(value, dict | list):
        for inner in value.values() if isinstance(value, dict) else value:
            yield from _leaves(inner)
    elif value is not None and not isinstance(value, bool):
        yield value


def _fingerprint(name: str, author: object, arranged: Arranged, settings: msgspec.Struct | None) -> str:
    content: object = getattr(author, "content", None)
    if content is not None:
        return fingerprint("world", name, content, arranged.content)
    version: object = getattr(author, "version", None)
    says = (
        str(version)
        if version is not None
        else source_of(getattr(sys.modules.get(type(author).__module__), "__file__", None))
    )
    return fingerprint("world", name, says, arranged.content, _deciding(settings))


def _deciding(settings: msgspec.Struct | None) -> Mapping[str, Any]:
    """The settings that could change a verdict: how tasks are shared out cannot."""
    if settings is None:
        return {}
    table: dict[str, Any] = msgspec.to_builtins(settings)
    return {key: value for key, value in table.items() if key not in SplitSettings.__struct_fields__}
