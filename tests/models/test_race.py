"""A late first try and a second one beside it."""

from __future__ import annotations

import asyncio
from typing import NamedTuple

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from whet.core import EndpointUnreachable, StoreFull
from whet.models.race import Race
from whet.testing import FakeClock, settle


class Try(NamedTuple):
    seconds: float
    answer: str | None
    """None from a first try is an error, from a second one that there was no room for it."""
    error: bool = False


class Course:
    """One race, with what became of its tries."""

    def __init__(self, first: Try, second: Try, patience: float | None = 3.0) -> None:
        self.clock = FakeClock()
        self.first, self.second = first, second
        self.race: Race[str] = Race(self.clock, patience, self.run_second)
        self.running = 0
        self.begun = 0

    async def run_first(self) -> str:
        self.race.sent()
        answer = await self.run(self.first)
        assert answer is not None
        return answer

    async def run_second(self) -> str | None:
        return await self.run(self.second)

    async def run(self, attempt: Try) -> str | None:
        self.begun += 1
        self.running += 1
        try:
            await self.clock.sleep(attempt.seconds)
            if attempt.error:
                raise EndpointUnreachable("broke")
            return attempt.answer
        finally:
            self.running -= 1

    def start(self) -> asyncio.Task[str]:
        return asyncio.create_task(self.race.run(self.run_first()))


async def test_a_call_in_time_is_tried_once() -> None:
    course = Course(Try(2.0, "first"), Try(0.0, "second"))
    running = course.start()
    await course.clock.advance(100.0)
    assert await running == "first"
    assert course.begun == 1


async def test_without_patience_there_is_no_second_try() -> None:
    course = Course(Try(1000.0, "first"), Try(0.0, "second"), patience=None)
    running = course.start()
    await course.clock.advance(2000.0)
    assert (await running, course.begun) == ("first", 1)


async def test_lateness_counts_from_the_sending_and_not_from_the_queue() -> None:
    course = Course(Try(2.0, "first"), Try(0.0, "second"))

    async def queued() -> str:
        await course.clock.sleep(50.0)
        return await course.run_first()

    running = asyncio.create_task(course.race.run(queued()))
    await course.clock.advance(100.0)
    assert (await running, course.begun) == ("first", 1)


async def test_the_second_may_win_and_the_caller_is_not_cancelled_by_it() -> None:
    course = Course(Try(60.0, "first"), Try(1.0, "second"))

    async def caller() -> tuple[str, int]:
        answer = await course.race.run(course.run_first())
        await asyncio.sleep(0)
        task = asyncio.current_task()
        assert task is not None
        return answer, task.cancelling()

    running = asyncio.create_task(caller())
    await course.clock.advance(4.0)
    assert running.done()
    assert await running == ("second", 0)
    assert course.running == 0


async def test_the_first_may_still_win_and_ends_the_second() -> None:
    course = Course(Try(5.0, "first"), Try(50.0, "second"))
    running = course.start()
    await course.clock.advance(5.0)
    assert await running == "first"
    assert (course.begun, course.running) == (2, 0)


async def test_a_second_that_fails_on_the_way_does_not_disturb_the_first() -> None:
    course = Course(Try(9.0, "first"), Try(1.0, None, error=True))
    running = course.start()
    await course.clock.advance(9.0)
    assert await running == "first"


async def test_an_error_of_another_kind_in_the_second_is_not_swallowed_where_it_decides() -> None:
    course = Course(Try(5.0, None, error=True), Try(0.0, None))

    async def full() -> str | None:
        await course.clock.sleep(10.0)
        raise StoreFull("no room")

    course.race = Race(course.clock, 3.0, full)
    running = course.start()
    await course.clock.advance(20.0)
    with pytest.raises(StoreFull):
        await running


@pytest.mark.parametrize("turns", range(8))
async def test_a_cancellation_that_meets_the_second_answer_is_not_lost(turns: int) -> None:
    course = Course(Try(60.0, "first"), Try(0.0, None))
    answered: asyncio.Future[str] = asyncio.get_running_loop().create_future()

    async def second() -> str | None:
        return await answered

    course.race = Race(course.clock, 3.0, second)
    running = course.start()
    await course.clock.advance(3.0)
    answered.set_result("second")
    for _ in range(turns):
        await asyncio.sleep(0)
    taken = running.cancel()
    await settle()
    assert running.done()
    assert running.cancelled() == taken
    assert course.running == 0


TIMES = st.integers(0, 12)


@settings(max_examples=300, deadline=None)
@given(
    first=st.tuples(TIMES, st.booleans()),
    second=st.tuples(TIMES, st.sampled_from(["answer", "error", "no room"])),
    cancelled_at=st.none() | TIMES,
)
def test_every_race_ends_as_it_should_and_leaves_nothing_behind(
    first: tuple[int, bool], second: tuple[int, str], cancelled_at: int | None
) -> None:
    # Thirds of a second keep the three kinds of moments apart.
    first_end, second_end, patience = float(first[0]), 3.0 + second[0] + 1 / 3, 3.0 - 1 / 6
    begins = first_end > patience

    def expected() -> tuple[str, float]:
        if begins and second[1] == "answer" and (second_end < first_end or first[1]):
            return "second", second_end
        if first[1]:
            return "error", max(first_end, second_end) if begins else first_end
        return "first", first_end

    async def run() -> None:
        answer = "second" if second[1] == "answer" else None
        course = Course(
            Try(first_end, "first", error=first[1]),
            Try(second_end - patience, answer, error=second[1] == "error"),
            patience,
        )
        running = course.start()
        outcome, end = expected()
        if cancelled_at is not None:
            course.clock.call_later(cancelled_at + 2 / 3, running.cancel)
            if cancelled_at + 2 / 3 < end:
                outcome = "cancelled"
        await course.clock.advance(100.0)
        await settle()
        assert running.done()
        if outcome == "cancelled":
            assert running.cancelled()
        elif outcome == "error":
            assert isinstance(running.exception(), EndpointUnreachable)
        else:
            assert running.result() == outcome
        assert course.running == 0
        assert asyncio.all_tasks() == {asyncio.current_task()}

    asyncio.run(run())
