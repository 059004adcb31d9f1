"""A scenario's database from its statements: each is tried, and what does not load is said, not passed over."""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Iterable, Iterator
from contextlib import closing

from whet.worlds.awm.inside.clock import WorldClock, teach
from whet.worlds.awm.inside.messages import Built

_FORBIDDEN = frozenset({sqlite3.SQLITE_ATTACH, sqlite3.SQLITE_DETACH})


def build(path: str, ddl: Iterable[str], inserts: Iterable[str], clock: WorldClock) -> Built:
    with closing(sqlite3.connect(path)) as connection:
        teach(connection, clock)
        connection.set_authorizer(_allowed)
        # A row may name one that comes after it: the format does not say in which order tables are filled.
        connection.execute("PRAGMA foreign_keys = OFF")
        # Each statement is kept by itself. Nothing is lost if this machine fails: it is all built anew.
        connection.execute("PRAGMA synchronous = OFF")
        builder = _Builder(connection)
        for statement in ddl:
            builder.run(statement)
        for statement in inserts:
            builder.run(statement)
        connection.commit()
        return Built(builder.statements, builder.repaired, tuple(builder.failed))


class _Builder:
    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection
        self.statements = self.repaired = 0
        self.failed: list[str] = []

    def run(self, statement: str) -> None:
        self.statements += 1
        problem = self._tried(statement)
        if not problem:
            return
        mended = repaired(statement)
        if mended != statement and not self._tried(mended):
            self.repaired += 1
            return
        self.failed.append(f"{' '.join(statement.split())[:120]}: {problem}")

    def _tried(self, statement: str) -> str:
        self._connection.execute("SAVEPOINT statement")
        try:
            for single in _single(statement):
                self._connection.execute(single)
        except (sqlite3.Error, sqlite3.Warning, ValueError) as error:
            self._connection.execute("ROLLBACK TO statement")
            return str(error)
        finally:
            self._connection.execute("RELEASE statement")
        return ""


def repaired(statement: str) -> str:
    r"""`\'` as `''`, which is how SQLite writes a quote within a text."""
    return re.sub(r"\\'", "''", statement)


def _single(text: str) -> Iterator[str]:
    """The statements of a text, one at a time: SQLite runs one, and says nothing of the rest."""
    begun = ""
    for part in re.split(r"(?<=;)", text):
        begun += part
        if sqlite3.complete_statement(begun):
            yield begun
            begun = ""
    if begun.strip():
        yield begun


def _allowed(action: int, *_: object) -> int:
    return sqlite3.SQLITE_DENY if action in _FORBIDDEN else sqlite3.SQLITE_OK
