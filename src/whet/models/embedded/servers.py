"""Which server answers: the newest, with every adapter that is asked for.

llama.cpp takes adapters at its start only. An adapter that it does not have yet is a reason to start another server
beside it; what runs on the old one ends there, and then it is closed. The weights are mapped from the same file.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path

from whet.core import EndpointUnreachable, RequestRefused, WhetError
from whet.models.embedded.server import Server
from whet.models.embedded.slots import Desk, Slot, Taken, Tokens

MOST_ADAPTERS = 32

Start = Callable[[tuple[Path, ...]], Awaitable[Server]]


class Running:
    """A server with its slots and those who use it."""

    def __init__(self, server: Server, adapters: dict[str, Path], desk: Desk) -> None:
        self.server = server
        self.adapters = adapters
        """In the order in which the server numbers them."""
        self.last_used = dict.fromkeys(adapters, 0)
        self.desk = desk
        self.users = 0
        self._queue: deque[tuple[asyncio.Future[Taken], Tokens, str, int]] = deque()

    async def take(self, tokens: Tokens, adapter: str, need: int) -> Taken:
        """A slot, first come, first served: a large request is not passed by small ones for ever."""
        taken = None if self._queue else self.desk.take(tokens, adapter, need)
        if taken is not None:
            return taken
        turn: asyncio.Future[Taken] = asyncio.get_running_loop().create_future()
        self._queue.append((turn, tokens, adapter, need))
        try:
            return await turn
        except asyncio.CancelledError:
            if turn.done() and not turn.cancelled():
                slot, _ = turn.result()
                self.desk.leave(slot, known=False)
            self._admit()
            raise

    def leave(self, slot: Slot, *, known: bool) -> None:
        self.desk.leave(slot, known=known)
        self._admit()

    def _admit(self) -> None:
        while self._queue:
            turn, tokens, adapter, need = self._queue[0]
            if not turn.done():
                taken = self.desk.take(tokens, adapter, need)
                if taken is None:
                    return
                turn.set_result(taken)
            self._queue.popleft()

    def scales(self, adapter: str) -> list[dict[str, float | int]]:
        """Every adapter with its weight in a request: one or none of them counts."""
        return [{"id": number, "scale": float(name == adapter)} for number, name in enumerate(self.adapters)]


class Servers:
    def __init__(self, start: Start, desk: Callable[[], Desk]) -> None:
        self._start = start
        self._desk = desk
        self._current: Running | None = None
        self._old: list[Running] = []
        self._wanted: dict[str, Path] = {}
        self._refused: dict[str, WhetError] = {}
        self._opening: asyncio.Task[None] | None = None
        self._closing: set[asyncio.Task[None]] = set()
        self._alone = asyncio.Event()
        self._alone.set()
        """No old server is left."""
        self._leases = 0
        self._closed = False

    @asynccontextmanager
    async def lease(self, adapter: str = "", path: Path | None = None) -> AsyncGenerator[Running]:
        """A server that has the adapter, for as long as it is used."""
        running = await self._with(adapter, path)
        running.users += 1
        self._leases += 1
        running.last_used[adapter] = self._leases
        try:
            yield running
        finally:
            running.users -= 1
            if running.users == 0 and running in self._old:
                self._retire(running)

    async def close(self) -> None:
        self._closed = True
        if self._opening is not None:
            await asyncio.wait([self._opening])
        if self._current is not None:
            self._old.append(self._current)
            self._current = None
        for running in list(self._old):
            self._retire(running)
        while self._closing:
            await asyncio.wait(self._closing)

    async def _with(self, adapter: str, path: Path | None) -> Running:
        while True:
            if self._closed:
                raise EndpointUnreachable("the embedded model is closed")
            if adapter in self._refused:
                raise self._refused[adapter]
            current = self._current
            if current is not None and (not adapter or adapter in current.adapters):
                return current
            if path is not None:
                self._wanted[adapter] = path
            # One that has just ended stands here until its callbacks run; waiting for it would give them no turn.
            if self._opening is None or self._opening.done():
                self._opening = asyncio.create_task(self._open())
                self._opening.add_done_callback(self._opened)
            await asyncio.shield(self._opening)

    def _opened(self, opening: asyncio.Task[None]) -> None:
        if self._opening is opening:
            self._opening = None
        if not opening.cancelled():
            opening.exception()  # those who wait are told; often nobody waits any more

    async def _open(self) -> None:
        """Start a server with what is wanted by then. Never more than two: the one before the last ends first."""
        await self._alone.wait()
        wanted, self._wanted = self._wanted, {}
        before = self._current
        adapters = {**_latest(before, MOST_ADAPTERS - len(wanted)), **wanted}
        try:
            server = await self._start(tuple(adapters.values()))
        except WhetError:
            if not wanted:
                raise
            await self._sort_out(wanted)
            return
        self._current = Running(server, adapters, self._desk())
        if before is not None:
            self._old.append(before)
            self._alone.clear()
            if before.users == 0:
                self._retire(before)

    async def _sort_out(self, wanted: dict[str, Path]) -> None:
        """One adapter that does not fit must not keep the others out: try each alone, and remember what it gave."""
        for name, path in wanted.items():
            try:
                await (await self._start((path,))).close()
            except WhetError as error:
                hint = "It was made for another model, or is damaged."
                self._refused[name] = RequestRefused(error.message, hint=hint)
        self._wanted = {name: path for name, path in wanted.items() if name not in self._refused} | self._wanted

    def _retire(self, running: Running) -> None:
        self._old.remove(running)
        task = asyncio.create_task(running.server.close())
        self._closing.add(task)
        task.add_done_callback(self._retired)

    def _retired(self, task: asyncio.Task[None]) -> None:
        self._closing.discard(task)
        if not self._old and not self._closing:
            self._alone.set()


def _latest(running: Running | None, most: int) -> dict[str, Path]:
    """The adapters of a server that were used last, in the order of their numbers."""
    if running is None or most <= 0:
        return {}
    latest = sorted(running.adapters, key=lambda name: running.last_used[name])[-most:]
    return {name: path for name, path in running.adapters.items() if name in latest}
