"""A warm Python to fork from: each run costs a fork and its walls, not the start of an interpreter."""

from __future__ import annotations

import asyncio
import itertools
import os
import socket
import tempfile
import warnings
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path

import msgspec

from whet.core import Clock, Json, SystemClock
from whet.sandbox import scratch
from whet.sandbox.inside.landlock import abi
from whet.sandbox.inside.wire import FRAME, OK
from whet.sandbox.levels import choose
from whet.sandbox.lines import pair, read_all
from whet.sandbox.orders import Box, HostOrder, Level, Limits, Request, RunOrder
from whet.sandbox.outcomes import Gathered, Host, Outcome, Program, SandboxFault, outcome_of
from whet.sandbox.starting import ZygoteProcess
from whet.sandbox.templates import Template
from whet.sandbox.users import Users

PRELOAD = ("asyncio", "collections", "datetime", "inspect", "json", "math", "random", "re", "sqlite3", "unittest")
_FRAMES = 1 << 12
"""Room around a result on the channel."""
HOST_LIMITS = Limits(seconds=120.0, cpu_seconds=120, memory=2 << 30, processes=4096)
"""Of a template: to load in, and for all its workers together to be forked in."""


class SandboxWarning(UserWarning):
    """There is no wall on this system: only limits."""


class Pool:
    """`async with Pool() as pool`. What it starts ends with it, whatever that does.

    `preload`: modules that every run finds loaded. `level`: None takes the strongest there is. `folder`: where private
    folders are made. `at_once`: how many runs go on at a time. `landlock`: as if the kernel had no later version of it.
    """

    def __init__(
        self,
        preload: Iterable[str] = PRELOAD,
        level: Level | None = None,
        *,
        folder: Path | None = None,
        at_once: int | None = None,
        landlock: int | None = None,
        clock: Clock | None = None,
    ) -> None:
        self._preload = tuple(preload)
        self._asked = level
        self._above = folder
        self._clock = clock or SystemClock()
        self._places = asyncio.Semaphore(at_once or 2 * (os.cpu_count() or 1))
        self._numbers = itertools.count(1)
        self._templates: set[Template] = set()
        self._users: Users | None = None
        self._zygote: ZygoteProcess | None = None
        self._level = Level.PROCESS
        self._landlock = abi() if landlock is None else min(landlock, abi())
        self._folder = Path()

    @property
    def level(self) -> Level:
        """The one in force."""
        return self._level

    async def __aenter__(self) -> Pool:
        self._level = await asyncio.to_thread(choose, self._asked)
        if self._level is Level.PROCESS:
            says = "code that whet did not write runs with limits, but without walls: see `whet doctor`"
            warnings.warn(says, SandboxWarning, stacklevel=2)
        else:
            self._users = Users()
        self._folder = _new_folder_in(self._above)
        try:
            self._zygote = await ZygoteProcess.start(self._level, self._preload, self._folder)
        except BaseException:
            scratch.remove(self._folder)
            raise
        return self

    async def __aexit__(self, *_: object) -> None:
        zygote = self._running
        try:
            for template in list(self._templates):
                await template.close()
        finally:
            self._zygote = None
            await zygote.stop()
            await asyncio.to_thread(scratch.remove, self._folder)

    async def run(
        self,
        program: Program,
        arguments: dict[str, Json] | None = None,
        *,
        read: Iterable[Path | str] = (),
        limits: Limits | None = None,
    ) -> Outcome:
        """One confined fork: executes the source, calls its entry with the arguments, and gives what that returned.

        Whatever the program does is an Outcome; SandboxFault is raised where the sandbox broke. The program begins in
        an empty folder that it may write, and that is gone afterwards.
        """
        asked = limits or Limits()
        request = msgspec.json.encode(Request(program.source, program.entry, arguments or {}))
        async with self._places:
            zygote, room = self._running, self._new_room()
            try:
                found = await self._gather(zygote, request, self._box(room, read, asked))
            finally:
                await asyncio.to_thread(self._clear, room)
        return outcome_of(found, asked)

    async def template(self, host: Host, *, read: Iterable[Path | str] = (), limits: Limits | None = None) -> Template:
        """A confined process that has loaded the host once, to be forked for each worker."""
        zygote, room, asked = self._running, self._new_room(), limits or HOST_LIMITS
        line, orders = pair()
        watch, watched = pair()
        box = self._box(room, read, asked)
        ended = zygote.order(HostOrder(next(self._numbers), box, host.place, host.settings), (watched, orders))

        async def release(template: Template) -> None:
            self._templates.discard(template)
            await zygote.gone(ended)
            await asyncio.to_thread(self._clear, room)

        template = Template(room.folder, room.user, (line, watch), release)
        self._templates.add(template)
        try:
            await template.loaded(asked.seconds)
        except BaseException:
            await template.close()
            raise
        return template

    @property
    def _running(self) -> ZygoteProcess:
        if self._zygote is None:
            raise SandboxFault("the pool is not open", hint="Use it within `async with Pool() as pool`")
        return self._zygote

    async def _gather(self, zygote: ZygoteProcess, request: bytes, box: Box) -> Gathered:
        number, limits = next(self._numbers), box.limits
        channel, theirs = pair()
        printed, output = pair()
        began = self._clock.now()
        with channel, printed:
            ended = zygote.order(RunOrder(number, box), (theirs, output))
            try:
                async with asyncio.TaskGroup() as group:
                    group.create_task(_tell(channel, request))
                    said = group.create_task(_bounded(channel, limits.reply + _FRAMES, zygote, number))
                    shown = group.create_task(_bounded(printed, limits.output, zygote, number))
                    end = await asyncio.shield(ended)
                    seconds = self._clock.now() - began
            finally:
                if not ended.done():
                    zygote.kill(number)
                    await zygote.gone(ended)
        return Gathered(*said.result(), *shown.result(), end, seconds)

    def _box(self, room: _Room, read: Iterable[Path | str], limits: Limits) -> Box:
        if room.user is not None:
            scratch.hand_over(room.folder, room.user)
        given = tuple(os.path.realpath(path) for path in read)
        version = self._landlock if self._level is not Level.PROCESS else 0
        return Box(self._level, given, str(room.folder), limits, version, room.user)

    def _new_room(self) -> _Room:
        folder = self._folder / str(next(self._numbers))
        folder.mkdir(mode=0o700)
        return _Room(folder, self._users.take() if self._users else None)

    def _clear(self, room: _Room) -> None:
        scratch.remove(room.folder)
        if self._users:
            self._users.give_back(room.user)


class _Room(msgspec.Struct, frozen=True):
    """What one sandbox has for itself while it lives."""

    folder: Path
    user: int | None


def _new_folder_in(above: Path | None) -> Path:
    """Others may pass through it, to what is theirs by name, and not list it."""
    folder = Path(tempfile.mkdtemp(prefix="whet-sandbox-", dir=above)).resolve()
    folder.chmod(0o711)
    return folder


async def _tell(channel: socket.socket, request: bytes) -> None:
    # A run that has ended already listens no more; how it ended says why.
    with suppress(BrokenPipeError, ConnectionResetError):
        await asyncio.get_running_loop().sock_sendall(channel, FRAME.pack(len(request), 1, OK) + request)


async def _bounded(end: socket.socket, most: int, zygote: ZygoteProcess, number: int) -> tuple[bytes, bool]:
    """What comes, and whether it was too much: then the run is killed for it."""
    said, too_much = await read_all(end, most)
    if too_much:
        zygote.kill(number)
    return said, too_much
