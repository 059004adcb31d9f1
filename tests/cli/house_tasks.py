"""Makes the tasks of the project that `whet init` writes: `python tests/cli/house_tasks.py` writes them anew."""

from __future__ import annotations

import json
from collections.abc import Iterator
from itertools import product
from pathlib import Path
from random import Random

TASKS = Path(__file__).resolve().parents[2] / "src/whet/cli/template/tasks"
SIZES = {"train": 80, "selection": 40, "test": 100}
SEED = 7

ROOMS = ("kitchen", "hall", "attic", "porch", "cellar", "study", "garage", "bathroom", "bedroom", "nursery")
STYLES = ("jazz", "rock", "folk", "opera", "blues")


def sentences() -> Iterator[tuple[str, str, str]]:
    """Kind, sentence and command."""
    for room, state in product(ROOMS, ("on", "off")):
        yield "light", f"Turn {state} the light in the {room}.", f"light({room},{state})"
        yield "light", f"Switch the lights in the {room} {state}, please.", f"light({room},{state})"
    for room, degrees in product(ROOMS, range(14, 26)):
        yield "heat", f"Set the heating in the {room} to {degrees} degrees.", f"heat({room},{degrees})"
        yield "heat", f"I would like it to be {degrees} degrees in the {room}.", f"heat({room},{degrees})"
    for minutes in range(2, 60):
        yield "timer", f"Wake me in {minutes} minutes.", f"timer({minutes})"
        yield "timer", f"Remind me of the oven when {minutes} minutes have passed.", f"timer({minutes})"
    for room, action in product(ROOMS, ("lock", "unlock")):
        yield "door", f"Please {action} the {room} door.", f"door({room},{action})"
        yield "door", f"{action.capitalize()} the door to the {room}.", f"door({room},{action})"
    for room, direction in product(ROOMS, ("up", "down")):
        yield "blind", f"Move the blinds in the {room} {direction}.", f"blind({room},{direction})"
        yield "blind", f"Blinds {direction} in the {room}, please.", f"blind({room},{direction})"
    for room, style in product(ROOMS, STYLES):
        yield "music", f"Play some {style} in the {room}.", f"music({room},{style})"
        yield "music", f"I want to hear {style} in the {room}.", f"music({room},{style})"


def splits() -> dict[str, list[dict[str, str]]]:
    """The same number of each kind in every split, as far as it can be divided."""
    chance = Random(SEED)
    kinds: dict[str, list[tuple[str, str]]] = {}
    for kind, sentence, command in sentences():
        kinds.setdefault(kind, []).append((sentence, command))
    for found in kinds.values():
        chance.shuffle(found)
    return {split: _draw(kinds, split, size) for split, size in SIZES.items()}


def _draw(kinds: dict[str, list[tuple[str, str]]], split: str, size: int) -> list[dict[str, str]]:
    rows: list[dict[str, str]] = []
    names = list(kinds)
    for number in range(size):
        kind = names[number % len(names)]
        sentence, command = kinds[kind].pop()
        rows.append({"id": f"{split}-{number + 1:03d}", "kind": kind, "question": sentence, "answer": command})
    return rows


def as_lines(rows: list[dict[str, str]]) -> str:
    return "".join(json.dumps(row) + "\n" for row in rows)


if __name__ == "__main__":
    for split, rows in splits().items():
        (TASKS / f"{split}.jsonl").write_text(as_lines(rows), encoding="utf-8")
