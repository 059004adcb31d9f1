"""The registry's index: which records there are, and who was made active when.

An activation is one inserted row, and the last row of a place (world, base, channel) is what is active there: so there
cannot be two, and no moment at which there is none. Any number of processes may write; each transaction waits its turn.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar

import msgspec

from whet.core import StoreBusy, StoreError, StoreFull
from whet.store.schema import migrate

S = TypeVar("S", bound=msgspec.Struct)

REGISTRY_MIGRATIONS: tuple[tuple[str, ...], ...] = (
    (
        # What was published, whole in `body`. `package` names the folder that holds its files.
        """CREATE TABLE records (
            id TEXT PRIMARY KEY, world TEXT NOT NULL, base TEXT NOT NULL, policy TEXT NOT NULL, package TEXT NOT NULL,
            at REAL NOT NULL, imported INTEGER NOT NULL, rejected TEXT NOT NULL, body BLOB NOT NULL) WITHOUT ROWID""",
        "CREATE INDEX records_by_package ON records (package)",
        # Proof of a gain over one incumbent each.
        """CREATE TABLE certificates (
            record TEXT NOT NULL REFERENCES records (id) ON DELETE CASCADE, incumbent TEXT NOT NULL, body TEXT NOT NULL,
            PRIMARY KEY (record, incumbent)) WITHOUT ROWID""",
        # Only added to. `before` is the activation that a rollback of this one goes back to.
        """CREATE TABLE activations (
            id INTEGER PRIMARY KEY, world TEXT NOT NULL, base TEXT NOT NULL, channel TEXT NOT NULL,
            record TEXT NOT NULL, before INTEGER, forced INTEGER NOT NULL, restored INTEGER NOT NULL,
            at REAL NOT NULL, who TEXT NOT NULL)""",
        "CREATE INDEX activations_by_place ON activations (world, base, channel, id)",
    ),
)

PATIENCE = 30.0
"""Seconds that a transaction waits for those of other processes."""

_ACTIVATION = "id, world, base, channel, record, before, forced, restored, at, who"
_RECORD = "id, world, base, policy, package, at, imported, rejected, body"
_LAST = "id IN (SELECT max(id) FROM activations GROUP BY world, base, channel)"


class RecordRow(msgspec.Struct, frozen=True, gc=False):
    id: str
    world: str
    base: str
    policy: str
    package: str
    at: float
    imported: bool
    rejected: str
    """Why it must not be used; empty if nobody says so."""
    body: bytes


class ActivationRow(msgspec.Struct, frozen=True, gc=False):
    id: int
    world: str
    base: str
    channel: str
    record: str
    before: int | None
    forced: bool
    """It was made active without a certificate."""
    restored: bool
    """By a rollback."""
    at: float
    who: str


class RegistryIndex:
    """One process's connection to the index. Reads see the last commit of whoever wrote."""

    def __init__(self, path: Path) -> None:
        self._path = path
        path.parent.mkdir(parents=True, exist_ok=True)
        with self._explained():
            self._db = _connect(path)

    def close(self) -> None:
        self._db.close()

    def version(self) -> int:
        """Another number after another process, or another connection, has written. Costs microseconds."""
        return int(self._one("PRAGMA data_version")[0])

    @contextmanager
    def writing(self) -> Generator[None]:
        """One transaction, alone: what is read in it still holds when it is written."""
        with self._explained():
            self._db.execute("BEGIN IMMEDIATE")
            try:
                yield
                self._db.execute("COMMIT")
            except BaseException:
                if self._db.in_transaction:
                    self._db.execute("ROLLBACK")
                raise

    def add_record(self, row: RecordRow) -> None:
        """The first one under an id stays."""
        self._run(
            f"INSERT OR IGNORE INTO records ({_RECORD}) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)",
            msgspec.structs.astuple(row),
        )

    def records(self, prefix: str = "", world: str = "") -> list[RecordRow]:
        """In the order in which they were published; all, or those that match. A prefix holds no wildcards."""
        found = self._all(
            f"SELECT {_RECORD} FROM records WHERE id >= ? AND id < ? AND (? = '' OR world = ?) ORDER BY at, id",
            (prefix, prefix + "\U0010ffff", world, world),
        )
        return [_struct(RecordRow, _RECORD, row) for row in found]

    def reject(self, record: str, why: str) -> None:
        self._run("UPDATE records SET rejected = ? WHERE id = ?", (why, record))

    def delete(self, record: str) -> None:
        self._run("DELETE FROM records WHERE id = ?", (record,))

    def packages(self) -> set[str]:
        return {name for (name,) in self._all("SELECT DISTINCT package FROM records")}

    def add_certificate(self, record: str, incumbent: str, body: str) -> None:
        self._run(
            "INSERT OR REPLACE INTO certificates (record, incumbent, body) VALUES (?, ?, ?)", (record, incumbent, body)
        )

    def certificates(self, record: str) -> list[str]:
        rows = self._all("SELECT body FROM certificates WHERE record = ? ORDER BY incumbent", (record,))
        return [body for (body,) in rows]

    def incumbents(self, record: str) -> set[str]:
        """Policies over which there is proof of a gain."""
        return {name for (name,) in self._all("SELECT incumbent FROM certificates WHERE record = ?", (record,))}

    def add_activation(self, row: ActivationRow) -> None:
        """Its id is given here."""
        names = _ACTIVATION.removeprefix("id, ")
        self._run(
            f"INSERT INTO activations ({names}) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)", msgspec.structs.astuple(row)[1:]
        )

    def active(self, world: str, base: str, channel: str) -> ActivationRow | None:
        found = self._activations(
            "world = ? AND base = ? AND channel = ? ORDER BY id DESC LIMIT 1", (world, base, channel)
        )
        return found[0] if found else None

    def all_active(self) -> list[ActivationRow]:
        return self._activations(f"{_LAST} ORDER BY world, base, channel")

    def activation(self, number: int) -> ActivationRow | None:
        found = self._activations("id = ?", (number,))
        return found[0] if found else None

    def history(self, world: str = "") -> list[ActivationRow]:
        return self._activations("? = '' OR world = ? ORDER BY id", (world, world))

    def _activations(self, where: str, values: tuple[object, ...] = ()) -> list[ActivationRow]:
        found = self._all(f"SELECT {_ACTIVATION} FROM activations WHERE {where}", values)
        return [_struct(ActivationRow, _ACTIVATION, row) for row in found]

    def _run(self, statement: str, values: tuple[object, ...]) -> None:
        with self._explained():
            self._db.execute(statement, values)

    def _all(self, question: str, values: tuple[object, ...] = ()) -> list[tuple[Any, ...]]:
        with self._explained():
            return self._db.execute(question, values).fetchall()

    def _one(self, question: str) -> Any:
        with self._explained():
            return self._db.execute(question).fetchone()

    @contextmanager
    def _explained(self) -> Generator[None]:
        try:
            yield
        except sqlite3.Error as error:
            raise _explain(error, self._path) from error


