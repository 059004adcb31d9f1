"""What all drills share: tasks by seed, a brief of two lines, a check to the letter.

A drill itself draws items and reads answers.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from hashlib import blake2b
from random import Random
from typing import Any, ClassVar, Generic, TypeVar

import msgspec

from whet.core import ConfigError, Json, Split, Task, Verdict
from whet.worlds.games.seeds import SeedSettings, seeds
from whet.worlds.text import shorten

T = TypeVar("T")

_SELECTED = (Split.SELECTION, Split.CONFIRM)
_SHARE = 3
"""One in so many texts belongs to selection and confirm; the text alone says which, so no text is in two splits."""
_DRAWS = 1000
_TRIES = 3000
"""Seeds without a new text after which there is none left."""


class DrillSettings(SeedSettings, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """How many tasks of each split, and from which place in the split's range."""


class Words(Generic[T]):
    """Words of one kind: those that training may know, and those that only test and confirm use."""

    def __init__(self, known: Sequence[T], new: Sequence[T]) -> None:
        self._known = tuple(known)
        self._new = tuple(new)

    def draw(self, rng: Random, *, new: bool) -> T:
        return rng.choice(self._new if new else self._known)


class Item(msgspec.Struct, frozen=True):
    text: str
    answer: str
    kind: str = ""


class Drill(ABC):
    """A world's author: see `whet.worlds.authoring`."""

    asks: ClassVar[tuple[str, str]]
    """What stands before the text and before the answer: ("Sentence", "Command")."""
    content: ClassVar[str]
    """Changes whenever an item or a verdict could."""
    answer_schema: ClassVar[dict[str, Any] | None] = None

    def __init__(self, settings: DrillSettings) -> None:
        self._settings = settings

    @abstractmethod
    def draw(self, rng: Random, *, new: bool) -> Item:
        """One item; with `new`, at least one word of it is never drawn without."""

    @abstractmethod
    def parts(self, answer: str) -> Sequence[str] | str:
        """The parts of an answer that are right or wrong by themselves, or what is wrong with its form."""

    def item(self, seed: int, split: Split) -> Item:
        new = split in (Split.TEST, Split.CONFIRM)
        rng = Random(f"{self.content} {seed}")
        for _ in range(_DRAWS):
            item = self.draw(rng, new=new)
            if _is_selected(item.text) is (split in _SELECTED):
                return item
        raise AssertionError("a third of all texts is for selection")

    def tasks(self) -> Iterator[Task]:
        for split in Split:
            yield from self._tasks(split)

    def _tasks(self, split: Split) -> Iterator[Task]:
        """A text is asked once, so the split goes on through its seeds until it has as many as it should."""
        wanted = seeds(self._settings, split)
        said: set[str] = set()
        seed, last = wanted.start, wanted.start
        while len(said) < len(wanted):
            item = self.item(seed, split)
            if item.text not in said:
                said.add(item.text)
                last = seed
                yield Task(f"{split}-{seed}", split, {"text": item.text, "seed": seed}, item.kind)
            elif seed - last > _TRIES:
                raise ConfigError(f"world.{split}: there are no {len(wanted)} different tasks, only about {len(said)}")
            seed += 1

    def brief(self, task: Task) -> str:
        text, answer = self.asks
        return f"{text}: {task.inputs['text']}\n{answer}:"

    def judge(self, task: Task, answer: str) -> Verdict:
        right = self._right(task)
        said, wanted = self.parts(answer.strip()), self.parts(right)
        assert not isinstance(wanted, str), "known answers have the right form"
        if isinstance(said, str):
            return self._verdict(False, 0.0, f"invalid: {said}; {self.asks[1].lower()} {right} was right", right, False)
        if tuple(said) == tuple(wanted):
            return self._verdict(True, 1.0, "right", right, True)
        share = sum(a == b for a, b in zip(said, wanted, strict=False)) / max(len(said), len(wanted))
        return self._verdict(False, 0.9 * share, f"wrong: {shorten(answer)} instead of {right}", right, True)

    def _verdict(self, hard: bool, soft: float, feedback: str, right: str, valid: bool) -> Verdict:
        facts: dict[str, Json] = {"valid": valid}
        return Verdict(hard, soft, feedback, facts, right)

    def known_good(self, task: Task) -> str:
        return self._right(task)

    def _right(self, task: Task) -> str:
        seed = task.inputs["seed"]
        assert isinstance(seed, int)
        return self.item(seed, task.split).answer


def _is_selected(text: str) -> bool:
    return blake2b(text.encode(), digest_size=4).digest()[0] % _SHARE == 0


def read_json(answer: str, fields: dict[str, tuple[type, ...]]) -> list[str] | str:
    """The values of one JSON object with exactly these fields, as texts; or what is wrong with it."""
    try:
        found = msgspec.json.decode(answer, type=dict[str, Any])
    except (msgspec.DecodeError, RecursionError):
        return f"{shorten(answer, 60)!r} is not one JSON object"
    if set(found) != set(fields):
        return f"not an object with {', '.join(fields)}"
    wrong = [name for name, kinds in fields.items() if type(found[name]) not in kinds]
    return f"{wrong[0]} has the wrong type" if wrong else [msgspec.json.encode(found[name]).decode() for name in fields]
