"""The writing side of a run's file: look up, write, and know when what was written is safe.

Everything happens on the event loop's thread. Writes that arrive in one turn of the loop share a transaction, which
costs tens of microseconds in WAL mode; a writer thread would cost more, because it and the loop would fight for the
interpreter at every row.
"""

from __future__ import annotations

import asyncio
import os
import sqlite3
from collections.abc import Iterable
from contextlib import closing, suppress
from pathlib import Path
from typing import Any, TypeVar

import msgspec

from whet.core import Clock, ModelReply, Policy, StoreBusy, StoreError, StoreFull, SystemClock, Timer, Trajectory
from whet.store.lock import WriterLock
from whet.store.rows import AttemptStatus, RolloutRow, Row
from whet.store.schema import migrate

T = TypeVar("T")

_reply = msgspec.msgpack.Decoder(ModelReply)
_trajectory = msgspec.msgpack.Decoder(Trajectory)
_policy = msgspec.msgpack.Decoder(Policy)

LOCK_PATIENCE = 30.0
"""Seconds that a write waits for a stranger (a database browser, a backup) to let go of the file."""
LINGER = 0.2
"""Seconds that a row which nobody waits for may wait for company."""
_CHECKPOINT_EVERY = 4_000
"""Transactions between two checkpoints, which run on a thread of their own because they wait for the disk."""


class Spending(msgspec.Struct, frozen=True):
    """What a run has used so far, over all its processes."""

    calls: int = 0
    tokens: int = 0
    nanodollars: int = 0
    seconds: float = 0.0
    last_attempt: int = 0


class RunStore:
    """One run's file, open for writing by this process alone. Use `open_run`."""

    def __init__(self, path: Path, connection: sqlite3.Connection, lock: WriterLock, clock: Clock) -> None:
        self.path = path
        self._db = connection
        self._lock = lock
        self._clock = clock
        self._opened = self._counted = clock.now()
        self._session = 0
        self._pending: list[Row] = []
        self._fresh: dict[bytes, Trajectory] = {}
        """Rollouts among the pending rows, so that what was added is found at once."""
        self._committed: asyncio.Future[None] | None = None
        self._linger: Timer | None = None
        self._blocked_since: float | None = None
        self._broken: StoreError | None = None
        self._commits = 0
        self._checkpoint: asyncio.Future[None] | None = None

    def reply(self, key: bytes) -> ModelReply | None:
        found = self._one("SELECT reply FROM calls WHERE key = ?", (key,))
        return None if found is None else _reply.decode(found[0])

    def rollout(self, key: bytes) -> Trajectory | None:
        if key in self._fresh:
            return self._fresh[key]
        found = self._one("SELECT body FROM rollouts WHERE key = ?", (key,))
        return None if found is None else _trajectory.decode(found[0])

    def policy(self, fingerprint: str) -> Policy | None:
        found = self._one("SELECT body FROM policies WHERE fingerprint = ?", (fingerprint,))
        return None if found is None else _policy.decode(found[0])

    def decision(self, key: bytes, kind: type[T]) -> T | None:
        found = self._one("SELECT body FROM decisions WHERE key = ?", (key,))
        return None if found is None else msgspec.msgpack.decode(found[0], type=kind)

    def meta(self, name: str) -> str | None:
        found = self._one("SELECT value FROM meta WHERE name = ?", (name,))
        return None if found is None else str(found[0])

    def spending(self) -> Spending:
        calls, tokens, nanodollars, last = self._one(
            "SELECT count(*), coalesce(sum(tokens), 0), coalesce(sum(nanodollars), 0), coalesce(max(id), 0)"
            " FROM attempts"
        )
        (seconds,) = self._one("SELECT coalesce(sum(seconds), 0) FROM sessions WHERE id != ?", (self._session,))
        return Spending(calls, tokens, nanodollars, seconds, last)

    def _one(self, question: str, values: tuple[object, ...] = ()) -> Any:
        """The first row, or None."""
        try:
            return self._db.execute(question, values).fetchone()
        except sqlite3.Error as error:
            raise _explain(error, self.path) from error

    def add(self, *rows: Row) -> None:
        """Write with the next commit, without waiting for it: for what could be worked out again from what is stored.

        After a failed write nothing is added any more.
        """
        if self._broken is None:
            self._take(rows)
            if self._linger is None:
                self._linger = self._clock.call_later(LINGER, self._flush)

    async def write(self, *rows: Row) -> None:
        """Returns once `rows` are committed: a kill at any later moment does not lose them."""
        if self._broken is not None:
            raise self._broken
        self._take(rows)
        if self._committed is None:
            loop = asyncio.get_running_loop()
            self._committed = loop.create_future()
            loop.call_soon(self._flush)
        # A cancelled waiter must not cancel the commit that others wait for.
        await asyncio.shield(self._committed)

    def _take(self, rows: Iterable[Row]) -> None:
        for row in rows:
            self._pending.append(row)
            if isinstance(row, RolloutRow):
                self._fresh.setdefault(row.key, row.trajectory)

    def _flush(self) -> None:
        if not self._pending:
            return
        try:
            self._commit(self._pending)
        except sqlite3.OperationalError as error:
            if _is_locked(error) and self._may_wait():
                self._clock.call_later(0.05, self._flush)
                return
            self._break(_explain(error, self.path))
        except (sqlite3.Error, TypeError, ValueError, OverflowError) as error:
            self._break(_explain(error, self.path))
        else:
            self._pending, self._fresh, self._blocked_since = [], {}, None
            self._done(None)
            self._commits += 1
            if self._commits % _CHECKPOINT_EVERY == 0:
                self._start_checkpoint()

    def _done(self, error: StoreError | None) -> None:
        """Tell those who wait for the commit."""
        done, self._committed = self._committed, None
        if self._linger is not None:
            self._linger.cancel()
            self._linger = None
        if done is None or done.done():
            return
        if error is None:
            done.set_result(None)
        else:
            done.set_exception(error)
            done.exception()  # a waiter that was cancelled in the meantime leaves nobody to look at it

    def _commit(self, rows: Iterable[Row]) -> None:
        by_statement: dict[str, list[tuple[object, ...]]] = {}
        for row in rows:
            by_statement.setdefault(row.sql, []).append(row.values())
        self._db.execute("BEGIN IMMEDIATE")
        try:
            for statement, values in by_statement.items():
                self._db.executemany(statement, values)
            self._count_time()
            self._db.execute("COMMIT")
        except BaseException:
            if self._db.in_transaction:
                self._db.execute("ROLLBACK")
            raise

    def _may_wait(self) -> bool:
        now = self._clock.now()
        if self._blocked_since is None:
            self._blocked_since = now
        return now - self._blocked_since < LOCK_PATIENCE

    def _break(self, error: StoreError) -> None:
        """Nothing is written after a failed write, so that what is on disk stays one consistent past."""
        self._broken, self._pending, self._fresh = error, [], {}
        self._done(error)

    def _count_time(self) -> None:
        now = self._clock.now()
        if now - self._counted >= 1.0:
            self._counted = now
            self._db.execute("UPDATE sessions SET seconds = ? WHERE id = ?", (now - self._opened, self._session))

    def _start_checkpoint(self) -> None:
        if self._checkpoint is None or self._checkpoint.done():
            loop = asyncio.get_running_loop()
            self._checkpoint = loop.run_in_executor(None, _checkpoint, self.path)

    def begin_session(self) -> None:
        """Count this process's time, and close what the last one left open when it died."""
        with self._db:
            self._db.execute(
                "UPDATE attempts SET status = ? WHERE status = ?", (AttemptStatus.LOST, AttemptStatus.OPEN)
            )
            cursor = self._db.execute(
                "INSERT INTO sessions (started, seconds, pid) VALUES (?, 0, ?)", (self._clock.wall(), os.getpid())
            )
        self._session = cursor.lastrowid or 0

    async def aclose(self) -> None:
        """Commit what is left. Raises if any write failed, also one that nobody waited for."""
        try:
            if self._pending:
                await self.write()
            if self._checkpoint is not None:
                await self._checkpoint
            if self._broken is not None:
                raise self._broken
        finally:
            self.close()

    def close(self) -> None:
        if self._linger is not None:
            self._linger.cancel()
        with suppress(sqlite3.Error):  # the time of this process is worth keeping, not worth an error
            self._counted = 0.0
            self._count_time()
        self._db.close()
        self._lock.release()


