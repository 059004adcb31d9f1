"""How many calls go to an endpoint at once, and in which order."""

from __future__ import annotations

import asyncio

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from whet.core import Priority
from whet.models import AdaptiveLimit, Places
from whet.testing import FakeClock, settle


def test_a_burst_of_refusals_halves_once() -> None:
    limit = AdaptiveLimit(64)
    for _ in range(20):
        limit.pushed_back(10.0)
    assert limit.places == 32
    limit.pushed_back(10.5)
    assert limit.places == 32
    limit.pushed_back(11.5)
    assert limit.places == 16


def test_the_quiet_after_a_refusal_lasts_as_long_as_a_call() -> None:
    limit = AdaptiveLimit(64)
    limit.answered(0.0, 30.0, 64)
    limit.pushed_back(1.0)
    limit.pushed_back(30.0)
    assert limit.places == 32
    limit.pushed_back(31.5)
    assert limit.places == 16


def test_it_grows_back_by_one_a_round_while_it_is_full() -> None:
    limit = AdaptiveLimit(16)
    limit.pushed_back(0.0)
    assert limit.places == 8
    for _ in range(9):
        limit.answered(5.0, 1.0, 8)
    assert limit.places == 9
    for _ in range(1000):
        limit.answered(5.0, 1.0, limit.places)
    assert limit.places == 16


def test_it_does_not_grow_while_places_stay_empty() -> None:
    limit = AdaptiveLimit(16)
    limit.pushed_back(0.0)
    for _ in range(100):
        limit.answered(5.0, 1.0, 3)
    assert limit.places == 8


def test_it_shrinks_gently_when_the_endpoint_slows_down_under_load() -> None:
    limit = AdaptiveLimit(64)
    for _ in range(100):
        limit.answered(0.0, 1.0, 64)
    now = 0.0
    for _ in range(200):
        now += 1.0
        limit.answered(now, 20.0, 64)
    assert 1 <= limit.places < 64


@given(
    ceiling=st.integers(1, 300),
    events=st.lists(st.tuples(st.booleans(), st.floats(0, 5), st.floats(0, 100), st.integers(0, 300)), max_size=100),
)
def test_it_stays_between_one_and_the_ceiling(ceiling: int, events: list[tuple[bool, float, float, int]]) -> None:
    limit, now = AdaptiveLimit(ceiling), 0.0
    for refused, passed, seconds, in_flight in events:
        now += passed
        if refused:
            limit.pushed_back(now)
        else:
            limit.answered(now, seconds, in_flight)
        assert 1 <= limit.places <= ceiling


async def test_no_more_than_the_limit_are_in_flight() -> None:
    places = Places(3, FakeClock())
    taking = [asyncio.create_task(places.take(Priority.CRITICAL)) for _ in range(5)]
    await settle()
    assert [task.done() for task in taking] == [True, True, True, False, False]
    assert not places.free
    places.give_back()
    await settle()
    assert [task.done() for task in taking] == [True, True, True, True, False]
    places.give_back()
    await asyncio.gather(*taking)
    assert places.in_flight == 3


async def test_critical_calls_go_before_background_ones_and_else_first_come_first_served() -> None:
    places = Places(1, FakeClock())
    await places.take(Priority.CRITICAL)
    served: list[str] = []

    async def take(name: str, priority: Priority) -> None:
        await places.take(priority)
        served.append(name)
        places.give_back()

    order = [("b1", Priority.BACKGROUND), ("c1", Priority.CRITICAL), ("b2", Priority.BACKGROUND)]
    order += [("c2", Priority.CRITICAL), ("c3", Priority.CRITICAL)]
    taking = []
    for name, priority in order:
        taking.append(asyncio.create_task(take(name, priority)))
        await settle()
    places.give_back()
    await asyncio.gather(*taking)
    assert served == ["c1", "c2", "c3", "b1", "b2"]
    assert places.in_flight == 0


async def test_an_endpoint_that_asks_for_a_pause_gets_it() -> None:
    clock = FakeClock()
    places = Places(4, clock)
    await places.take(Priority.CRITICAL)
    places.pushed_back(30.0)
    places.give_back()
    taking = asyncio.create_task(places.take(Priority.CRITICAL))
    await clock.advance(29.9)
    assert not taking.done()
    assert not places.free
    await clock.advance(0.1)
    assert taking.done()


