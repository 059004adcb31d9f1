"""All seats of a server: who may sit down, who has been away too long, and whose token opens what."""

from __future__ import annotations

import asyncio
import itertools
import secrets
from collections.abc import Callable

from whet.core import Clock, SystemClock, World
from whet.serving.worlds.seat import Episode, Limits, Seat, Table
from whet.serving.worlds.tasks import TaskBook
from whet.serving.worlds.wire import Code, Refusal, Reset


def _unheard(line: str) -> None:
    pass


class Hub:
    """The sessions of one world, in one event loop."""

    def __init__(
        self,
        world: World,
        limits: Limits | None = None,
        clock: Clock | None = None,
        tell: Callable[[str], None] = _unheard,
    ) -> None:
        self.world = world
        self.limits = limits or Limits()
        self.clock = clock or SystemClock()
        self.book = TaskBook(world)
        self.agent_base = ""
        """Where agents connect; empty while nobody listens for them."""
        count = itertools.count()
        self._table = Table(world, self.book, self.limits, self.clock, lambda: next(count), tell)
        self._seats: dict[str, Seat] = {}
        self._tokens: dict[str, Seat] = {}
        self._token_of: dict[str, str] = {}

    def __len__(self) -> int:
        return len(self._seats)

    @property
    def seats(self) -> tuple[Seat, ...]:
        return tuple(self._seats.values())

    def sit(self) -> Seat:
        """A free place. Taken and given back without a wait in between, so that none can leak."""
        if len(self._seats) >= self.limits.sessions:
            raise Refusal(Code.CAPACITY_REACHED, f"all {self.limits.sessions} sessions of this server are in use")
        seat = Seat(secrets.token_urlsafe(16), self._table)
        self._seats[seat.name] = seat
        return seat

    def seat(self, name: str) -> Seat:
        seat = self._seats.get(name)
        if seat is None:
            raise Refusal(Code.SESSION_ERROR, "there is no such session: it was never begun, or it has ended")
        return seat

    async def leave(self, seat: Seat, why: str) -> None:
        self._seats.pop(seat.name, None)
        self._forget_token(seat)
        await seat.leave(why)

    async def reset(self, seat: Seat, reset: Reset) -> tuple[Episode, str]:
        """A new episode in a seat, and where an agent reaches its tools."""
        self._forget_token(seat)
        episode = await seat.reset(reset)
        if not self.agent_base or seat.name not in self._seats:
            return episode, ""
        self._tokens[episode.token] = seat
        self._token_of[seat.name] = episode.token
        return episode, f"{self.agent_base}/{episode.token}/mcp"

    def agent_seat(self, token: str) -> Seat:
        seat = self._tokens.get(token)
        if seat is None:
            raise Refusal(Code.SESSION_ERROR, "the episode is over")
        return seat

    async def end_idle(self) -> None:
        """For ever: end what nobody uses. A session under a long call is in use."""
        while True:
            await self.clock.sleep(self.limits.idle_seconds / 4)
            idle = [seat for seat in self.seats if seat.idle_seconds >= self.limits.idle_seconds]
            for seat in idle:
                await self.leave(seat, f"it was not used for {self.limits.idle_seconds:g} s")

    def dismiss_all(self) -> None:
        for seat in self.seats:
            seat.dismiss("the server is closing")

    async def close(self) -> None:
        async with asyncio.TaskGroup() as group:
            for seat in self.seats:
                group.create_task(self.leave(seat, "the server is closing"))

    def _forget_token(self, seat: Seat) -> None:
        token = self._token_of.pop(seat.name, None)
        if token is not None:
            self._tokens.pop(token, None)
