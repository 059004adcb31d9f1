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
    Describe,
    Described,
    Do,
    Reply,
    Rest,
    Stage,
)
from whet.worlds.awm.inside.program import Program, Runner

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
        _settle(self._path[0])

    def start(self, scratch: str) -> None:
        self._path[0] = os.path.join(scratch, SESSION)
        self._runner = Runner(self._program.app)

    def answer(self, request: bytes) -> bytes:
        return msgspec.msgpack.encode(self._answer(_decode(request)))

    def _answer(self, asked: Asked) -> Reply | Described | None:
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
                _settle(self._path[0])
                return None
            case Describe():
                return Described(self._openapi, tuple(self._program.doubled()), self._built)

    @property
    def _running(self) -> Runner:
        if self._runner is None:
            raise RuntimeError("no session has been started")
        return self._runner


def _settle(path: str) -> None:
    """One file, without a journal beside it, that can be read where nothing may be written."""
    with suppress(sqlite3.Error), closing(sqlite3.connect(path)) as connection:
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        connection.execute("PRAGMA journal_mode = DELETE")