def _connect(path: Path) -> sqlite3.Connection:
    connection = sqlite3.connect(path, timeout=PATIENCE, isolation_level=None)
    connection.execute("PRAGMA journal_mode = WAL")
    # Writes are rare here, and what users are served must outlive a power cut too.
    connection.execute("PRAGMA synchronous = FULL")
    connection.execute("PRAGMA foreign_keys = ON")
    migrate(connection, path.name, REGISTRY_MIGRATIONS)
    return connection


def _struct(kind: type[S], columns: str, row: tuple[Any, ...]) -> S:
    return msgspec.convert(dict(zip(columns.split(", "), row, strict=True)), kind, strict=False)


def _explain(error: sqlite3.Error, path: Path) -> StoreError:
    code = getattr(error, "sqlite_errorcode", 0) & 0xFF
    if code in (sqlite3.SQLITE_FULL, sqlite3.SQLITE_IOERR):
        return StoreFull(f"{path} cannot be written: {error}", hint="Make room on the disk; nothing was changed.")
    if code in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED):
        return StoreBusy(
            f"{path} stayed locked by another process for {PATIENCE:.0f} s", hint="Try again; nothing was changed."
        )
    return StoreError(f"{path} cannot be used: {error}", hint="If it is damaged, restore it from a backup or export.")
