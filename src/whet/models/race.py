"""A second try beside a first one that is late; whichever answers first is the answer."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any, Generic, TypeVar

from whet.core import Clock, EndpointError, Timer

T = TypeVar("T")


class Race(Generic[T]):
    """The first try runs in the caller's own task, so the usual call, which is not late, pays for one timer only."""

    def __init__(
        self, clock: Clock, patience: float | None, again: Callable[[], Coroutine[Any, Any, T | None]]
    ) -> None:
        """`again` makes the second try; it may find that there is no room for one, and give None."""
        self._clock = clock
        self._patience = patience
        self._again = again
        self._timer: Timer | None = None
        self._second: asyncio.Task[T | None] | None = None
        self._first: asyncio.Task[Any] | None = None
        self._overtaken = False

    def sent(self) -> None:
        """The first try is on its way: lateness counts from here, not from when it began to queue."""
        if self._patience is not None:
            self._timer = self._clock.call_later(self._patience, self._late)

    async def run(self, first: Coroutine[Any, Any, T]) -> T:
        self._first = asyncio.current_task()
        try:
            return await first
        except EndpointError:
            answer = await self._second_chance()
            if answer is None:
                raise
            return answer
        except asyncio.CancelledError:
            # Ours if the second try won, and then the only one; any other cancellation is the caller's.
            if not self._overtaken or self._first is None or self._first.uncancel() > 0:
                raise
            return self._winner()
        finally:
            await self._end()

    def _late(self) -> None:
        self._second = asyncio.get_running_loop().create_task(self._again())
        self._second.add_done_callback(self._second_done)

    def _second_done(self, second: asyncio.Task[T | None]) -> None:
        answered = not second.cancelled() and second.exception() is None and second.result() is not None
        if answered and self._first is not None:
            self._overtaken = True
            self._first.cancel()

    def _winner(self) -> T:
        answer = self._second.result() if self._second is not None else None
        assert answer is not None, "the first try is overtaken by an answer only"
        return answer

    async def _second_chance(self) -> T | None:
        """The first try failed: wait for the second, if there is one."""
        self._first = None
        if self._second is None:
            return None
        try:
            return await self._second
        except EndpointError:
            return None

    async def _end(self) -> None:
        self._first = None
        if self._timer is not None:
            self._timer.cancel()
        if self._second is not None and not self._second.done():
            self._second.cancel()
            await asyncio.wait([self._second])
