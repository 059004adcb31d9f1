"""Where scenarios are played: a template for each in the sandbox, loaded when first needed; a fork of it a session.

Files that foreign code could have touched are opened without following links, and only if they are plain files.
"""

from __future__ import annotations

import asyncio
import itertools
import os
import shutil
import stat
import tempfile
from collections import OrderedDict
from pathlib import Path
from typing import TypeVar

import msgspec

from whet.core import WorldFault
from whet.sandbox import Host, Limits, Pool, SandboxFault, Template, Worker
from whet.sandbox.scratch import remove
from whet.worlds.awm.inside.messages import (
    SESSION,
    START,
    Asked,
    Begin,
    Call,
    Changes,
    Describe,
    Described,
    Do,
    Reply,
    Rest,
    Stage,
)
from whet.worlds.awm.layout import Scenario
from whet.worlds.awm.operations import Tool, tools_from

PRELOAD = (
    "fastapi",
    "pydantic",
    "sqlalchemy.orm",
    "sqlalchemy.dialects.sqlite",
    "whet.worlds.awm.inside.host",
    "whet.worlds.database",
)
HOST = "whet.worlds.awm.inside.host:ScenarioHost"
MOMENT = 1_767_258_000.0
"""The day of a world's sessions, in seconds since 1970: the first of January 2026, nine in the morning."""
SESSION_LIMITS = Limits(seconds=20.0, cpu_seconds=60, memory=512 << 20)
MOST_LOADED = 16
"""Scenarios that stay loaded at once at most; those with open sessions always do."""
_LARGEST_DATABASE = 256 << 20

T = TypeVar("T", bound=msgspec.Struct)


class Ready(msgspec.Struct, frozen=True):
    """A loaded scenario."""

    template: Template
    described: Described
    tools: dict[str, Tool]
    problems: tuple[str, ...]
    """Of its description as tools."""
    image: bytes
    """The database at the start of every session."""
    start: Path
    """The same as a file that may be read by verifiers."""


class Stages:
    """One pool, and in it the scenarios that are played. It starts with its first session and ends with `aclose`."""

    def __init__(self, moment: float) -> None:
        self._moment = moment
        self._pool: Pool | None = None
        self._folder: Path | None = None
        self._ready: OrderedDict[str, asyncio.Task[Ready]] = OrderedDict()
        self._open: dict[str, int] = {}
        self._starting = asyncio.Lock()
        self._numbers = itertools.count(1)

    async def pool(self) -> Pool:
        async with self._starting:
            if self._pool is None:
                pool = Pool(PRELOAD)
                await pool.__aenter__()
                self._pool = pool
                self._folder = Path(tempfile.mkdtemp(prefix="whet-awm-"))
                self._folder.chmod(0o711)
            return self._pool

    async def ready(self, scenario: Scenario) -> Ready:
        """The scenario, loaded; by whoever asks first."""
        name = scenario.fingerprint
        task = self._ready.get(name)
        if task is None or (task.done() and (task.cancelled() or task.exception() is not None)):
            await self._make_room()
            task = asyncio.ensure_future(self._load(scenario))
            self._ready[name] = task
        self._ready.move_to_end(name)
        return await asyncio.shield(task)

    async def open(self, scenario: Scenario, seed: int, image: bytes | None = None) -> Playing:
        """A session's process, on the database at its start or on `image`."""
        self._open[scenario.fingerprint] = self._open.get(scenario.fingerprint, 0) + 1
        try:
            ready = await self.ready(scenario)
            folder = ready.template.folder / f"session-{next(self._numbers)}"
            folder.mkdir(mode=0o700)
            try:
                (folder / SESSION).write_bytes(ready.image if image is None else image)
                worker = await ready.template.fork(folder, limits=SESSION_LIMITS)
            except BaseException:
                remove(folder)
                raise
        except BaseException:
            self.left(scenario)
            raise
        playing = Playing(self, scenario, ready, worker)
        try:
            await playing.ask(Begin(self._moment, seed))
        except BaseException:
            await playing.close()
            raise
        return playing

    def place(self, content: bytes) -> Path:
        """A file that verifiers may be given to read; whoever asks for it removes it."""
        assert self._folder is not None, "files are made by open sessions only"
        path = self._folder / f"final-{next(self._numbers)}.db"
        path.write_bytes(content)
        path.chmod(0o644)
        return path

    async def aclose(self) -> None:
        pool, folder, self._pool, self._folder = self._pool, self._folder, None, None
        loading = list(self._ready.values())
        self._ready.clear()
        self._open.clear()
        for task in loading:
            task.cancel()
        await asyncio.gather(*loading, return_exceptions=True)
        if pool is not None:
            await pool.__aexit__(None, None, None)
        if folder is not None:
            await asyncio.to_thread(shutil.rmtree, folder, ignore_errors=True)

    def left(self, scenario: Scenario) -> None:
        """A session of it has ended."""
        left = self._open.get(scenario.fingerprint, 0) - 1
        if left > 0:
            self._open[scenario.fingerprint] = left
        else:
            self._open.pop(scenario.fingerprint, None)

    async def _make_room(self) -> None:
        for name, task in list(self._ready.items()):
            if len(self._ready) < MOST_LOADED:
                return
            if task.done() and not self._open.get(name):
                del self._ready[name]
                if not task.cancelled() and task.exception() is None:
                    await task.result().template.close()
                    task.result().start.unlink(missing_ok=True)

    async def _load(self, scenario: Scenario) -> Ready:
        pool = await self.pool()
        stage = Stage(scenario.program, scenario.ddl, scenario.inserts, self._moment)
        file = self.place(msgspec.msgpack.encode(stage))
        try:
            template = await pool.template(Host(HOST, {"stage": str(file)}), read=[file])
        except SandboxFault as fault:
            raise WorldFault(f"scenario {scenario.name}: {fault.message}", hint=fault.hint) from fault
        finally:
            file.unlink()
        try:
            image = read_plain(template.folder, START)
            async with _passing(template) as worker:
                described = _said(await worker.ask(_encode(Describe())), Described)
        except BaseException:
            await template.close()
            raise
        found = tools_from(described.openapi)
        tools = {tool.spec.name: tool for tool in found.tools}
        return Ready(template, described, tools, found.problems, image, self.place(image))


