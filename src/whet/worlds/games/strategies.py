"""What games have in common whose reply is one JSON object of numbers and whose tasks are seeds."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from whet.core import Json, Split, Task, Verdict
from whet.worlds.games.seeds import SeedSettings, seeds
from whet.worlds.replies import read_object
from whet.worlds.schema import shown


def seed_tasks(settings: SeedSettings, prefix: str) -> Iterator[tuple[int, Task]]:
    for split in Split:
        for seed in seeds(settings, split):
            yield seed, Task(f"{prefix}-{seed}", split, {"seed": seed})


def seed_of(task: Task) -> int:
    seed = task.inputs["seed"]
    assert isinstance(seed, int)
    return seed


def number_schema(names: tuple[str, ...]) -> dict[str, Any]:
    number = {"type": "number", "minimum": 0, "maximum": 1}
    return {
        "type": "object",
        "properties": dict.fromkeys(names, number),
        "required": list(names),
        "additionalProperties": False,
    }


def read_numbers(reply: str, names: tuple[str, ...]) -> list[float]:
    """The numbers by these names. Raises ValueError unless the reply is one object of just these, all from 0 to 1."""
    found = read_object(reply)
    if missing := [name for name in names if name not in found]:
        raise ValueError(f"{missing[0]} is missing")
    if unknown := [name for name in found if name not in names]:
        raise ValueError(f"'{unknown[0]}' is not asked for")
    return [_number(found[name], name) for name in names]


def invalid(why: str, facts: dict[str, Json] | None = None) -> Verdict:
    return Verdict(False, 0.0, f"invalid: {why}", {**(facts or {}), "score": 0.0, "valid": False})


def _number(value: object, name: str) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise ValueError(f"{name} is not a number")
    if not 0 <= value <= 1:
        raise ValueError(f"{name} is {shown(value, 20)}, not from 0 to 1")
    return float(value)