async def test_a_shorter_pause_does_not_end_a_longer_one_and_a_longer_one_does_not_end_early() -> None:
    clock = FakeClock()
    places = Places(4, clock)
    places.pushed_back(10.0)
    places.pushed_back(2.0)
    taking = asyncio.create_task(places.take(Priority.CRITICAL))
    await clock.advance(5.0)
    assert not taking.done()
    places.pushed_back(20.0)
    await clock.advance(19.0)
    assert not taking.done()
    await clock.advance(1.0)
    assert taking.done()


async def test_places_that_grew_are_used() -> None:
    clock = FakeClock()
    places = Places(2, clock)
    places.pushed_back(None)
    await places.take(Priority.CRITICAL)
    taking = [asyncio.create_task(places.take(Priority.CRITICAL)) for _ in range(3)]
    await settle()
    assert not any(task.done() for task in taking)
    places.answered(1.0)
    places.give_back()
    await settle()
    assert [task.done() for task in taking] == [True, True, False]
    taking[2].cancel()


async def test_a_waiter_that_is_cancelled_at_its_turn_gives_its_place_to_the_next() -> None:
    places = Places(1, FakeClock())
    await places.take(Priority.CRITICAL)
    unlucky = asyncio.create_task(places.take(Priority.CRITICAL))
    next_one = asyncio.create_task(places.take(Priority.CRITICAL))
    await settle()
    places.give_back()
    unlucky.cancel()
    async with asyncio.timeout(5):
        await next_one
    assert places.in_flight == 1


OPERATIONS = st.lists(
    st.one_of(
        st.tuples(st.just("take"), st.sampled_from([0.0, 1.0])),
        st.tuples(st.sampled_from(["give back", "cancel"]), st.integers(0, 20).map(float)),
        st.tuples(st.just("pass"), st.sampled_from([0.0, 0.5, 3.0])),
        st.tuples(st.just("push back"), st.sampled_from([0.0, 1.0, 5.0])),
        st.tuples(st.sampled_from(["turn", "answered"]), st.just(0.0)),
    ),
    max_size=40,
)


class Crowd:
    """Takes, holds, gives back and is cancelled, as it comes."""

    def __init__(self, ceiling: int) -> None:
        self.clock = FakeClock()
        self.ceiling = ceiling
        self.places = Places(ceiling, self.clock)
        self.tasks: list[asyncio.Task[None]] = []
        self.leave: list[asyncio.Event] = []
        self.holding = 0

    async def come(self, priority: Priority, leave: asyncio.Event) -> None:
        await self.places.take(priority)
        self.holding += 1
        try:
            await leave.wait()
        finally:
            self.holding -= 1
            self.places.give_back()

    async def do(self, name: str, value: float) -> None:
        match name:
            case "take":
                self.leave.append(asyncio.Event())
                priority = Priority.BACKGROUND if value else Priority.CRITICAL
                self.tasks.append(asyncio.create_task(self.come(priority, self.leave[-1])))
            case "give back" if self.leave:
                self.leave[int(value) % len(self.leave)].set()
            case "cancel" if self.tasks:
                self.tasks[int(value) % len(self.tasks)].cancel()
            case "pass":
                await self.clock.advance(value)
            case "push back":
                self.places.pushed_back(value or None)
            case "answered":
                self.places.answered(1.0)
            case _:
                await asyncio.sleep(0)
        assert self.holding <= self.places.in_flight <= self.ceiling

    async def end(self) -> None:
        for leave in self.leave:
            leave.set()
        await self.clock.advance(100.0)
        assert all(task.done() for task in self.tasks), "somebody waits for ever"
        assert self.places.in_flight == 0


@settings(max_examples=150, deadline=None)
@given(ceiling=st.integers(1, 4), operations=OPERATIONS)
def test_no_place_is_lost_and_nobody_waits_for_ever(ceiling: int, operations: list[tuple[str, float]]) -> None:
    async def run() -> None:
        crowd = Crowd(ceiling)
        for name, value in operations:
            await crowd.do(name, value)
        await crowd.end()

    asyncio.run(run())


def test_the_ceiling_of_one_can_be_used() -> None:
    limit = AdaptiveLimit(1)
    limit.pushed_back(0.0)
    assert limit.places == 1


@pytest.mark.parametrize("retry_after", [None, 0.0])
async def test_a_refusal_without_a_pause_closes_nothing(retry_after: float | None) -> None:
    places = Places(4, FakeClock())
    places.pushed_back(retry_after)
    async with asyncio.timeout(5):
        await places.take(Priority.CRITICAL)
