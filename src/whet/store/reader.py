"""The reading side of a run's file: any number of readers, also while it is being written."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from types import TracebackType
from typing import TypeVar

import msgspec

from whet.core import InputError, ModelReply, ModelRequest, Policy, Score, Split, StoreError, Trajectory
from whet.store.rows import AttemptStatus
from whet.store.schema import SCHEMA_VERSION, refuse_newer, version_of

T = TypeVar("T")


class SpendingLine(msgspec.Struct, frozen=True):
    """What one role spent on one purpose. `attempts` exceed `answers` by retries, second sendings and losses."""

    role: str
    purpose: str
    attempts: int
    answers: int
    failed: int
    abandoned: int
    lost: int
    tokens: int
    nanodollars: int
    seconds: float


class AnsweredLine(msgspec.Struct, frozen=True):
    """The calls whose answers count, however often they had to be sent."""

    role: str
    purpose: str
    calls: int
    input_tokens: int
    output_tokens: int
    nanodollars: int


class SplitScore(msgspec.Struct, frozen=True):
    policy: str
    split: Split
    score: Score


class StoredCall(msgspec.Struct, frozen=True):
    role: str
    purpose: str
    model: str
    reply: ModelReply
    request: ModelRequest | None


class StoredRollout(msgspec.Struct, frozen=True):
    at: float
    seconds: float
    trajectory: Trajectory


class FailureLine(msgspec.Struct, frozen=True):
    kind: str
    task: str
    message: str


class RunReader:
    """A read-only view. Each answer is consistent in itself; two answers may lie a moment apart."""

    def __init__(self, path: Path) -> None:
        if not path.is_file():
            raise InputError(f"there is no run at {path.parent}", hint="List them with `whet runs`.")
        self.path = path
        try:
            self._db = sqlite3.connect(f"{path.absolute().as_uri()}?mode=ro", uri=True, timeout=5.0)
            version = version_of(self._db)
        except sqlite3.Error as error:
            raise StoreError(f"{path.parent.name}/{path.name} cannot be read: {error}") from error
        refuse_newer(version, path.name)
        if version < SCHEMA_VERSION:
            raise StoreError(
                f"{path.parent.name}/{path.name} is of an older schema ({version}; this whet reads {SCHEMA_VERSION})",
                hint="Go on with it once (`whet train`), which lifts it.",
            )

    def __enter__(self) -> RunReader:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._db.close()
        if isinstance(error, sqlite3.Error):
            raise StoreError(
                f"{self.path.parent.name}/{self.path.name} cannot be read: {error}",
                hint="If the file is damaged, move the run's folder away.",
            ) from error

    def meta(self, name: str) -> str | None:
        found = self._db.execute("SELECT value FROM meta WHERE name = ?", (name,)).fetchone()
        return None if found is None else str(found[0])

    def spending(self) -> list[SpendingLine]:
        rows = self._db.execute(
            """SELECT role, purpose, sum(n), sum(n) FILTER (WHERE status = ?), sum(n) FILTER (WHERE status = ?),
                sum(n) FILTER (WHERE status = ?), sum(n) FILTER (WHERE status = ?), sum(tokens), sum(money), sum(secs)
            FROM (SELECT role, purpose, status, count(*) AS n, sum(tokens) AS tokens, sum(nanodollars) AS money,
                sum(seconds) AS secs FROM attempts GROUP BY role, purpose, status)
            GROUP BY role, purpose ORDER BY role, purpose""",
            (AttemptStatus.ANSWERED, AttemptStatus.FAILED, AttemptStatus.ABANDONED, AttemptStatus.LOST),
        )
        return [SpendingLine(*(row[:3]), *(count or 0 for count in row[3:])) for row in rows]

    def answered(self) -> list[AnsweredLine]:
        rows = self._db.execute(
            """SELECT role, purpose, count(*), sum(input_tokens), sum(output_tokens), sum(nanodollars)
            FROM calls GROUP BY role, purpose ORDER BY role, purpose"""
        )
        return [AnsweredLine(*row) for row in rows]

    def seconds(self) -> float:
        (seconds,) = self._db.execute("SELECT coalesce(sum(seconds), 0) FROM sessions").fetchone()
        return float(seconds)

    def scores(self) -> list[SplitScore]:
        """Means of every policy on every split; the covering index answers without reading a trajectory."""
        rows = self._db.execute(
            """SELECT policy, split, avg(hard), avg(soft), count(*) FROM rollouts
            GROUP BY policy, split ORDER BY policy, split"""
        )
        return [SplitScore(policy, Split(split), Score(hard, soft, n)) for policy, split, hard, soft, n in rows]

    def tasks_played(self, policy: str, split: Split) -> int:
        """Different tasks, however often each was tried. Reads the rows of this policy only."""
        (count,) = self._db.execute(
            "SELECT count(DISTINCT task) FROM rollouts WHERE policy = ? AND split = ?", (policy, split)
        ).fetchone()
        return int(count)

    def counts(self) -> dict[str, int]:
        # Decisions are written over, and take a new id then; of the others the last id is the count.
        counted: dict[str, str] = dict.fromkeys(("calls", "rollouts", "failures"), "coalesce(max(id), 0)")
        counted["decisions"] = "count(*)"
        return {
            table: int(self._db.execute(f"SELECT {count} FROM {table}").fetchone()[0])
            for table, count in counted.items()
        }

    def last_activity(self) -> float:
        (at,) = self._db.execute(
            """SELECT max((SELECT coalesce(max(started + seconds), 0) FROM sessions),
                (SELECT coalesce(max(at), 0) FROM decisions))"""
        ).fetchone()
        return float(at or 0.0)

    def decisions(self, kind: str, as_type: type[T]) -> list[T]:
        rows = self._db.execute("SELECT body FROM decisions WHERE kind = ? ORDER BY label, id", (kind,))
        decoder = msgspec.msgpack.Decoder(as_type)
        return [decoder.decode(body) for (body,) in rows]

    def policy(self, fingerprint: str) -> Policy | None:
        found = self._db.execute("SELECT body FROM policies WHERE fingerprint = ?", (fingerprint,)).fetchone()
        return None if found is None else msgspec.msgpack.decode(found[0], type=Policy)

    def policies(self) -> list[Policy]:
        rows = self._db.execute("SELECT body FROM policies ORDER BY fingerprint")
        return [msgspec.msgpack.decode(body, type=Policy) for (body,) in rows]

    def failures(self, limit: int = 20) -> list[FailureLine]:
        rows = self._db.execute("SELECT kind, task, message FROM failures ORDER BY id DESC LIMIT ?", (limit,))
        return [FailureLine(*row) for row in rows]

    def rollouts(self, *, policy: str = "", split: Split | None = None, task: str = "") -> Iterator[StoredRollout]:
        """In the order in which they were stored; all of them, or those that match."""
        asked = {"policy": policy, "split": split or "", "task": task}
        named = {column: value for column, value in asked.items() if value}
        where = " AND ".join(f"{column} = ?" for column in named) or "1"
        decoder = msgspec.msgpack.Decoder(Trajectory)
        rows = self._db.execute(
            f"SELECT at, seconds, body FROM rollouts WHERE {where} ORDER BY id", tuple(named.values())
        )
        for at, seconds, body in rows:
            yield StoredRollout(at, seconds, decoder.decode(body))

    def call_keys(self) -> set[bytes]:
        """The keys of all answers that are kept."""
        return {key for (key,) in self._db.execute("SELECT key FROM calls")}

    def calls(self) -> Iterator[StoredCall]:
        reply, request = msgspec.msgpack.Decoder(ModelReply), msgspec.msgpack.Decoder(ModelRequest)
        for role, purpose, model, asked, answered in self._db.execute(
            "SELECT role, purpose, model, request, reply FROM calls ORDER BY id"
        ):
            yield StoredCall(
                role, purpose, model, reply.decode(answered), None if asked is None else request.decode(asked)
            )


def meta_of(path: Path, name: str) -> str | None:
    """What `RunReader.meta` gives, also of a file of an older schema: a training must know it before it lifts it."""
    try:
        with closing(sqlite3.connect(f"{path.absolute().as_uri()}?mode=ro", uri=True, timeout=5.0)) as db:
            version = version_of(db)
            refuse_newer(version, path.name)
            found = db.execute("SELECT value FROM meta WHERE name = ?", (name,)).fetchone() if version else None
    except sqlite3.Error as error:
        raise StoreError(f"{path.parent.name}/{path.name} cannot be read: {error}") from error
    return None if found is None else str(found[0])


def sqlite_version() -> str:
    """Of the library that this Python is built with."""
    return sqlite3.sqlite_version
