"""A world's own time and chance: a program that asks for either is answered by its session, not by the machine.

Replaced are Python's clocks, the sources of random bytes, and SQLite's words for now. Each call of a tool takes
one second.
"""

from __future__ import annotations

import builtins
import datetime
import os
import random
import sqlite3
import time
import types
import uuid
from sqlite3 import dbapi2
from typing import Any

STEP = 1.0
"""Seconds that a call of a tool takes."""

_real_connect = sqlite3.connect
_DATED = ("date", "time", "datetime", "julianday", "unixepoch")
"""SQLite's functions whose first argument is a time, and now where it is left out."""


class WorldClock:
    """One for a process; a fork of the process has a clock of its own from then on."""

    def __init__(self, moment: float, seed: int = 0) -> None:
        self.moment = moment
        self.chance = random.Random(seed)

    def begin(self, moment: float, seed: int) -> None:
        self.moment = moment
        self.chance.seed(seed)
        random.seed(seed)

    def tick(self) -> None:
        self.moment += STEP


def install(clock: WorldClock) -> None:
    """From here on what this process executes lives in the clock's time."""
    _replace_datetime(clock)
    _replace_time(clock)
    _replace_chance(clock)


def connect_at(clock: WorldClock, path: list[str]) -> None:
    """Every SQLite connection goes to the one file of the session, `path[0]`, whatever name the program has for it."""

    def connect(database: Any, *arguments: Any, **options: Any) -> sqlite3.Connection:
        asked = os.fsdecode(database)
        in_memory = ":memory:" in asked or "mode=memory" in asked
        options["uri"] = bool(options.get("uri")) if in_memory else False
        connection = _real_connect(asked if in_memory else path[0], *arguments, **options)
        # The file ends with its session: waiting for a disk at every commit would be for nothing.
        connection.execute("PRAGMA synchronous = OFF")
        teach(connection, clock)
        return connection

    _replace_connect(connect)


def teach_all(clock: WorldClock) -> None:
    """Every connection from here on lives in the clock's time; it goes where it is told."""

    def connect(*arguments: Any, **options: Any) -> sqlite3.Connection:
        connection = _real_connect(*arguments, **options)
        teach(connection, clock)
        return connection

    _replace_connect(connect)


def teach(connection: sqlite3.Connection, clock: WorldClock) -> None:
    """SQLite's words for the present and for chance, in this connection."""
    asker = _real_connect(":memory:", check_same_thread=False)

    def now() -> str:
        at = _utc(clock.moment)
        return at.strftime("%Y-%m-%d %H:%M:%S")

    def dated(name: str, first: int) -> Any:
        def answer(*given: Any) -> Any:
            values = list(given)
            if len(values) == first:
                values.append(now())
            elif isinstance(values[first], str) and values[first].strip().lower() == "now":
                values[first] = now()
            marks = ", ".join("?" * len(values))
            return asker.execute(f"SELECT {name}({marks})", values).fetchone()[0]

        return answer

    def blob(size: int) -> bytes:
        return clock.chance.randbytes(max(1, int(size)))

    for name in _DATED:
        connection.create_function(name, -1, dated(name, 0))
    connection.create_function("strftime", -1, dated("strftime", 1))
    connection.create_function("current_timestamp", 0, now)
    connection.create_function("current_date", 0, lambda: now()[:10])
    connection.create_function("current_time", 0, lambda: now()[11:])
    connection.create_function("random", 0, lambda: clock.chance.getrandbits(64) - (1 << 63))
    connection.create_function("randomblob", 1, blob)


def _utc(moment: float) -> datetime.datetime:
    return datetime.datetime.fromtimestamp(moment, datetime.UTC)


def _replace_connect(connect: Any) -> None:
    for module in (sqlite3, dbapi2):
        setattr(module, "connect", connect)  # noqa: B010 (the two modules share the name, and neither declares it)


def _replace_datetime(clock: WorldClock) -> None:
    """For foreign code alone: libraries derive classes from the real ones, and must go on to."""
    ours = types.ModuleType("datetime")
    vars(ours).update({name: value for name, value in vars(datetime).items() if not name.startswith("__")})
    vars(ours).update(_classes(clock))
    real_import = builtins.__import__

    # The parameters are named as the real one's: the library of codecs passes them by name.
    def imported(name: str, globals: Any = None, locals: Any = None, fromlist: Any = (), level: int = 0) -> Any:
        if name == "datetime" and level == 0 and _is_foreign(globals):
            return ours
        return real_import(name, globals, locals, fromlist, level)

    builtins.__import__ = imported


def _is_foreign(scope: Any) -> bool:
    """Whether code with these globals was executed from a text, not imported from a file."""
    return scope is not None and str(scope.get("__file__") or "<").startswith("<")


def _classes(clock: WorldClock) -> dict[str, type]:
    """`datetime` and `date`, which make real ones, and know no now but the clock's."""
    real_datetime, real_date = datetime.datetime, datetime.date

    class WorldDatetime(real_datetime, metaclass=_like(real_datetime)):
        def __new__(cls, *given: Any, **named: Any) -> Any:
            return real_datetime(*given, **named)

        @classmethod
        def now(cls, tz: datetime.tzinfo | None = None) -> Any:
            at = real_datetime.fromtimestamp(clock.moment, tz or datetime.UTC)
            return at if tz is not None else at.replace(tzinfo=None)

        @classmethod
        def utcnow(cls) -> Any:
            return cls.now()

        @classmethod
        def today(cls) -> Any:
            return cls.now()

        @classmethod
        def __get_pydantic_core_schema__(cls, source: Any, handler: Any) -> Any:
            return handler(real_datetime)

    class WorldDate(real_date, metaclass=_like(real_date)):
        def __new__(cls, *given: Any, **named: Any) -> Any:
            return real_date(*given, **named)

        @classmethod
        def today(cls) -> Any:
            return WorldDatetime.now().date()

        @classmethod
        def __get_pydantic_core_schema__(cls, source: Any, handler: Any) -> Any:
            return handler(real_date)

    return {"datetime": WorldDatetime, "date": WorldDate}


def _like(real: type) -> type[type]:
    """A metaclass for what stands in place of a class: whatever is a real one is one of ours, and nothing else is."""

    class Like(type):
        def __instancecheck__(cls, instance: object) -> bool:
            return isinstance(instance, real)

        def __subclasscheck__(cls, subclass: type) -> bool:
            return issubclass(subclass, real)

        def __eq__(cls, other: object) -> bool:
            return other is cls or other is real

        def __hash__(cls) -> int:
            return hash(real)

    return Like


def _replace_time(clock: WorldClock) -> None:
    real_local, real_utc, real_format = time.localtime, time.gmtime, time.strftime
    time.time = lambda: clock.moment
    time.time_ns = lambda: int(clock.moment * 1_000_000_000)
    time.localtime = lambda seconds=None: real_local(clock.moment if seconds is None else seconds)
    time.gmtime = lambda seconds=None: real_utc(clock.moment if seconds is None else seconds)

    def written(form: str, at: Any = None) -> str:
        return real_format(form, real_utc(clock.moment) if at is None else at)

    time.strftime = written


def _replace_chance(clock: WorldClock) -> None:
    def drawn(size: int) -> bytes:
        return clock.chance.randbytes(size)

    os.urandom = drawn
    random._urandom = drawn  # pyright: ignore[reportAttributeAccessIssue]
    uuid.uuid1 = lambda node=None, clock_seq=None: uuid.UUID(bytes=drawn(16), version=1)
    uuid.uuid4 = lambda: uuid.UUID(bytes=drawn(16), version=4)
