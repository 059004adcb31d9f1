"""Scenarios as a World: tasks in splits, sessions on copies in memory, verdicts over the whole difference."""

from __future__ import annotations

import inspect
import sqlite3
from collections.abc import Iterator, Sequence
from enum import StrEnum
from functools import cached_property
from typing import Annotated

import msgspec

from whet.core import (
    Brief,
    ConfigError,
    InputError,
    Json,
    Solution,
    Split,
    Task,
    ToolFault,
    ToolResult,
    ToolSpec,
    Verdict,
    fingerprint,
)
from whet.project import nearest
from whet.worlds.authoring import SessionOver
from whet.worlds.calling import faults
from whet.worlds.database.cloning import clone, restore
from whet.worlds.database.contents import Contents, read
from whet.worlds.database.damage import damaged_solutions
from whet.worlds.database.difference import compare
from whet.worlds.database.feedback import verdict_of
from whet.worlds.database.scenario import Draft, Drawn, Scenario, draw, tools_of_scenario
from whet.worlds.database.state import State
from whet.worlds.tools import Tool, invalid_arguments, unknown_tool
from whet.worlds.verdicts import source_of

VERSION = "1"
"""Of how tries are judged: another one makes other worlds of the same scenarios."""

CONFIRM = 1_000_000
"""Where the variants of the confirm split begin: no other split reaches them."""

PLACES = (Split.TRAIN, Split.SELECTION, Split.TEST, Split.TRAIN, Split.SELECTION, Split.TRAIN, Split.TEST)
"""Which split the templates of a scenario, or the variants of a template, belong to; it goes round."""

CONDUCT = """\
Work by the tools alone. House rules stand in the handbook; they bind you also where a request does not mention them.
Do what is asked and nothing beyond it. If a house rule forbids a request, change nothing, and end your reply with the
line "Answer: refused, NAME" with the rule's name. If you are asked a question, end with the line "Answer: …" that holds
the number alone, or the names or numbers asked for with commas between them."""

LONGEST_TEXT = 2_000
LARGEST_NUMBER = 2**53
"""Beyond it, numbers of JSON are not exact."""

Variants = Annotated[int, msgspec.Meta(ge=1, le=CONFIRM)]


class SplitBy(StrEnum):
    TEMPLATE = "template"
    VARIANT = "variant"


