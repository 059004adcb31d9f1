"""A database from its statements, and what is wrong with it. It is built in the sandbox's own folder."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from typing import Any

from whet.worlds.awm.inside.clock import WorldClock
from whet.worlds.awm.inside.database import build

_FILE = "tried.db"
_MOST = 20


def loaded(ddl: list[str], inserts: list[str], moment: float) -> dict[str, Any]:
    """The rows of each table; statements that fail; rows whose foreign keys lead nowhere."""
    built = build(_FILE, ddl, inserts, WorldClock(moment))
    with closing(sqlite3.connect(_FILE)) as connection:
        names = "SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT LIKE 'sqlite\\_%' ESCAPE '\\'"
        tables = {name: _count(connection, name) for (name,) in connection.execute(names).fetchall()}
        return {"failed": built.failed[:_MOST], "tables": tables, "orphans": list(_orphans(connection))[:_MOST]}


def _count(connection: sqlite3.Connection, table: str) -> int:
    return connection.execute(f"SELECT count(*) FROM {_quoted(table)}").fetchone()[0]


def _orphans(connection: sqlite3.Connection) -> Iterator[str]:
    try:
        for table, row, parent, _ in connection.execute("PRAGMA foreign_key_check"):
            where = f"row {row} of {table}" if row is not None else f"a row of {table}"
            yield f"{where} refers to a row of {parent} that is not there"
    except sqlite3.Error as error:
        # Such as a reference to a column that is no key: found out only when keys are checked.
        yield str(error)


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'
