"""An MCP server as a process of its own: its pipes carry the messages, and nothing of it is left when it is closed.

It is code that we did not write. It is started with an environment of only what was named for it, and in a session of
its own; at the end every process is killed that is of that session or carries its mark in the environment, so a child
that went into the background goes as well.
"""

from __future__ import annotations

import asyncio
import os
import secrets
import shutil
import signal
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path

from whet.core import WorldFault
from whet.worlds.remote.rpc import Message, own_answer, read_message
from whet.worlds.text import shorten

MARK = "WHET_SESSION"
"""Set in the server's environment, and inherited by all that it starts."""

_GRACE_SECONDS = 2.0
"""From closing its input to ending it."""
_SWEEPS = 10
_PROC = Path("/proc")


class StdioChannel:
    """Made by `start`."""

    def __init__(self, where: str, process: asyncio.subprocess.Process, mark: str, said: deque[str]) -> None:
        self._where = where
        self._process = process
        self._mark = mark
        self._said = said
        self._listening = asyncio.create_task(self._listen())
        assert process.stdin is not None
        assert process.stdout is not None
        self._input, self._output = process.stdin, process.stdout

    async def exchange(self, call_id: int, message: bytes) -> Message:
        await self.send(message)
        while True:
            answer = read_message(await self._line())
            if answer is None:
                continue
            if answer.id == call_id and not answer.method:
                return answer
            own = own_answer(answer)
            if own is not None:
                await self.send(own)

    async def send(self, message: bytes) -> None:
        try:
            self._input.write(message + b"\n")
            await self._input.drain()
        except ConnectionError as error:
            raise WorldFault(await self._gone()) from error

    async def close(self) -> None:
        self._input.close()
        try:
            async with asyncio.timeout(_GRACE_SECONDS):
                await self._process.wait()
        except TimeoutError:
            pass
        finally:
            end_all(self._process.pid, self._mark, self._process.returncode is None)
            await self._process.wait()
            self._listening.cancel()
            await asyncio.wait([self._listening])

    async def _line(self) -> bytes:
        try:
            line = await self._output.readline()
        except ValueError as error:
            raise WorldFault(f"{self._where}: a line of its output is too long") from error
        if not line:
            raise WorldFault(await self._gone())
        return line

    async def _gone(self) -> str:
        with suppress(TimeoutError):
            async with asyncio.timeout(_GRACE_SECONDS):
                await self._process.wait()
                await asyncio.wait([self._listening])
        code = self._process.returncode
        last = f": {shorten(self._said[-1])}" if self._said else ""
        return f"{self._where}: the server ended{'' if code is None else f' with code {code}'}{last}"

    async def _listen(self) -> None:
        """Its stderr: the last lines say why it ended, and nothing else is kept of it."""
        assert self._process.stderr is not None
        while part := await self._process.stderr.read(1 << 16):
            self._said.extend(line for line in part.decode("utf-8", "replace").splitlines() if line.strip())


async def start(command: Sequence[str], folder: Path, environment: Mapping[str, str], frame_bytes: int) -> StdioChannel:
    program = shutil.which(command[0], path=os.environ.get("PATH")) or str(folder / command[0])
    mark = secrets.token_hex(16)
    pipe = asyncio.subprocess.PIPE
    try:
        process = await asyncio.create_subprocess_exec(
            program,
            *command[1:],
            stdin=pipe,
            stdout=pipe,
            stderr=pipe,
            cwd=folder,
            env={**environment, MARK: mark},
            start_new_session=True,
            limit=frame_bytes,
        )
    except OSError as error:
        raise WorldFault(f"the MCP server {command[0]} cannot be started: {error.strerror}") from error
    return StdioChannel(command[0], process, mark, deque(maxlen=20))


def end_all(leader: int, mark: str, leader_lives: bool) -> None:
    """Kill every process of a server, again until none is found: one may start another while we look."""
    if not _PROC.is_dir():
        if leader_lives:
            with suppress(ProcessLookupError):
                os.killpg(leader, signal.SIGKILL)
        return
    for _ in range(_SWEEPS):
        found = list(_processes(leader, f"{MARK}={mark}".encode()))
        if not found:
            return
        for number in found:
            with suppress(ProcessLookupError, PermissionError):
                os.kill(number, signal.SIGKILL)


def _processes(leader: int, mark: bytes) -> Iterator[int]:
    for folder in _PROC.iterdir():
        if not folder.name.isdigit():
            continue
        try:
            # After the name, which may hold anything: state, parent, group, session.
            state, _, _, session = (folder / "stat").read_text("utf-8", "replace").rpartition(")")[2].split()[:4]
            if state != "Z" and (int(session) == leader or mark in (folder / "environ").read_bytes().split(b"\0")):
                yield int(folder.name)
        except OSError:
            continue  # It ended while we looked, or is somebody else's.