class ScenarioSettings(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """How many tasks are drawn, of which scenarios, and what the splits share."""

    scenarios: tuple[str, ...] = ()
    """Which scenarios; none named means all of them."""
    variants: Variants = 1
    """How often each task is drawn, each time with other people, amounts and dates."""
    split_by: SplitBy = SplitBy.TEMPLATE
    """`template`: what is tested are other kinds of task, under the same house rules. `variant`: the same kinds, drawn
    anew; needs variants of at least 3."""
    confirm: Annotated[int, msgspec.Meta(ge=0)] = 0
    """Draws of each test task that are kept apart, to confirm a certificate with."""

    def __post_init__(self) -> None:
        if self.split_by is SplitBy.VARIANT and self.variants < 3:
            raise ValueError("split_by 'variant' needs variants of at least 3, or a split is empty")


class Played(msgspec.Struct, frozen=True, dict=True):
    """A scenario as drawn, with what its sessions share."""

    world: str
    drawn: Drawn
    tools: dict[str, Tool]

    @cached_property
    def before(self) -> Contents:
        connection = restore(self.drawn.image)
        try:
            return read(connection)
        finally:
            connection.close()

    @cached_property
    def specs(self) -> tuple[ToolSpec, ...]:
        return tuple(tool.spec for tool in self.tools.values())


class DatabaseWorld:
    """The scenarios of a pack as a World. Scenarios are code that we trust: they run in this process."""

    def __init__(self, name: str, scenarios: Sequence[Scenario], settings: ScenarioSettings) -> None:
        self._name = name
        self._tasks: dict[Split, list[Task]] = {split: [] for split in Split}
        self._places: dict[str, tuple[Task, Played, Draft]] = {}
        self._drawn: list[Drawn] = []
        chosen = tuple(_chosen(scenarios, settings.scenarios))
        for scenario in chosen:
            self._add(scenario, settings)
        states = [(drawn.scenario.name, drawn.variant, drawn.state) for drawn in self._drawn]
        drafts = [(task.id, task.fingerprint, draft.check, draft.acts) for task, _, draft in self._places.values()]
        self._fingerprint = fingerprint("database", name, VERSION, _sources(chosen), states, drafts)

    @property
    def name(self) -> str:
        return self._name

    @property
    def fingerprint(self) -> str:
        return self._fingerprint

    def tasks(self, split: Split) -> Sequence[Task]:
        return self._tasks[split]

    async def open(self, task: Task, seed: int) -> DatabaseSession:
        """A task's state is its own: the seed changes nothing."""
        played, draft = self._place(task)
        return DatabaseSession(task, played, draft, restore(played.drawn.image))

    def known_good(self, task: Task) -> Solution:
        """A scripted way through the task, which passes."""
        return self._place(task)[1].solution

    def damaged(self, task: Task) -> Sequence[Solution]:
        """The same with one thing wrong in each, which must all fail."""
        played, draft = self._place(task)
        with faults(self.name, "damaging the solution", task.id):
            return damaged_solutions(played.drawn, played.tools, draft)

    @property
    def drawn(self) -> Sequence[Drawn]:
        """Every scenario of every variant, with its data."""
        return self._drawn

    def _place(self, task: Task) -> tuple[Played, Draft]:
        mine = self._places.get(task.id)
        if mine is None or mine[0].fingerprint != task.fingerprint:
            raise InputError(f"world {self.name} has no task {task.id}", hint="Take tasks from world.tasks(split)")
        return mine[1], mine[2]

    def _add(self, scenario: Scenario, settings: ScenarioSettings) -> None:
        tools = tools_of_scenario(scenario)
        for variant, splits in _plan(scenario, settings):
            with faults(self.name, f"drawing {scenario.name}"):
                played = Played(self.name, draw(scenario, variant), tools)
            self._drawn.append(played.drawn)
            for template, split, draft in zip(scenario.templates, splits, played.drawn.drafts, strict=True):
                if split is not None:
                    self._put(scenario, template.__name__, played, draft, split)

    def _put(self, scenario: Scenario, template: str, played: Played, draft: Draft, split: Split) -> None:
        variant = played.drawn.variant
        inputs: dict[str, Json] = {"scenario": scenario.name, "variant": variant, "text": draft.text}
        task = Task(f"{scenario.name}/{template}/{variant}", split, inputs, scenario.name)
        self._tasks[split].append(task)
        self._places[task.id] = (task, played, draft)


class DatabaseSession:
    """One try at one task, on a database in memory of its own."""

    def __init__(
        self, task: Task, played: Played, draft: Draft, connection: sqlite3.Connection, malformed: int = 0
    ) -> None:
        self._task = task
        self._played = played
        self._draft = draft
        self._connection = connection
        self._state = State(connection)
        self._malformed = malformed
        self._over = False

    @property
    def brief(self) -> Brief:
        return Brief(brief_of(self._played.drawn.scenario, self._draft))

    @property
    def tools(self) -> Sequence[ToolSpec]:
        return self._played.specs

    async def call(self, name: str, arguments: dict[str, Json]) -> ToolResult:
        self._must_be_open()
        tool = self._played.tools.get(name)
        if tool is None:
            self._malformed += 1
            return unknown_tool(name, list(self._played.tools))
        with faults(self._played.world, f"the tool {name}", self._task.id):
            result = called(tool, self._state, arguments)
        self._malformed += result.fault is ToolFault.INVALID_ARGUMENTS
        return result

    async def fork(self) -> DatabaseSession:
        self._must_be_open()
        connection = clone(self._connection)
        return DatabaseSession(self._task, self._played, self._draft, connection, self._malformed)

    async def judge(self, answer: str) -> Verdict:
        self._must_be_open()
        self._over = True
        with faults(self._played.world, "judge", self._task.id):
            found = compare(self._played.before, read(self._connection))
            rules = {rule.name: rule.text for rule in self._played.drawn.scenario.rules}
            return verdict_of(self._draft, rules, found, answer, self._malformed)

    async def close(self) -> None:
        self._over = True
        self._connection.close()

    def _must_be_open(self) -> None:
        if self._over:
            raise SessionOver(f"this session of task {self._task.id} is over; open another")


def brief_of(scenario: Scenario, draft: Draft) -> str:
    """All that an agent is told of a task."""
    return f"{scenario.conduct}\n{CONDUCT}\n\n{draft.text}"


def called(tool: Tool, state: State, arguments: dict[str, Json]) -> ToolResult:
    """A call that is refused leaves nothing behind, and what SQLite cannot hold does not reach it."""
    problems = [problem for name, value in arguments.items() if (problem := _unfit(name, value))]
    if problems:
        return invalid_arguments(tool.spec.name, problems)
    result = tool.at_once(arguments, state=state)
    if state.connection.in_transaction:
        state.connection.commit() if result.fault is None else state.connection.rollback()
    return result


def _unfit(name: str, value: Json) -> str:
    """Why a value cannot be asked for or kept, whatever its tool's schema says of it."""
    if isinstance(value, str):
        if len(value) > LONGEST_TEXT:
            return f"'{name}' has more than {LONGEST_TEXT} characters"
        return "" if value.isascii() or _is_text(value) else f"'{name}' is not valid text"
    if isinstance(value, int):
        return "" if -LARGEST_NUMBER <= value <= LARGEST_NUMBER else f"'{name}' is too large a number"
    if isinstance(value, list | dict):
        inner = value.values() if isinstance(value, dict) else value
        return next((problem for one in inner if (problem := _unfit(name, one))), "")
    return ""


def _is_text(value: str) -> bool:
    """Half of a character that UTF-16 writes in two is none."""
    try:
        value.encode()
    except UnicodeEncodeError:
        return False
    return True


def _sources(scenarios: Sequence[Scenario]) -> list[str]:
    """The modules that a scenario's functions stand in."""
    functions = [each for one in scenarios for each in (one.fill, *one.tools, *one.templates)]
    return [source_of(file) for file in dict.fromkeys(inspect.getfile(each) for each in functions)]


def _chosen(scenarios: Sequence[Scenario], names: Sequence[str]) -> Iterator[Scenario]:
    known = {scenario.name: scenario for scenario in scenarios}
    for name in names or known:
        if name not in known:
            raise ConfigError(f"world.scenarios: there is no scenario '{name}'", hint=nearest(name, list(known)))
        yield known[name]


def _plan(scenario: Scenario, settings: ScenarioSettings) -> Iterator[tuple[int, list[Split | None]]]:
    """Each variant that is drawn, with the split of each template in it."""
    by_template = [PLACES[place % len(PLACES)] for place in range(len(scenario.templates))]
    for variant in range(settings.variants):
        if settings.split_by is SplitBy.TEMPLATE:
            yield variant, list(by_template)
        else:
            yield variant, [PLACES[variant % len(PLACES)]] * len(by_template)
    tested = [
        Split.CONFIRM if settings.split_by is SplitBy.VARIANT or split is Split.TEST else None for split in by_template
    ]
    for variant in range(settings.confirm):
        yield CONFIRM + variant, list(tested)
