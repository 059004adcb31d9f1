"""What changed from one state of an SQLite database to another, row by row and column by column. Pure.

A row is the same row where its primary key is the same. Where there is no key, or it holds NULL, a row is its content:
such rows are only added and removed. Types count: 1, 1.0, '1' and x'31' are four values.
"""

from __future__ import annotations

import sqlite3
from collections import Counter
from collections.abc import Iterable, Iterator
from itertools import chain
from operator import is_
from typing import TypeAlias

import msgspec

from whet.worlds.database.contents import Contents, Definition, Row, Table, Value, read

Typed: TypeAlias = tuple[tuple[type, Value], ...]

SHOWN_CHANGES = 20
SHOWN_WIDTH = 40
"""The most characters of one value in a text."""


class Cell(msgspec.Struct, frozen=True):
    column: str
    before: Value
    after: Value


class RowChange(msgspec.Struct, frozen=True):
    """`key` names the row by its primary key."""

    key: dict[str, Value]
    cells: tuple[Cell, ...]
    before: dict[str, Value]
    after: dict[str, Value]


class TableDifference(msgspec.Struct, frozen=True):
    """A column that one side lacks counts as NULL there; `columns_added` and `columns_removed` tell it apart."""

    table: str
    inserted: tuple[dict[str, Value], ...] = ()
    deleted: tuple[dict[str, Value], ...] = ()
    changed: tuple[RowChange, ...] = ()
    columns_added: tuple[str, ...] = ()
    columns_removed: tuple[str, ...] = ()

    @property
    def count(self) -> int:
        return len(self.inserted) + len(self.deleted) + len(self.changed)


class SchemaChange(msgspec.Struct, frozen=True):
    """None: it is not there."""

    kind: str
    name: str
    before: str | None
    after: str | None


class Difference(msgspec.Struct, frozen=True):
    """Tables and definitions by name, rows in the order of their keys. Rows of a new table are inserted ones."""

    tables: tuple[TableDifference, ...] = ()
    schema: tuple[SchemaChange, ...] = ()

    def __bool__(self) -> bool:
        return bool(self.tables or self.schema)

    @property
    def tables_added(self) -> tuple[str, ...]:
        return tuple(one.name for one in self.schema if one.kind == "table" and one.before is None)

    @property
    def tables_removed(self) -> tuple[str, ...]:
        return tuple(one.name for one in self.schema if one.kind == "table" and one.after is None)

    @property
    def count(self) -> int:
        return len(self.schema) + sum(table.count for table in self.tables)

    def text(self, limit: int = SHOWN_CHANGES) -> str:
        """One line a change, `limit` lines at most, and how many are left out."""
        lines: list[str] = []
        for line in self._lines():
            if len(lines) == limit:
                return "\n".join([*lines, f"… and {self.count - limit} more"])
            lines.append(line)
        return "\n".join(lines)

    def _lines(self) -> Iterator[str]:
        for change in self.schema:
            mark = "+" if change.before is None else "-" if change.after is None else "~"
            yield f"{mark} {change.kind} {change.name}"
        for table in self.tables:
            yield from (f"+ {table.table}: {shown_row(row)}" for row in table.inserted)
            yield from (f"- {table.table}: {shown_row(row)}" for row in table.deleted)
            yield from (f"~ {table.table} {shown_row(row.key)}: {_shown_cells(row.cells)}" for row in table.changed)


def difference(before: sqlite3.Connection, after: sqlite3.Connection) -> Difference:
    return compare(read(before), read(after))


def compare(before: Contents, after: Contents) -> Difference:
    names = sorted({*before.tables, *after.tables})
    tables = (_compare_tables(name, before.tables.get(name), after.tables.get(name)) for name in names)
    return Difference(tuple(table for table in tables if table is not None), _schema_changes(before, after))


def _schema_changes(before: Contents, after: Contents) -> tuple[SchemaChange, ...]:
    old, new = _by_name(before.definitions), _by_name(after.definitions)
    return tuple(
        SchemaChange(*name, old.get(name), new.get(name))
        for name in sorted({*old, *new})
        if old.get(name) != new.get(name)
    )


def _by_name(definitions: Iterable[Definition]) -> dict[tuple[str, str], str]:
    return {(one.kind, one.name): one.sql for one in definitions}


def _compare_tables(name: str, before: Table | None, after: Table | None) -> TableDifference | None:
    if before is None or after is None:
        gone = () if before is None else tuple(_named(before, row) for row in before.rows)
        new = () if after is None else tuple(_named(after, row) for row in after.rows)
        return TableDifference(name, new, gone) if gone or new else None
    if _equal(before, after):
        return None
    added = tuple(column for column in after.columns if column not in before.columns)
    removed = tuple(column for column in before.columns if column not in after.columns)
    same_key = _key_names(before) == _key_names(after) != ()
    inserted, deleted, changed = _by_key(before, after) if same_key else _by_content(before, after)
    if not (inserted or deleted or changed or added or removed):
        return None
    return TableDifference(name, inserted, deleted, changed, added, removed)


