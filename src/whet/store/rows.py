"""What is written, as structs: one for each table that others add to."""

from __future__ import annotations

from enum import StrEnum
from typing import Any, ClassVar, Protocol

import msgspec

from whet.core import ModelReply, ModelRequest, Policy, Trajectory

_pack = msgspec.msgpack.Encoder().encode


class Row(Protocol):
    """A row knows its statement and its values; rows of one statement are written together."""

    sql: ClassVar[str]

    def values(self) -> tuple[Any, ...]: ...


class CallRow(msgspec.Struct, frozen=True, gc=False):
    key: bytes
    role: str
    purpose: str
    model: str
    input_tokens: int
    output_tokens: int
    nanodollars: int
    reply: ModelReply
    request: ModelRequest | None = None

    sql: ClassVar[str] = (
        "INSERT OR IGNORE INTO calls (key, role, purpose, model, input_tokens, output_tokens, nanodollars, request,"
        " reply) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)"
    )

    def values(self) -> tuple[Any, ...]:
        return (
            self.key,
            self.role,
            self.purpose,
            self.model,
            self.input_tokens,
            self.output_tokens,
            self.nanodollars,
            None if self.request is None else _pack(self.request),
            _pack(self.reply),
        )


class AttemptStatus(StrEnum):
    OPEN = "open"
    ANSWERED = "answered"
    FAILED = "failed"
    ABANDONED = "abandoned"
    """Another sending of the same call answered first; it counts as used all the same."""
    LOST = "lost"
    """Its process died while it was open; it counts at what was reserved for it."""


class AttemptRow(msgspec.Struct, frozen=True, gc=False):
    """`id` is given by the ledger, so that an open attempt can be written over when it ends."""

    id: int
    call: bytes
    role: str
    purpose: str
    status: AttemptStatus
    tokens: int
    nanodollars: int
    at: float
    seconds: float = 0.0
    note: str = ""

    sql: ClassVar[str] = (
        "INSERT OR REPLACE INTO attempts (id, call, role, purpose, status, tokens, nanodollars, at, seconds, note)"
        " VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"
    )

    def values(self) -> tuple[Any, ...]:
        return (
            self.id,
            self.call,
            self.role,
            self.purpose,
            self.status,
            self.tokens,
            self.nanodollars,
            self.at,
            self.seconds,
            self.note,
        )


class RolloutRow(msgspec.Struct, frozen=True, gc=False):
    key: bytes
    trajectory: Trajectory
    at: float
    seconds: float

    sql: ClassVar[str] = (
        "INSERT OR IGNORE INTO rollouts (key, policy, split, task, sample, kind, hard, soft, at, seconds, body)"
        " VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"
    )

    def values(self) -> tuple[Any, ...]:
        played = self.trajectory
        return (
            self.key,
            played.policy,
            played.split,
            played.task,
            played.sample,
            played.kind,
            int(played.hard),
            played.soft,
            self.at,
            self.seconds,
            _pack(played),
        )


class FailureRow(msgspec.Struct, frozen=True, gc=False):
    key: bytes
    kind: str
    task: str
    message: str
    at: float

    sql: ClassVar[str] = "INSERT INTO failures (key, kind, task, message, at) VALUES (?, ?, ?, ?, ?)"

    def values(self) -> tuple[Any, ...]:
        return (self.key, self.kind, self.task, self.message, self.at)


class DecisionRow(msgspec.Struct, frozen=True, gc=False):
    """`body` is any struct; whoever reads it names its type."""

    key: bytes
    kind: str
    label: str
    at: float
    body: msgspec.Struct

    sql: ClassVar[str] = "INSERT OR REPLACE INTO decisions (key, kind, label, at, body) VALUES (?, ?, ?, ?, ?)"

    def values(self) -> tuple[Any, ...]:
        return (self.key, self.kind, self.label, self.at, _pack(self.body))


class PolicyRow(msgspec.Struct, frozen=True, gc=False):
    policy: Policy

    sql: ClassVar[str] = "INSERT OR IGNORE INTO policies (fingerprint, body) VALUES (?, ?)"

    def values(self) -> tuple[Any, ...]:
        return (self.policy.fingerprint, _pack(self.policy))


class MetaRow(msgspec.Struct, frozen=True, gc=False):
    name: str
    value: str

    sql: ClassVar[str] = "INSERT OR REPLACE INTO meta (name, value) VALUES (?, ?)"

    def values(self) -> tuple[Any, ...]:
        return (self.name, self.value)
