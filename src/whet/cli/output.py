"""How facts are printed: tables that fit the terminal, JSON for machines, colour where somebody sees it."""

from __future__ import annotations

import shutil
import sys
import textwrap
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import click
import msgspec

_GAP = "  "
_NARROWEST = 16
"""The flexible column is never made narrower."""
_SHORTEST = 8
"""Nor any other text; a line that is still too long is left to the terminal to wrap."""


class Column(msgspec.Struct, frozen=True):
    title: str
    right: bool = False
    """For numbers."""
    flexible: bool = False
    """It takes the room that is left, and wraps. At most one of a table, and the last."""


def number(title: str) -> Column:
    return Column(title, right=True)


def text(title: str) -> Column:
    return Column(title)


def rest(title: str) -> Column:
    return Column(title, flexible=True)


def width() -> int | None:
    """Columns to fit into, or None where nobody looks at the lines: a pipe gets each row whole."""
    return shutil.get_terminal_size().columns if sys.stdout.isatty() else None


def table(columns: Sequence[Column], rows: Iterable[Sequence[str]], room: int | None) -> list[str]:
    """Lines of a table, the titles first. Pure."""
    cells = [[column.title for column in columns], *(list(row) for row in rows)]
    widths = [max(len(row[index]) for row in cells) for index in range(len(columns))]
    if room is not None:
        _fit(columns, widths, room - len(_GAP) * (len(columns) - 1))
    return [line for row in cells for line in _row_lines(columns, row, widths)]


def _fit(columns: Sequence[Column], widths: list[int], room: int) -> None:
    """Wrap the flexible column first; then shorten the widest texts. Numbers are never cut."""
    if columns[-1].flexible:
        widths[-1] = min(widths[-1], max(_NARROWEST, room - sum(widths[:-1])))
    texts = [index for index, column in enumerate(columns) if not column.right and not column.flexible]
    while texts and sum(widths) > room:
        widest = max(texts, key=lambda index: widths[index])
        if widths[widest] <= _SHORTEST:
            return
        widths[widest] -= 1


def _row_lines(columns: Sequence[Column], row: Sequence[str], widths: Sequence[int]) -> list[str]:
    wrapped = [
        textwrap.wrap(cell, width, break_on_hyphens=False) or [""] if column.flexible else [_shortened(cell, width)]
        for column, cell, width in zip(columns, row, widths, strict=True)
    ]
    lines: list[str] = []
    for number in range(max(len(cell) for cell in wrapped)):
        parts = [cell[number] if number < len(cell) else "" for cell in wrapped]
        padded = [
            part.rjust(width) if column.right else part.ljust(width)
            for part, column, width in zip(parts, columns, widths, strict=True)
        ]
        lines.append(_GAP.join(padded).rstrip())
    return lines


def _shortened(cell: str, width: int) -> str:
    return cell if len(cell) <= width else f"{cell[: width - 1]}…"


def print_table(columns: Sequence[Column], rows: Iterable[Sequence[str]], indent: str = "") -> None:
    room = width()
    lines = table(columns, rows, None if room is None else room - len(indent))
    for position, line in enumerate(lines):
        click.echo(indent + (click.style(line, dim=True) if position == 0 else line))


def title(text: str) -> None:
    """A heading with an empty line above it."""
    click.echo("")
    click.secho(text, bold=True)


def paragraph(text: str, indent: str = "") -> None:
    """Wrapped to the terminal; whole in a pipe."""
    room = width()
    for line in text.splitlines() or [""]:
        parts = [line] if room is None else textwrap.wrap(line, max(_NARROWEST, room - len(indent))) or [""]
        for part in parts:
            click.echo(f"{indent}{part}".rstrip())


def pairs(rows: Iterable[tuple[str, str]]) -> None:
    """Names and what they say, one under another."""
    found = list(rows)
    longest = max((len(name) for name, _ in found), default=0)
    for name, said in found:
        click.echo(f"{click.style(name.ljust(longest), dim=True)}{_GAP}{said}")


def print_json(value: Any) -> None:
    click.echo(msgspec.json.format(msgspec.json.encode(value, enc_hook=_as_text), indent=2))


def _as_text(value: object) -> str:
    """What msgspec does not know. A path is written as people name it."""
    if isinstance(value, Path):
        return str(value)
    raise TypeError(f"{type(value).__name__} cannot be written as JSON")


def print_diff(lines: Iterable[str]) -> None:
    """A unified diff, coloured by its first letters."""
    for line in lines:
        colour = {"+": "green", "-": "red", "@": "cyan"}.get(line[:1])
        heading = line.startswith(("+++", "---"))
        click.echo(click.style(line, bold=True) if heading else click.style(line, fg=colour) if colour else line)
