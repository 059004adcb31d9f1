"""What is said between whet and a scenario's host, and what it is given to load."""

from __future__ import annotations

from typing import Any, TypeAlias

import msgspec

START = "start.db"
"""The scenario's database as it was built, in the template's folder."""
SESSION = "session.db"
"""A session's own copy of it, in the worker's folder."""


class Stage(msgspec.Struct, frozen=True):
    """What a host is given, as a file: it may be large."""

    program: str
    ddl: tuple[str, ...]
    inserts: tuple[str, ...]
    moment: float


class Built(msgspec.Struct, frozen=True):
    """What building the database came to. Statements are shown by their beginning."""

    statements: int = 0
    repaired: int = 0
    """Inserts whose quotes were escaped by a backslash, which SQLite does not know."""
    failed: tuple[str, ...] = ()


class Call(msgspec.Struct, frozen=True):
    method: str
    path: str
    query: str = ""
    body: bytes | None = None
    """JSON; None: there is none."""


class Reply(msgspec.Struct, frozen=True):
    status: int
    body: str


class Described(msgspec.Struct, frozen=True):
    openapi: dict[str, Any]
    doubled: tuple[str, ...]
    """Routes that stand twice under one path and method: the later one can never be reached."""
    built: Built


class Begin(msgspec.Struct, frozen=True, tag="begin"):
    moment: float
    seed: int


class Do(msgspec.Struct, frozen=True, tag="do"):
    call: Call


class Rest(msgspec.Struct, frozen=True, tag="rest"):
    """Close what is open, so that the session's file is whole; answered by what has changed."""


class Changes(msgspec.Struct, frozen=True):
    """Rows that differ from the start, as the session's own process tells them: for learners, never for a verdict."""

    count: int
    text: str


class Describe(msgspec.Struct, frozen=True, tag="describe"):
    pass


Asked: TypeAlias = Begin | Do | Rest | Describe
