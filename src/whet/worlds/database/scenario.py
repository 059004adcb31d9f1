"""A scenario: a schema, seeded data, functions as tools, and tasks that know how they are solved and checked.

All of it is plain functions over a `State`, so that a scenario can be read from top to bottom, played in this process,
and written out as a program of its own. A scenario never asks the machine for the time: `now` stands in its database.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Sequence
from contextlib import closing
from inspect import iscoroutinefunction
from random import Random
from typing import Annotated, Any, TypeAlias

import msgspec

from whet.core import Act, InputError, Json, Solution, WorldFault, fingerprint, seed_from
from whet.worlds.calling import ToolRefusal
from whet.worlds.database.cloning import snapshot
from whet.worlds.database.contents import read
from whet.worlds.database.state import State
from whet.worlds.tools import Tool

COMMON_SCHEMA = """\
CREATE TABLE clock (now TEXT NOT NULL);
CREATE TABLE handbook (name TEXT PRIMARY KEY, topic TEXT NOT NULL, text TEXT NOT NULL);
"""


class Rule(msgspec.Struct, frozen=True):
    """A house rule: what the handbook says, and what a skill can learn."""

    name: str
    """How a refusal names it, such as "return-window"."""
    topic: str
    text: str


class Change(msgspec.Struct, frozen=True):
    """A change that a task asks for. Of an update exactly these columns change; of a new row these are looked at."""

    kind: str
    table: str
    key: dict[str, Json] = {}
    columns: dict[str, Json] = {}


class Answer(msgspec.Struct, frozen=True, array_like=True):
    """What has to be answered; `said` is how the scripted solution says it."""

    kind: str
    value: Json

    @property
    def said(self) -> str:
        if self.kind == "items":
            values = self.value if isinstance(self.value, list) else []
            return f"Answer: {', '.join(str(value) for value in values)}"
        if self.kind == "refused":
            return f"Answer: refused, {self.value}"
        return f"Answer: {self.value}"


class Check(msgspec.Struct, frozen=True):
    """One of the ways must be the whole of what changed, and the answer right where one is asked for."""

    ways: tuple[tuple[Change, ...], ...] = ((),)
    answer: Answer | None = None


class Draft(msgspec.Struct, frozen=True):
    """A task as it is drawn: what is asked, how it is checked, how it is solved, and by which house rules."""

    text: str
    acts: tuple[Act, ...]
    check: Check = Check()
    rules: tuple[str, ...] = ()

    @property
    def solution(self) -> Solution:
        return Solution(self.acts, "Done." if self.check.answer is None else self.check.answer.said)


Template: TypeAlias = Callable[[State, Random], Draft]
"""Draws a task from a state: whom it is about, what is right, how it is solved. It only reads."""


class Scenario(msgspec.Struct, frozen=True):
    name: str
    about: str
    """One sentence for lists."""
    conduct: str
    """What an agent is told of its work before every task."""
    schema: str
    fill: Callable[[State, Random], None]
    """Makes the data, `clock` included."""
    rules: tuple[Rule, ...]
    tools: tuple[Callable[..., Any], ...]
    templates: tuple[Template, ...]
    stray: Callable[[State], Act]
    """A write that no task asks for, to show that it fails every one."""


class Drawn(msgspec.Struct, frozen=True):
    """A scenario with its data, as one seed makes it: the state that its tasks start from."""

    scenario: Scenario
    variant: int
    image: bytes
    state: str
    """Names the data by its content: images differ from one version of SQLite to the next."""
    drafts: tuple[Draft, ...]


def act(tool: Callable[..., Any], /, **arguments: Json) -> Act:
    return Act(tool.__name__, arguments)


def insert(table: str, **columns: Json) -> Change:
    return Change("insert", table, {}, columns)


def update(table: str, id: int, **columns: Json) -> Change:
    return Change("update", table, {"id": id}, columns)


def delete(table: str, id: int) -> Change:
    return Change("delete", table, {"id": id})


def done(*changes: Change, answer: Answer | None = None) -> Check:
    """Exactly these changes, in any order."""
    return Check((changes,), answer)


def any_of(*ways: Sequence[Change]) -> Check:
    """Any one of several ways is right."""
    return Check(tuple(map(tuple, ways)))


def number(value: float) -> Check:
    """Nothing changes, and the answer is this number."""
    return Check(answer=a_number(value))


def items(values: Sequence[str | int]) -> Check:
    """Nothing changes, and the answer is this list, in any order."""
    return Check(answer=Answer("items", list(values)))


def text(value: str) -> Check:
    return Check(answer=Answer("text", value))


def refused(rule: str) -> Check:
    """Nothing changes, and the answer says which house rule forbids it."""
    return Check(answer=Answer("refused", rule))


def a_number(value: float) -> Answer:
    return Answer("number", value)


Topic = Annotated[str, msgspec.Meta(description="one of those that the handbook lists")]


def get_time(state: State) -> str:
    """The date and time now, as YYYY-MM-DD HH:MM."""
    return state.now


def list_handbook(state: State) -> list[str]:
    """The topics of the handbook with the house rules."""
    return state.values("SELECT DISTINCT topic FROM handbook ORDER BY topic")


def read_handbook(state: State, topic: Topic) -> list[dict[str, Any]]:
    """The house rules on one topic, each with its name."""
    rules = state.rows("SELECT name, text FROM handbook WHERE topic = ? ORDER BY name", topic)
    if not rules:
        raise ToolRefusal(f"the handbook has no topic '{topic}'")
    return rules


COMMON_TOOLS = (get_time, list_handbook, read_handbook)


def functions_of(scenario: Scenario) -> tuple[Callable[..., Any], ...]:
    """A scenario's tools with those that every scenario has."""
    return (*COMMON_TOOLS, *scenario.tools)


def tools_of_scenario(scenario: Scenario) -> dict[str, Tool]:
    waiting = [each.__name__ for each in scenario.tools if iscoroutinefunction(each)]
    if waiting:
        raise InputError(f"{scenario.name}.{waiting[0]} is async", hint="A scenario's tools only ask their database")
    return {each.__name__: Tool(each, f"{scenario.name}.{each.__name__}") for each in functions_of(scenario)}


def draw(scenario: Scenario, variant: int) -> Drawn:
    """A scenario's data and tasks by its name and a number alone: the same on every machine and at every time."""
    with closing(sqlite3.connect(":memory:")) as connection:
        connection.executescript(COMMON_SCHEMA + scenario.schema)
        state = State(connection)
        for rule in scenario.rules:
            state.insert("handbook", name=rule.name, topic=rule.topic, text=rule.text)
        scenario.fill(state, Random(seed_from(scenario.name, "fill", variant)))
        connection.commit()
        drafts = tuple(_drafted(scenario, template, state, variant) for template in scenario.templates)
        state_name = fingerprint("state", read(connection))
        return Drawn(scenario, variant, snapshot(connection), state_name, drafts)


def _drafted(scenario: Scenario, template: Template, state: State, variant: int) -> Draft:
    before = state.connection.total_changes
    draft = template(state, Random(seed_from(scenario.name, template.__name__, variant)))
    if state.connection.total_changes != before:
        raise WorldFault(f"{scenario.name}.{template.__name__} changes the state: all tasks start from the same one")
    if not draft.check.ways:
        raise WorldFault(f"{scenario.name}.{template.__name__} lists no way to pass")
    unknown = set(draft.rules) - {rule.name for rule in scenario.rules}
    if unknown:
        raise WorldFault(f"{scenario.name}.{template.__name__} names the rule {min(unknown)}, which there is not")
    return draft
