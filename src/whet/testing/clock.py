"""A clock that stands still until it is turned."""

from __future__ import annotations

import asyncio
import heapq
from collections.abc import Callable


class _Alarm:
    def __init__(self, callback: Callable[[], None]) -> None:
        self.callback = callback
        self.cancelled = False

    def cancel(self) -> None:
        self.cancelled = True


class FakeClock:
    """Implements `Clock`. `advance` runs what falls due, in order, and lets tasks react between two moments."""

    def __init__(self, wall: float = 1_000_000.0) -> None:
        self._now = 0.0
        self._wall = wall
        self._alarms: list[tuple[float, int, _Alarm]] = []
        self._count = 0

    def now(self) -> float:
        return self._now

    def wall(self) -> float:
        return self._wall + self._now

    def call_later(self, seconds: float, callback: Callable[[], None]) -> _Alarm:
        alarm = _Alarm(callback)
        self._count += 1
        heapq.heappush(self._alarms, (self._now + max(0.0, seconds), self._count, alarm))
        return alarm

    async def sleep(self, seconds: float) -> None:
        woken: asyncio.Future[None] = asyncio.get_running_loop().create_future()

        def wake() -> None:
            if not woken.done():
                woken.set_result(None)

        alarm = self.call_later(seconds, wake)
        try:
            await woken
        finally:
            alarm.cancel()

    async def advance(self, seconds: float) -> None:
        end = self._now + seconds
        await settle()
        while self._alarms and self._alarms[0][0] <= end:
            due, _, alarm = heapq.heappop(self._alarms)
            self._now = due
            if not alarm.cancelled:
                alarm.callback()
            await settle()
        self._now = end
        await settle()


async def settle(turns: int = 20) -> None:
    """Let every task that can go on do so."""
    for _ in range(turns):
        await asyncio.sleep(0)
