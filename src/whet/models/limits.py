"""How many calls may be in flight at one endpoint, learned from how it answers.

`AdaptiveLimit` decides and knows no clock of its own; `Places` makes callers wait.
"""

from __future__ import annotations

import asyncio
import heapq

from whet.core import Clock, Priority, Timer

_RANK = {Priority.CRITICAL: 0, Priority.BACKGROUND: 1}


class AdaptiveLimit:
    """Halves when the endpoint pushes back, shrinks gently when it slows down under load, and grows again by one a
    round while it answers well. Never above `ceiling`, never below one."""

    def __init__(self, ceiling: int) -> None:
        self.ceiling = ceiling
        self._limit = float(ceiling)
        self._quiet_until = 0.0
        self._recent = 0.0
        self._usual = 0.0

    @property
    def places(self) -> int:
        return max(1, int(self._limit))

    def answered(self, now: float, seconds: float, in_flight: int) -> None:
        self._recent = seconds if self._recent == 0.0 else 0.95 * self._recent + 0.05 * seconds
        # The usual latency follows a faster endpoint at once and a slower one only over hundreds of calls.
        pace = 0.1 if seconds < self._usual else 0.002
        self._usual = seconds if self._usual == 0.0 else self._usual + pace * (seconds - self._usual)
        if in_flight < self.places:
            return
        if self._recent > 4.0 * self._usual:
            self._shrink(now, 0.9, quiet=self._recent)
        elif self._limit < self.ceiling:
            self._limit = min(float(self.ceiling), self._limit + 1.0 / self._limit)

    def pushed_back(self, now: float) -> None:
        # One refusal seldom comes alone: those already in flight must not each halve again.
        self._shrink(now, 0.5, quiet=max(1.0, self._recent))

    def _shrink(self, now: float, factor: float, *, quiet: float) -> None:
        if now >= self._quiet_until:
            self._limit = max(1.0, self._limit * factor)
            self._quiet_until = now + quiet


class Places:
    """The places of one endpoint. Critical calls go before background ones, then first come, first served."""

    def __init__(self, ceiling: int, clock: Clock) -> None:
        self._limit = AdaptiveLimit(ceiling)
        self._clock = clock
        self._waiting: list[tuple[int, int, asyncio.Future[None]]] = []
        self._arrivals = 0
        self._closed_until = 0.0
        self._reopening: Timer | None = None
        self.in_flight = 0

    @property
    def free(self) -> bool:
        return self.in_flight < self._limit.places and self._clock.now() >= self._closed_until

    async def take(self, priority: Priority) -> None:
        if self.free and not self._waiting:
            self.in_flight += 1
            return
        turn: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._arrivals += 1
        heapq.heappush(self._waiting, (_RANK[priority], self._arrivals, turn))
        try:
            await turn
        except asyncio.CancelledError:
            if turn.done() and not turn.cancelled():
                self.give_back()
            raise

    def give_back(self) -> None:
        self.in_flight -= 1
        self._admit()

    def answered(self, seconds: float) -> None:
        self._limit.answered(self._clock.now(), seconds, self.in_flight)

    def pushed_back(self, retry_after: float | None) -> None:
        now = self._clock.now()
        self._limit.pushed_back(now)
        if retry_after and now + retry_after > self._closed_until:
            self._closed_until = now + retry_after
            if self._reopening is not None:
                self._reopening.cancel()
            self._reopening = self._clock.call_later(retry_after, self._admit)

    def _admit(self) -> None:
        while self._waiting and self.free:
            _, _, turn = heapq.heappop(self._waiting)
            if not turn.done():
                self.in_flight += 1
                turn.set_result(None)
