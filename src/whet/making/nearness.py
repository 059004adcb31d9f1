"""Whether a scenario is another one in other words. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

import msgspec

from whet.making.answers import Sketch

NAMES, DESCRIPTIONS, TABLES = 0.75, 0.6, 0.7
"""From which share of common words on two of these are the same."""
_FEWEST = 3
"""Sets of fewer tables say nothing."""
_EMPTY_WORDS = frozenset(
    """
    a an and app application are as at by can for from in into is it its management manager network of on online or
    platform portal program service services software system that the their they this to tool users with
    """.split()  # noqa: SIM905 (a list of forty texts is no better to read)
)


class Near(msgspec.Struct, frozen=True):
    name: str
    """Of the one that is there already."""
    what: str
    share: float

    def __str__(self) -> str:
        return f"its {self.what} {'are' if self.what == 'tables' else 'is'} too close to those of {self.name!r}"


def nearest_of(sketch: Sketch, known: Iterable[Sketch]) -> Near | None:
    """The closest of those that are too close."""
    near = [found for one in known for found in _compared(sketch, one)]
    return max(near, key=lambda found: found.share, default=None)


def most_alike(theme: str, known: Sequence[Sketch], most: int) -> list[Sketch]:
    """Those to be told to whoever is to think of another one: the closest to the theme."""
    wanted = words(theme)
    return sorted(known, key=lambda one: (-overlap(wanted, words(f"{one.name} {one.description}")), one.name))[:most]


def _compared(sketch: Sketch, other: Sketch) -> Iterable[Near]:
    shares = [
        ("name", overlap(words(sketch.name), words(other.name)), NAMES),
        ("description", overlap(words(sketch.description), words(other.description)), DESCRIPTIONS),
    ]
    tables, others = table_names(sketch), table_names(other)
    if min(len(tables), len(others)) >= _FEWEST:
        shares.append(("tables", overlap(tables, others), TABLES))
    return [Near(other.name, what, share) for what, share, limit in shares if share >= limit]


def overlap(one: frozenset[str], other: frozenset[str]) -> float:
    return len(one & other) / len(one | other) if one and other else 0.0


def words(text: str) -> frozenset[str]:
    """The words that say something, without their plural. Of a text with none, all words."""
    found = [_singular(word) for word in re.findall(r"[^\W_]+", text.lower())]
    return frozenset(word for word in found if word not in _EMPTY_WORDS) or frozenset(found)


def table_names(sketch: Sketch) -> frozenset[str]:
    return frozenset("_".join(sorted(map(_singular, re.findall(r"[^\W_]+", name.lower())))) for name in sketch.tables)


def _singular(word: str) -> str:
    if len(word) > 4 and word.endswith("ies"):
        return f"{word[:-3]}y"
    return word[:-1] if len(word) > 3 and word.endswith("s") and not word.endswith("ss") else word