def _equal(before: Table, after: Table) -> bool:
    """Whether nothing is to be looked at row by row: most tables are as they were, and this is quick."""
    same = before.columns == after.columns and before.key == after.key and before.rows == after.rows
    return same and all(map(is_, _types(before.rows), _types(after.rows)))


def _types(rows: tuple[Row, ...]) -> Iterator[type]:
    return map(type, chain.from_iterable(rows))


_Parts: TypeAlias = tuple[tuple[dict[str, Value], ...], tuple[dict[str, Value], ...], tuple[RowChange, ...]]


def _by_key(before: Table, after: Table) -> _Parts:
    old, old_loose = _keyed(before)
    new, new_loose = _keyed(after)
    inserted = [_named(after, new[key]) for key in _ordered(new.keys() - old.keys())]
    deleted = [_named(before, old[key]) for key in _ordered(old.keys() - new.keys())]
    candidates = [key for key in old.keys() & new.keys() if _differs(before, after, old[key], new[key])]
    compared = (_changed(before, after, old[key], new[key]) for key in _ordered(candidates))
    loose = _by_content(_with_rows(before, old_loose), _with_rows(after, new_loose))
    return (*inserted, *loose[0]), (*deleted, *loose[1]), tuple(change for change in compared if change.cells)


def _differs(before: Table, after: Table, old: Row, new: Row) -> bool:
    return before.columns != after.columns or old != new or _typed(old) != _typed(new)


def _changed(before: Table, after: Table, old: Row, new: Row) -> RowChange:
    was, now = _named(before, old), _named(after, new)
    cells = tuple(
        Cell(column, was.get(column), now.get(column))
        for column in dict.fromkeys((*before.columns, *after.columns))
        if not _same(was.get(column), now.get(column))
    )
    return RowChange({before.columns[place]: old[place] for place in before.key}, cells, was, now)


def _by_content(before: Table, after: Table) -> _Parts:
    if before.columns != after.columns:
        return tuple(_named(after, row) for row in after.rows), tuple(_named(before, row) for row in before.rows), ()
    old, new = Counter(map(_typed, before.rows)), Counter(map(_typed, after.rows))
    return _rows(after, new - old), _rows(before, old - new), ()


def _rows(table: Table, counted: Counter[Typed]) -> tuple[dict[str, Value], ...]:
    return tuple(_named(table, tuple(value for _, value in row)) for row in _ordered(counted.elements()))


def _keyed(table: Table) -> tuple[dict[Typed, Row], tuple[Row, ...]]:
    """Rows by their keys, and those whose key holds NULL: SQLite allows any number of them."""
    keyed: dict[Typed, Row] = {}
    loose: list[Row] = []
    for row in table.rows:
        key = tuple(row[place] for place in table.key)
        if None in key:
            loose.append(row)
        else:
            keyed[_typed(key)] = row
    return keyed, tuple(loose)


def _with_rows(table: Table, rows: tuple[Row, ...]) -> Table:
    return msgspec.structs.replace(table, rows=rows)


def _key_names(table: Table) -> tuple[str, ...]:
    return tuple(table.columns[place] for place in table.key)


def _named(table: Table, row: Row) -> dict[str, Value]:
    return dict(zip(table.columns, row, strict=True))


def _typed(row: Row) -> Typed:
    return tuple((type(value), value) for value in row)


def _same(one: Value, other: Value) -> bool:
    return type(one) is type(other) and one == other


def _ordered(rows: Iterable[Typed]) -> list[Typed]:
    """In one order whatever the types: SQLite keeps any type in any column."""
    return sorted(rows, key=lambda row: [(kind.__name__, b"" if value is None else value) for kind, value in row])


def shown_row(row: dict[str, Value]) -> str:
    """The columns of a row with their values, each bounded."""
    return ", ".join(f"{column} {_shown(value)}" for column, value in row.items())


def _shown_cells(cells: tuple[Cell, ...]) -> str:
    return ", ".join(f"{cell.column} {_shown(cell.before)} -> {_shown(cell.after)}" for cell in cells)


def _shown(value: Value) -> str:
    if value is None:
        return "NULL"
    if isinstance(value, bytes):
        text = f"x'{value[:SHOWN_WIDTH].hex()}'"
    elif isinstance(value, str):
        text = repr(value[: SHOWN_WIDTH + 1])
    else:
        text = repr(value)
    return text if len(text) <= SHOWN_WIDTH else f"{text[: SHOWN_WIDTH - 1]}…"