class _passing:
    """A worker that is asked one thing."""

    def __init__(self, template: Template) -> None:
        self._template = template

    async def __aenter__(self) -> Worker:
        self._worker = await self._template.fork(limits=SESSION_LIMITS)
        return self._worker

    async def __aexit__(self, *_: object) -> None:
        await self._worker.close()


class Playing:
    """The process of one session."""

    def __init__(self, stages: Stages, scenario: Scenario, ready: Ready, worker: Worker) -> None:
        self.ready = ready
        self._stages = stages
        self._scenario = scenario
        self._worker = worker
        self._is_open = True

    async def ask(self, asked: Asked) -> bytes:
        try:
            return await self._worker.ask(_encode(asked))
        except SandboxFault as fault:
            raise WorldFault(f"scenario {self._scenario.name}: {fault.message}", hint=fault.hint) from fault

    async def do(self, call: Call) -> Reply:
        return _said(await self.ask(Do(call)), Reply)

    async def state(self) -> tuple[bytes, Changes]:
        """The whole database as it is now, and what is said to have changed in it."""
        changes = _said(await self.ask(Rest()), Changes)
        return await asyncio.to_thread(read_plain, self._worker.scratch, SESSION), changes

    async def close(self) -> None:
        if not self._is_open:
            return
        self._is_open = False
        try:
            await self._worker.close()
        finally:
            await asyncio.to_thread(remove, self._worker.scratch)
            self._stages.left(self._scenario)


def read_plain(folder: Path, name: str) -> bytes:
    """A file in a folder that foreign code may write: no link is followed, and nothing but a plain file is read."""
    above = os.open(folder.parent, os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
    try:
        place = os.open(folder.name, os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=above)
        try:
            found = os.open(name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, dir_fd=place)
        finally:
            os.close(place)
    except OSError as error:
        raise WorldFault(f"the database of a session cannot be read: {error.strerror}") from error
    finally:
        os.close(above)
    with open(found, "rb") as file:
        about = os.fstat(file.fileno())
        if not stat.S_ISREG(about.st_mode) or about.st_nlink != 1 or about.st_size > _LARGEST_DATABASE:
            raise WorldFault("the database of a session is no longer a file of its own")
        return file.read()


def _said(reply: bytes, kind: type[T]) -> T:
    """What a host answers with has been in one process with foreign code: it may be anything."""
    try:
        return msgspec.msgpack.decode(reply, type=kind)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise WorldFault(f"the program's process answers out of turn: {error}") from error


def _encode(asked: Asked) -> bytes:
    return msgspec.msgpack.encode(asked)
