"""Templates and their workers, seen from whet: what loads once, and what is forked from it for each session."""

from __future__ import annotations

import asyncio
import itertools
import socket
from collections.abc import Awaitable, Callable
from contextlib import suppress
from pathlib import Path
from typing import TypeAlias, TypeVar

import msgspec

from whet.core import InputError
from whet.sandbox import scratch
from whet.sandbox.inside.wire import FRAME, OK
from whet.sandbox.lines import AsyncLine, pair, read_all, read_exactly
from whet.sandbox.orders import Forked, ForkOrder, FromTemplate, Limits, Loaded
from whet.sandbox.outcomes import Ending, HostRaised, SandboxFault, WorkerLost, without_paths

_GRACE = 1.0
"""Seconds for a worker to end by itself, and again for a killed one to be gone."""
_LOOK_EVERY = 0.25
"""Seconds between looks at the scratch of a worker that takes long."""
_decode: Callable[[bytes], FromTemplate] = msgspec.json.Decoder(FromTemplate).decode
_Found = TypeVar("_Found", Loaded, Forked)
Released: TypeAlias = "Callable[[Template], Awaitable[None]]"


class Template:
    """A confined process that is ready to be forked. Made by `Pool.template`; the pool closes it at the latest."""

    def __init__(
        self,
        folder: Path,
        user: int | None,
        lines: tuple[socket.socket, socket.socket],
        released: Released,
    ) -> None:
        self._folder = folder
        self._user = user
        self._released = released
        self._numbers = itertools.count(1)
        self._workers: set[Worker] = set()
        self._forks: dict[int, asyncio.Future[Forked]] = {}
        self._loaded: asyncio.Future[Loaded] = asyncio.get_running_loop().create_future()
        orders, watch = lines
        self._is_open = True
        self._has_ended = False
        self._line = AsyncLine(orders, self._take)
        self._watch = AsyncLine(watch, lambda message: None)

    @property
    def folder(self) -> Path:
        """Scratch folders of workers are in here; the template itself may write all of it."""
        return self._folder

    async def loaded(self, seconds: float) -> None:
        try:
            found = await asyncio.wait_for(self._loaded, seconds)
        except TimeoutError as error:
            raise SandboxFault(f"the host was not loaded within {seconds:g} s") from error
        if found.problem:
            raise SandboxFault(f"the host could not be loaded: {without_paths(found.problem)}")

    async def fork(self, scratch_folder: Path | None = None, *, limits: Limits | None = None) -> Worker:
        """A worker of its own: nothing that it does is seen by another.

        `scratch_folder`: one that the caller has made in `folder`, and filled; it stays. Left out, an empty one is made
        and removed. `limits`: those of the template are the most that can be had.
        """
        if not self._is_open or self._has_ended:
            raise SandboxFault("the template has ended")
        limits = limits or Limits()
        place = self._new_folder() if scratch_folder is None else self._own(scratch_folder)
        if self._user is not None:
            scratch.hand_over(place, self._user)
        channel, theirs = pair()
        try:
            pid = await self._forked(place, limits, theirs)
            worker = Worker(self, channel, pid, place, limits, is_own=scratch_folder is None)
            self._workers.add(worker)
        except BaseException:
            channel.close()
            if scratch_folder is None:
                scratch.remove(place)
            raise
        try:
            await worker.started()
        except BaseException:
            await worker.close()
            raise
        return worker

    async def close(self) -> None:
        """Ends it and every worker, and all that they have started."""
        if not self._is_open:
            return
        self._is_open = False
        self._line.close()
        self._watch.close()
        try:
            await self._released(self)
        finally:
            for worker in list(self._workers):
                worker.abandon()

    def kill(self, pid: int) -> None:
        self._watch.send(str(pid).encode())

    def forget(self, worker: Worker) -> None:
        self._workers.discard(worker)

    async def _forked(self, place: Path, limits: Limits, channel: int) -> int:
        number = next(self._numbers)
        self._forks[number] = asyncio.get_running_loop().create_future()
        self._line.send(msgspec.json.encode(ForkOrder(number, str(place), limits)), (channel,))
        try:
            forked = await asyncio.wait_for(self._forks[number], limits.seconds)
        except TimeoutError as error:
            raise SandboxFault(f"the template did not fork within {limits.seconds:g} s") from error
        finally:
            del self._forks[number]
        if forked.problem:
            raise SandboxFault(f"the template could not be forked: {without_paths(forked.problem)}")
        return forked.pid

    def _take(self, message: bytes | None) -> None:
        """What comes on this line may be written by foreign code: anything odd ends the line."""
        found = self._understood(message)
        match found:
            case Loaded():
                _settle(self._loaded, found)
            case Forked() if found.id in self._forks:
                _settle(self._forks[found.id], found)
            case Forked():
                return
            case None:
                self._has_ended = True
                _settle(self._loaded, Loaded("it ended while loading"))
                for number, waiting in self._forks.items():
                    _settle(waiting, Forked(number, 0, "it has ended"))

    def _understood(self, message: bytes | None) -> FromTemplate | None:
        try:
            return None if message is None else _decode(message)
        except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
            return None

    def _new_folder(self) -> Path:
        place = self._folder / f"worker-{next(self._numbers)}"
        place.mkdir(mode=0o700)
        return place

    def _own(self, folder: Path) -> Path:
        place = folder.resolve()
        if place.parent != self._folder:
            raise InputError(f"the scratch folder {folder} is not in {self._folder}", hint="Make it in template.folder")
        return place


