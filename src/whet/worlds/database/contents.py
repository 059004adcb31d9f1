"""Reading all of an SQLite database, as what it holds: definitions and rows, each value of its own type.

This is the only module here that asks SQLite what it knows of itself. It changes nothing in a database.
"""

from __future__ import annotations

import sqlite3
from typing import Any, TypeAlias

import msgspec

Value: TypeAlias = int | float | str | bytes | None
Row: TypeAlias = tuple[Value, ...]

_INTERNAL = "sqlite_"
"""How SQLite's own tables are named. What they hold, such as the last id given out, is not the world's."""


class Table(msgspec.Struct, frozen=True):
    """`columns` are the stored ones, in their order; `key` are the places of the primary key's among them."""

    columns: tuple[str, ...]
    key: tuple[int, ...]
    rows: tuple[Row, ...]


class Definition(msgspec.Struct, frozen=True):
    """A table, index, view or trigger, as it was written."""

    kind: str
    name: str
    sql: str


class Contents(msgspec.Struct, frozen=True):
    tables: dict[str, Table]
    definitions: tuple[Definition, ...]


def read(connection: sqlite3.Connection) -> Contents:
    """Everything that the database holds now; what a transaction under way has written is seen too."""
    factory = connection.text_factory
    connection.text_factory = _text
    try:
        definitions = _definitions(connection)
        stored = [one.name for one in definitions if one.kind == "table" and not _is_virtual(one)]
        return Contents({name: _table(connection, name) for name in stored}, definitions)
    finally:
        connection.text_factory = factory


def _definitions(connection: sqlite3.Connection) -> tuple[Definition, ...]:
    found = _all(connection, "SELECT type, name, sql FROM sqlite_schema WHERE sql IS NOT NULL ORDER BY type, name")
    return tuple(Definition(kind, name, sql) for kind, name, sql in found if not name.lower().startswith(_INTERNAL))


def _is_virtual(table: Definition) -> bool:
    """A virtual table holds nothing itself: what it keeps stands in tables of its own, which are read."""
    return table.sql.split(None, 2)[1].upper() == "VIRTUAL"


def _table(connection: sqlite3.Connection, name: str) -> Table:
    described = _all(connection, f"PRAGMA table_info({quoted(name)})")
    columns = tuple(str(column[1]) for column in described)
    key = tuple(place for _, place in sorted((column[5], place) for place, column in enumerate(described) if column[5]))
    names = ", ".join(map(quoted, columns))
    return Table(columns, key, tuple(_all(connection, f"SELECT {names} FROM {quoted(name)}")))


def _all(connection: sqlite3.Connection, sql: str) -> list[Any]:
    cursor = connection.cursor()
    cursor.row_factory = None
    return cursor.execute(sql).fetchall()


def _text(stored: bytes) -> str:
    """SQLite keeps any bytes as text; those that are not UTF-8 stay apart from those that are."""
    return stored.decode("utf-8", "surrogateescape")


def quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'
