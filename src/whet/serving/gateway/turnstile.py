"""How many are answered at once, how many may wait, and what the rest is told."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

import msgspec

from whet.serving.gateway.refusal import Refusal


class Limits(msgspec.Struct, frozen=True):
    body_bytes: int = 16 * 1024 * 1024
    """A larger request is refused before it is read."""
    at_once: int = 0
    """Requests that are answered at once; 0 leaves it to the model."""
    waiting: int = 256
    """Requests that may wait for their turn."""
    seconds: float = 600.0
    """For a request from its turn to the end of its answer, and for its wait before."""
    body_seconds: float = 30.0
    """In which a request has to arrive whole."""
    send_seconds: float = 60.0
    """After which somebody who takes nothing of an answer is given up."""


class Turnstile:
    """First come, first served."""

    def __init__(self, at_once: int, waiting: int) -> None:
        self._at_once = at_once
        self._most_waiting = waiting
        self._queue: deque[asyncio.Future[None]] = deque()
        self.inside = 0
        self.closing = False

    @property
    def waiting(self) -> int:
        return len(self._queue)

    @asynccontextmanager
    async def turn(self) -> AsyncGenerator[None]:
        if self.inside >= self._at_once:
            await self._wait()
        else:
            self.inside += 1
        try:
            yield
        finally:
            self.inside -= 1
            self._admit()

    async def _wait(self) -> None:
        if len(self._queue) >= self._most_waiting:
            seconds = 1.0 + len(self._queue) / max(1, self._at_once)
            message = f"{self.inside} requests are being answered and {len(self._queue)} wait already"
            raise Refusal(429, message, code="queue_full", retry_after=seconds)
        turn: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._queue.append(turn)
        try:
            await turn
        except asyncio.CancelledError:
            if turn.done() and not turn.cancelled():
                self.inside -= 1
                self._admit()
            elif turn in self._queue:
                self._queue.remove(turn)
            raise

    def _admit(self) -> None:
        while self._queue and self.inside < self._at_once:
            turn = self._queue.popleft()
            if not turn.done():
                self.inside += 1
                turn.set_result(None)
