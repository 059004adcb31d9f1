"""A known-good solution with one thing wrong in it, in every way that can be derived: each must fail its check.

It is a test of checks, so it never asks one: what it needs to know it finds out by playing the acts on a copy.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import closing
from typing import Any

from whet.core import Act, Json, Solution
from whet.worlds.database.cloning import restore
from whet.worlds.database.scenario import Answer, Draft, Drawn
from whet.worlds.database.state import State
from whet.worlds.tools import Tool


def damaged_solutions(drawn: Drawn, tools: Mapping[str, Tool], draft: Draft) -> tuple[Solution, ...]:
    """Without the last write; with a write gone astray; with a wrong answer; with a write that nobody asked for."""
    good = draft.solution
    writes = _writes(drawn, tools, good.acts)
    made: list[Solution] = []
    if writes:
        last = writes[-1]
        made.append(Solution((*good.acts[:last], *good.acts[last + 1 :]), good.answer))
        made += _astray(drawn, tools, good, writes)
    if draft.check.answer is not None:
        made.append(Solution(good.acts, _wrong(draft.check.answer)))
    made.append(Solution((*good.acts, _stray(drawn)), good.answer))
    return tuple(made)


def _writes(drawn: Drawn, tools: Mapping[str, Tool], acts: tuple[Act, ...]) -> list[int]:
    """The places of the acts that change the state."""
    with closing(restore(drawn.image)) as connection:
        counts = [_changes(tools, State(connection), one) for one in acts]
        return [place for place, count in enumerate(counts) if count]


def _changes(tools: Mapping[str, Tool], state: State, one: Act) -> int:
    """How many rows an act changes; none where its tool refuses it."""
    before = state.connection.total_changes
    result = tools[one.tool].at_once(one.arguments, state=state)
    return state.connection.total_changes - before if result.fault is None else 0


def _astray(drawn: Drawn, tools: Mapping[str, Tool], good: Solution, writes: list[int]) -> Iterator[Solution]:
    """The last write that can be made to land elsewhere, where its tool accepts it."""
    for place in reversed(writes):
        for other in _others(good.acts[place]):
            acts = (*good.acts[:place], other, *good.acts[place + 1 :])
            if _accepted(drawn, tools, acts[: place + 1]):
                yield Solution(acts, good.answer)
                return


def _others(one: Act) -> Iterator[Act]:
    """The same call with one of its numbers a little off; ids first, for these say where it lands."""
    numbers = [name for name, value in one.arguments.items() if isinstance(value, int) and not isinstance(value, bool)]
    for name in sorted(numbers, key=lambda name: not name.endswith("id")):
        value: Any = one.arguments[name]
        for other in (value + 1, value - 1, value + 2, value - 2, value + 3, value - 3):
            changed: dict[str, Json] = {**one.arguments, name: other}
            yield Act(one.tool, changed)


def _accepted(drawn: Drawn, tools: Mapping[str, Tool], acts: tuple[Act, ...]) -> bool:
    with closing(restore(drawn.image)) as connection:
        return [_changes(tools, State(connection), one) for one in acts][-1] > 0


def _wrong(answer: Answer) -> str:
    if answer.kind == "number" and isinstance(answer.value, int | float):
        return Answer("number", answer.value + 1).said
    if answer.kind == "items" and isinstance(answer.value, list):
        return Answer("items", answer.value[:-1] or ["none"]).said
    return Answer(answer.kind, f"not-{answer.value}").said


def _stray(drawn: Drawn) -> Act:
    with closing(restore(drawn.image)) as connection:
        return drawn.scenario.stray(State(connection))
