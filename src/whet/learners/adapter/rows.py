"""Laying examples in rows to be evaluated at once, what several begin with in common only once. Pure.

A row is a tree written down in one line: each token sees itself and those before it in its own example, at the
position that it has there, so every example is computed as if it were alone. Skills make prompts long and alike, and
turns of one episode begin with the turns before: most of what is read would otherwise be read again and again.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import msgspec

from whet.learners.adapter.orders import Example


class Span(msgspec.Struct, frozen=True):
    """Consecutive tokens of a row, and which tokens before them they see."""

    start: int
    end: int
    before: tuple[tuple[int, int], ...]


class Row(msgspec.Struct, frozen=True):
    tokens: tuple[int, ...]
    positions: tuple[int, ...]
    spans: tuple[Span, ...]
    at: tuple[int, ...]
    """For each learned token, the one that it follows."""
    targets: tuple[int, ...]

    @property
    def is_plain(self) -> bool:
        """One example alone, each token seeing all before it."""
        return len(self.spans) == 1


def rows_of(examples: Sequence[Example], most: int, *, packing: bool = True) -> tuple[Row, ...]:
    """Rows of about equal length and at most `most` tokens; only an example longer than that makes a longer one."""
    if not (packing and examples):
        return tuple(_row([example]) for example in examples)
    ordered = sorted(examples, key=lambda example: (*example.prompt, *example.completion))
    total = sum(len(each) for each in _added(ordered))
    target = total / max(1, -(-total // most))
    rows: list[Row] = []
    held: list[Example] = []
    size = 0
    for example in ordered:
        more = example.length - (_common(held[-1], example) if held else 0)
        if held and (size + more > most or size >= target):
            rows.append(_row(held))
            held, size, more = [], 0, example.length
        held.append(example)
        size += more
    return (*rows, _row(held)) if held else tuple(rows)


def _added(ordered: Sequence[Example]) -> list[range]:
    """Which of each example's tokens are not there from the one before."""
    firsts = [0, *(_common(left, right) for left, right in pairwise(ordered))]
    return [range(first, example.length) for first, example in zip(firsts, ordered, strict=True)]


def _common(left: Example, right: Example) -> int:
    """How many tokens two examples begin with in common. The last token of an example is only ever a target."""
    one, other = (*left.prompt, *left.completion), (*right.prompt, *right.completion)
    length = min(len(one), len(other)) - 1
    return next((place for place in range(length) if one[place] != other[place]), length)


def _row(examples: Sequence[Example]) -> Row:
    """Of examples in order, so what one shares with any before it, it shares with the one just before."""
    tokens: list[int] = []
    positions: list[int] = []
    spans: list[Span] = []
    at: list[int] = []
    targets: list[int] = []
    path: list[int] = []
    """Where in the row the tokens of the last example lie."""
    for added, example in zip(_added(examples), examples, strict=True):
        whole = (*example.prompt, *example.completion)
        # Nothing follows the last token, so it need not be read.
        fresh = range(added.start, len(whole) - 1)
        start = len(tokens)
        path = [*path[: fresh.start], *range(start, start + len(fresh))]
        if fresh:
            spans.append(Span(start, start + len(fresh), _intervals(path[: fresh.start])))
        tokens += whole[fresh.start : fresh.stop]
        positions += fresh
        at += path[len(example.prompt) - 1 :]
        targets += example.completion
    return Row(tuple(tokens), tuple(positions), tuple(spans), tuple(at), tuple(targets))


def _intervals(places: Sequence[int]) -> tuple[tuple[int, int], ...]:
    found: list[tuple[int, int]] = []
    for place in places:
        if found and found[-1][1] == place:
            found[-1] = (found[-1][0], place + 1)
        else:
            found.append((place, place + 1))
    return tuple(found)