class Worker:
    """One fork of a template: a request, a reply. What breaks the order of the two ends it."""

    def __init__(
        self, template: Template, channel: socket.socket, pid: int, place: Path, limits: Limits, *, is_own: bool
    ) -> None:
        self._template = template
        self._channel = channel
        self._pid = pid
        self._place = place
        self._limits = limits
        self._is_own = is_own
        self._turn = asyncio.Lock()
        self._number = 0
        self._lost: WorkerLost | None = None
        self._is_closed = False

    @property
    def scratch(self) -> Path:
        return self._place

    @property
    def lost(self) -> WorkerLost | None:
        """Why it can be asked no more."""
        return self._lost

    async def started(self) -> None:
        """When its host has started; raises what kept it from that."""
        try:
            async with asyncio.timeout(self._limits.seconds):
                status, said = await self._reply(0)
        except TimeoutError as error:
            raise self._lose(Ending.TIMEOUT, f"not started after {self._limits.seconds:g} s") from error
        if status != OK:
            raise self._lose(Ending.RAISED, f"not started: {_text(said)}")

    async def ask(self, request: bytes, *, seconds: float | None = None) -> bytes:
        """One request, one reply, one after the other. Raises HostRaised for an error of the host's own.

        Without a reply in time, or if this call is cancelled, the worker is ended: its reply can come late to nobody.
        """
        allowed = self._limits.seconds if seconds is None else seconds
        async with self._turn:
            if self._lost is not None:
                raise self._lost
            self._number += 1
            look = asyncio.get_running_loop().call_later(_LOOK_EVERY, self._look_at_disk)
            self._look = look
            try:
                async with asyncio.timeout(allowed):
                    await self._send(FRAME.pack(len(request), self._number, OK) + request)
                    status, said = await self._reply(self._number)
            except TimeoutError as error:
                raise self._lose(Ending.TIMEOUT, f"no reply after {allowed:g} s") from error
            except asyncio.CancelledError:
                self._lose(Ending.KILLED, "the request was given up")
                raise
            finally:
                self._look.cancel()
            self._check_disk()
        if status != OK:
            raise HostRaised(f"the host failed: {_text(said)}")
        return said

    async def close(self) -> None:
        """Ends it; its scratch folder goes with it, unless the caller made that."""
        if self._is_closed:
            return
        self._is_closed = True
        if self._lost is None:
            self._lost = WorkerLost("the worker is closed", Ending.KILLED)
            with suppress(OSError):
                self._channel.shutdown(socket.SHUT_WR)
        gone = await self._is_gone()
        if not gone:
            self._template.kill(self._pid)
            gone = await self._is_gone()
        self.abandon()
        if not gone:
            # Whatever holds the channel open is not the worker alone: the whole tree goes.
            await self._template.close()
        if self._is_own:
            scratch.remove(self._place)

    def abandon(self) -> None:
        """Lets go of what whet holds of it, when its process is gone."""
        self._is_closed = True
        self._lost = self._lost or WorkerLost("its template is closed", Ending.KILLED)
        self._channel.close()
        self._template.forget(self)

    async def _is_gone(self) -> bool:
        try:
            async with asyncio.timeout(_GRACE):
                while (await read_all(self._channel, 1 << 20))[1]:
                    pass
        except TimeoutError:
            return False
        return True

    async def _send(self, data: bytes) -> None:
        with suppress(BrokenPipeError, ConnectionResetError):
            await asyncio.get_running_loop().sock_sendall(self._channel, data)

    async def _reply(self, wanted: int) -> tuple[int, bytes]:
        head = await read_exactly(self._channel, FRAME.size)
        if head is None:
            raise self._lose(Ending.KILLED, "it ended: a crash, or more CPU than it may use")
        length, number, status = FRAME.unpack(head)
        if number != wanted:
            raise self._lose(Ending.BAD_RESULT, "its reply is to another request")
        if length > self._limits.reply:
            raise self._lose(Ending.BAD_RESULT, f"a reply of more than {self._limits.reply:,} bytes")
        said = await read_exactly(self._channel, length)
        if said is None:
            raise self._lose(Ending.KILLED, "it ended within a reply")
        return status, said

    def _lose(self, kind: Ending, why: str) -> WorkerLost:
        """Declares it dead, once, and sees to it that it is."""
        if self._lost is None:
            self._lost = WorkerLost(f"the worker is lost: {why}", kind)
            self._template.kill(self._pid)
        return self._lost

    def _look_at_disk(self) -> None:
        if scratch.bytes_held(str(self._place), self._limits.disk) > self._limits.disk:
            self._lose(Ending.DISK, f"more than {self._limits.disk:,} bytes written")
        else:
            self._look = asyncio.get_running_loop().call_later(_LOOK_EVERY, self._look_at_disk)

    def _check_disk(self) -> None:
        if scratch.bytes_held(str(self._place), self._limits.disk) > self._limits.disk:
            raise self._lose(Ending.DISK, f"more than {self._limits.disk:,} bytes written")


def _text(said: bytes) -> str:
    return without_paths(said.decode("utf-8", "replace"))


def _settle(future: asyncio.Future[_Found], value: _Found) -> None:
    if not future.done():
        future.set_result(value)
