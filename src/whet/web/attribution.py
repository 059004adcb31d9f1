"""Which version of a text last wrote each of its lines, and which one took a line away. Pure.

It knows nothing of runs: a version is a sequence of lines, and is named by its place in the sequence of versions.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from difflib import SequenceMatcher
from enum import StrEnum
from itertools import groupby

import msgspec


class RowKind(StrEnum):
    KEPT = "kept"
    ADDED = "added"
    REMOVED = "removed"


class Row(msgspec.Struct, frozen=True):
    """A line of the first or the last version. `by` is the version that added or removed it; 0 for what was kept."""

    kind: RowKind
    text: str
    by: int = 0


class _Line(msgspec.Struct, frozen=True):
    """A line of any version, with the version that wrote it and the one that took it away."""

    text: str
    born: int
    died: int | None = None


def lines_of(text: str) -> tuple[str, ...]:
    """Split at line feeds alone, so that joining them gives the text back but for its last one."""
    return tuple(text.removesuffix("\n").split("\n")) if text else ()


def annotate(versions: Sequence[Sequence[str]]) -> list[Row]:
    """The last version against the first, line by line.

    Without the added rows it is the first version, without the removed ones the last. A line that was taken away and
    written again as it was counts as kept.
    """
    weave = [_Line(text, 0) for text in versions[0]] if versions else []
    for number, lines in enumerate(versions[1:], start=1):
        weave = _woven(weave, lines, number)
    rows = [row for line in weave for row in _rows(line)]
    hunks = groupby(rows, key=lambda row: row.kind is RowKind.KEPT)
    return [row for kept, hunk in hunks for row in (hunk if kept else _settled(list(hunk)))]


def _woven(weave: Sequence[_Line], lines: Sequence[str], number: int) -> list[_Line]:
    """All lines that there ever were, in an order that agrees with every version so far and this one."""
    alive = [place for place, line in enumerate(weave) if line.died is None]
    matcher = SequenceMatcher(None, [weave[place].text for place in alive], list(lines), autojunk=False)
    woven: list[_Line] = []
    taken = 0
    for change, first, last, new_first, new_last in matcher.get_opcodes():
        reached = alive[last - 1] + 1 if last > first else taken
        for line in weave[taken:reached]:
            ends = change != "equal" and line.died is None
            woven.append(_Line(line.text, line.born, number) if ends else line)
        taken = reached
        if change in ("insert", "replace"):
            woven += [_Line(text, number) for text in lines[new_first:new_last]]
    return [*woven, *weave[taken:]]


def _rows(line: _Line) -> Iterator[Row]:
    """What came and went in between is not a row."""
    if line.died is None:
        yield Row(RowKind.ADDED, line.text, line.born) if line.born else Row(RowKind.KEPT, line.text)
    elif line.born == 0:
        yield Row(RowKind.REMOVED, line.text, line.died)


def _settled(hunk: Sequence[Row]) -> Iterator[Row]:
    """Neighbouring changes, with what was only written again told apart from what is different."""
    removed = [row for row in hunk if row.kind is RowKind.REMOVED]
    added = [row for row in hunk if row.kind is RowKind.ADDED]
    matcher = SequenceMatcher(None, [row.text for row in removed], [row.text for row in added], autojunk=False)
    for change, first, last, new_first, new_last in matcher.get_opcodes():
        if change == "equal":
            yield from (Row(RowKind.KEPT, row.text) for row in removed[first:last])
        else:
            yield from removed[first:last]
            yield from added[new_first:new_last]
