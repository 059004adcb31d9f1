"""The zygote as a process: started, given orders, heard, ended."""

from __future__ import annotations

import asyncio
import os
import socket
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

import msgspec

from whet.sandbox.levels import bubblewrap
from whet.sandbox.lines import AsyncLine
from whet.sandbox.orders import LOST, Ended, FromZygote, HostOrder, KillOrder, Level, Ready, RunOrder
from whet.sandbox.outcomes import SandboxFault, without_paths

_STARTING = 60.0
"""Seconds that it may take to load its modules."""
_ENDING = 10.0
_ENVIRONMENT = {"LANG": "C.UTF-8", "TZ": "UTC", "PYTHONHASHSEED": "0", "PYTHONDONTWRITEBYTECODE": "1"}
"""All that confined code can find there."""
_CODE = "import sys; sys.path[:] = {path!r}; from whet.sandbox.inside.zygote import main; main({modules!r})"
_decode: Callable[[bytes], FromZygote] = msgspec.json.Decoder(FromZygote).decode


class ZygoteProcess:
    def __init__(self, end: socket.socket) -> None:
        loop = asyncio.get_running_loop()
        self._ended: dict[int, asyncio.Future[Ended]] = {}
        self._ready: asyncio.Future[Ready] = loop.create_future()
        self._is_gone = False
        self._line = AsyncLine(end, self._take)
        self._process: asyncio.subprocess.Process | None = None

    @classmethod
    async def start(cls, level: Level, modules: Sequence[str], folder: Path) -> ZygoteProcess:
        ours, theirs = socket.socketpair()
        zygote = cls(ours)
        try:
            with theirs, (folder / "zygote.log").open("wb") as log:
                await zygote._launch(level, modules, folder, theirs.fileno(), log.fileno())
            ready = await asyncio.wait_for(asyncio.shield(zygote._ready), _STARTING)
            if ready.problem:
                said = (folder / "zygote.log").read_text("utf-8", "replace").strip().splitlines()
                why = f"{ready.problem} ({said[-1]})" if said else ready.problem
                raise SandboxFault(f"the sandbox did not start: {without_paths(why)}", hint="See `whet doctor`")
        except TimeoutError as error:
            await zygote.stop()
            raise SandboxFault(f"the sandbox did not start within {_STARTING:g} s") from error
        except BaseException:
            await zygote.stop()
            raise
        return zygote

    def order(self, order: RunOrder | HostOrder, descriptors: tuple[int, int]) -> asyncio.Future[Ended]:
        """Sends it, and promises to say when what it began is gone. The descriptors are given away."""
        ended: asyncio.Future[Ended] = asyncio.get_running_loop().create_future()
        self._ended[order.id] = ended
        self._line.send(msgspec.json.encode(order), descriptors)
        if self._is_gone:
            self._lose_all()
        return ended

    def kill(self, number: int) -> None:
        self._line.send(msgspec.json.encode(KillOrder(number)))

    async def gone(self, ended: asyncio.Future[Ended]) -> None:
        """Waits for the end of what has been told to end."""
        try:
            await asyncio.wait_for(asyncio.shield(ended), _ENDING)
        except TimeoutError as error:
            raise SandboxFault(f"a sandbox did not end within {_ENDING:g} s") from error

    async def stop(self) -> None:
        """The end of its line is the zygote's end, and that of all that it forked."""
        self._line.close()
        if self._process is None:
            return
        try:
            await asyncio.wait_for(self._process.wait(), _ENDING)
        except TimeoutError:
            self._process.kill()
            await self._process.wait()

    async def _launch(self, level: Level, modules: Sequence[str], folder: Path, line: int, log: int) -> None:
        code = _CODE.format(path=[entry for entry in sys.path if os.path.isabs(entry)], modules=",".join(modules))
        within = bubblewrap([folder]) if level is Level.NAMESPACES else []
        self._process = await asyncio.create_subprocess_exec(
            *(*within, sys.executable, "-I", "-c", code, str(line)),
            pass_fds=(line,),
            env=_ENVIRONMENT,
            cwd="/",
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.DEVNULL,
            stderr=log,
            start_new_session=True,
        )

    def _take(self, message: bytes | None) -> None:
        if message is None:
            self._is_gone = True
            self._lose_all()
            return
        match _decode(message):
            case Ready() as ready:
                if not self._ready.done():
                    self._ready.set_result(ready)
            case Ended(id=id) as ended:
                waiting = self._ended.pop(id, None)
                if waiting is not None and not waiting.done():
                    waiting.set_result(ended)

    def _lose_all(self) -> None:
        """Nobody waits for a zygote that is gone; what it forked has gone with it."""
        if not self._ready.done():
            self._ready.set_result(Ready("it ended"))
        for number, waiting in self._ended.items():
            if not waiting.done():
                waiting.set_result(Ended(number, 0, 0.0, LOST))
        self._ended.clear()
