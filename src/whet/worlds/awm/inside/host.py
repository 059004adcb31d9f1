"""The host of a scenario: builds its database and loads its program once, then plays one session in each fork."""

from __future__ import annotations

import os
import sqlite3
from contextlib import closing, suppress
from pathlib import Path
from typing import Any

import msgspec

from whet.worlds.awm.inside.clock import WorldClock, connect_at, install
from whet.worlds.awm.inside.database import build
from whet.worlds.awm.inside.messages import (
    SESSION,
    START,
    Asked,
    Begin,
    Built,
    Changes,
    Describe,
    Described,
    Do,
    Reply,
    Rest,
    Stage,
)
from whet.worlds.awm.inside.program import Program, Runner
from whet.worlds.database import Contents, compare, read

_MOST_TEXT = 20_000
_decode = msgspec.msgpack.Decoder(Asked).decode


class ScenarioHost:
    """See `whet.sandbox`: made and loaded in the template, started in each worker."""

    def __init__(self, settings: Any) -> None:
        self._stage = msgspec.msgpack.decode(Path(settings["stage"]).read_bytes(), type=Stage)
        self._clock = WorldClock(self._stage.moment)
        self._path = [os.path.abspath(START)]
        self._built = Built()
        self._runner: Runner | None = None

    def load(self) -> None:
        stage = self._stage
        self._built = build(self._path[0], stage.ddl, stage.inserts, self._clock)
        connect_at(self._clock, self._path)
        # Every name that a program may have for its database leads to the session's file.
        os.environ["DATABASE_PATH"] = "sqlite:///world.db"
        install(self._clock)
        self._program = Program(stage.program)
        runner = Runner(self._program.app)
        runner.startup()
        runner.close()
        self._openapi = self._program.openapi()
        self._program.let_go()
        self._start = _settled(self._path[0])

    def start(self, scratch: str) -> None:
        self._path[0] = os.path.join(scratch, SESSION)
        self._runner = Runner(self._program.app)

    def answer(self, request: bytes) -> bytes:
        return msgspec.msgpack.encode(self._answer(_decode(request)))

    def _answer(self, asked: Asked) -> Reply | Described | Changes | None:
        match asked:
            case Do(call):
                reply = self._running.call(call)
                self._clock.tick()
                return reply
            case Begin(moment, seed):
                self._clock.begin(moment, seed)
                return None
            case Rest():
                self._program.let_go()
                found = compare(self._start, _settled(self._path[0]))
                return Changes(found.count, found.text()[:_MOST_TEXT])
            case Describe():
                return Described(self._openapi, tuple(self._program.doubled()), self._built)

    @property
    def _running(self) -> Runner:
        if self._runner is None:
            raise RuntimeError("no session has been started")
        return self._runner


def _settled(path: str) -> Contents:
    """What the file holds; and one file it is from then on, without a journal beside it, to be read anywhere."""
    with closing(sqlite3.connect(path)) as connection:
        with suppress(sqlite3.Error):
            connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
            connection.execute("PRAGMA journal_mode = DELETE")
        return read(connection)