def open_run(path: Path, clock: Clock | None = None) -> RunStore:
    """Open or create the file of a run for writing. Raises StoreBusy if another process does so already."""
    path.parent.mkdir(parents=True, exist_ok=True)
    lock = WriterLock(path.with_suffix(".lock"))
    try:
        connection = _connect(path)
        store = RunStore(path, connection, lock, clock or SystemClock())
        store.begin_session()
    except sqlite3.Error as error:
        lock.release()
        raise _explain(error, path) from error
    except BaseException:
        lock.release()
        raise
    return store


def _connect(path: Path) -> sqlite3.Connection:
    connection = sqlite3.connect(path, timeout=5.0, isolation_level=None)
    connection.execute("PRAGMA journal_mode = WAL")
    # In WAL mode this survives any death of the process; only a power cut can take the last moments, never the file.
    connection.execute("PRAGMA synchronous = NORMAL")
    connection.execute("PRAGMA wal_autocheckpoint = 0")
    connection.execute("PRAGMA cache_size = -8192")
    migrate(connection, path.name)
    # From here on a lock is waited for by the loop, not by SQLite, which would hold up every call in flight.
    connection.execute("PRAGMA busy_timeout = 0")
    return connection


def _checkpoint(path: Path) -> None:
    """A checkpoint that fails costs nothing: its log stays, and a disk that is full is told of by the next commit."""
    with suppress(sqlite3.Error), closing(sqlite3.connect(path, isolation_level=None)) as connection:
        connection.execute("PRAGMA wal_checkpoint(PASSIVE)")


def _is_locked(error: sqlite3.OperationalError) -> bool:
    return error.sqlite_errorcode & 0xFF in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED)


def _explain(error: Exception, path: Path) -> StoreError:
    name = f"{path.parent.name}/{path.name}"
    if not isinstance(error, sqlite3.Error):
        hint = "A text in it is not Unicode, or a number too large: look at what your world and its judge give."
        return StoreError(f"{name}: a row cannot be stored: {error}", hint=hint)
    code = getattr(error, "sqlite_errorcode", 0) & 0xFF
    if code in (sqlite3.SQLITE_FULL, sqlite3.SQLITE_IOERR):
        return StoreFull(f"{name} cannot be written: {error}", hint="Make room on the disk; the same command goes on.")
    if code in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED):
        return StoreBusy(
            f"{name} stayed locked by another program for {LOCK_PATIENCE:.0f} s",
            hint="Close what has it open; the same command goes on.",
        )
    return StoreError(f"{name} cannot be used: {error}", hint="If the file is damaged, move the run's folder away.")
