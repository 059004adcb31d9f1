"""Rows of task files: .jsonl, .json and .csv, each with where it stands. Files are parsed, never executed."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator
from pathlib import Path
from typing import Any, TypeAlias, cast

import msgspec

from whet.core import InputError, Json, Split

FORMATS = (".jsonl", ".json", ".csv")


class Row(msgspec.Struct, frozen=True, gc=False):
    """One line of a task file."""

    fields: dict[str, Json]
    where: str
    folder: Path
    """What the paths in this row are relative to."""
    split: Split | None = None


class BadRow(msgspec.Struct, frozen=True):
    problem: str


Found: TypeAlias = Row | BadRow
_decode = msgspec.json.Decoder(dict[str, Any]).decode


def read_rows(path: Path, shown: str, split: Split | None = None) -> Iterator[Found]:
    """Every row of a file, good or bad; `shown` is the path as the user wrote it."""
    reader = {".jsonl": _lines, ".json": _array, ".csv": _cells}.get(path.suffix.lower())
    if reader is None:
        raise InputError(f"{shown} is not one of {', '.join(FORMATS)}", hint="One JSON object a line is best: .jsonl")
    try:
        content = path.read_bytes()
    except OSError as error:
        raise InputError(f"{shown} cannot be read: {error.strerror}", hint=f"It was looked for at {path}") from error
    folder = path.parent
    for fields, where in reader(content.removeprefix(b"\xef\xbb\xbf"), shown):
        yield BadRow(f"{where}: {fields}") if isinstance(fields, str) else Row(fields, where, folder, split)


def _lines(content: bytes, shown: str) -> Iterator[tuple[dict[str, Json] | str, str]]:
    # Only line feeds separate: JSON text may hold other line separators as they are.
    for number, line in enumerate(content.split(b"\n"), start=1):
        if line.strip():
            yield _object(line), f"{shown}:{number}"


def _object(line: bytes) -> dict[str, Json] | str:
    try:
        return _decode(line)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        return f"not a JSON object ({error})"


def _array(content: bytes, shown: str) -> Iterator[tuple[dict[str, Json] | str, str]]:
    try:
        rows = msgspec.json.decode(content, type=list[Any])
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise InputError(f"{shown} is not a JSON list ({error})") from error
    for index, row in enumerate(rows):
        where = f"{shown}[{index}]"
        yield (cast("dict[str, Json]", row), where) if isinstance(row, dict) else ("not a JSON object", where)


def _cells(content: bytes, shown: str) -> Iterator[tuple[dict[str, Json] | str, str]]:
    try:
        table = csv.DictReader(io.StringIO(content.decode("utf-8"), newline=""), strict=True)
    except UnicodeDecodeError as error:
        raise InputError(f"{shown} is not UTF-8 text ({error})") from error
    try:
        for cells in table:
            where = f"{shown}:{table.line_num}"
            if None in cells or None in cells.values():
                yield "another number of cells than the header", where
            else:
                yield {name: value for name, value in cells.items() if value != ""}, where
    except csv.Error as error:
        raise InputError(f"{shown}:{table.line_num}: {error}") from error
