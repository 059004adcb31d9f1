"""The same thing asked for twice at the same time is done once."""

from __future__ import annotations

import asyncio

import pytest
from hypothesis import given
from hypothesis import strategies as st

from whet.models import Once
from whet.testing import settle


class Work:
    """Waits until it is told to end, and counts how often it was begun."""

    def __init__(self) -> None:
        self.begun = 0
        self.end = asyncio.Event()
        self.error: Exception | None = None

    async def __call__(self) -> int:
        self.begun += 1
        mine = self.begun
        await self.end.wait()
        if self.error is not None:
            raise self.error
        return mine


async def test_those_who_ask_at_once_share_one_answer() -> None:
    once, work = Once[int](), Work()
    asking = [asyncio.create_task(once.do(b"k", work)) for _ in range(5)]
    await settle()
    work.end.set()
    assert await asyncio.gather(*asking) == [1] * 5


async def test_other_keys_and_later_askers_do_their_own_work() -> None:
    once, work = Once[int](), Work()
    work.end.set()
    assert await once.do(b"k", work) == 1
    assert await once.do(b"k", work) == 2
    assert await once.do(b"other", work) == 3


async def test_a_failure_is_shared_and_then_forgotten() -> None:
    once, work = Once[int](), Work()
    asking = [asyncio.create_task(once.do(b"k", work)) for _ in range(3)]
    await settle()
    work.error = ValueError("broken")
    work.end.set()
    for task in asking:
        with pytest.raises(ValueError, match="broken"):
            await task
    work.error = None
    assert await once.do(b"k", work) == 2


async def test_a_failure_that_nobody_shares_is_told_once_and_leaves_no_complaint() -> None:
    once, work = Once[int](), Work()
    work.error = ValueError("broken")
    work.end.set()
    with pytest.raises(ValueError, match="broken"):
        await once.do(b"k", work)


async def test_a_sharer_that_is_cancelled_disturbs_nobody() -> None:
    once, work = Once[int](), Work()
    asking = [asyncio.create_task(once.do(b"k", work)) for _ in range(3)]
    await settle()
    asking[1].cancel()
    await settle()
    work.end.set()
    assert (await asking[0], await asking[2], work.begun) == (1, 1, 1)
    assert asking[1].cancelled()


async def test_when_the_first_is_cancelled_the_others_are_not() -> None:
    once, work = Once[int](), Work()
    asking = [asyncio.create_task(once.do(b"k", work)) for _ in range(4)]
    await settle()
    asking[0].cancel()
    await settle()
    work.end.set()
    assert await asyncio.gather(*asking[1:]) == [2, 2, 2]
    assert asking[0].cancelled()


async def test_first_and_sharer_cancelled_together_both_end() -> None:
    once, work = Once[int](), Work()
    asking = [asyncio.create_task(once.do(b"k", work)) for _ in range(2)]
    await settle()
    for task in asking:
        task.cancel()
    await settle()
    assert all(task.cancelled() for task in asking)
    assert work.begun == 1


@given(cancelled=st.sets(st.integers(0, 5), max_size=5), at_once=st.booleans())
def test_whoever_is_not_cancelled_gets_an_answer(cancelled: set[int], at_once: bool) -> None:
    async def run() -> None:
        once, work = Once[int](), Work()
        asking = [asyncio.create_task(once.do(b"k", work)) for _ in range(6)]
        await settle()
        for number in cancelled:
            asking[number].cancel()
            if not at_once:
                await settle()
        await settle()
        work.end.set()
        outcomes = await asyncio.gather(*asking, return_exceptions=True)
        assert {n for n, outcome in enumerate(outcomes) if isinstance(outcome, asyncio.CancelledError)} == cancelled
        assert len({outcome for outcome in outcomes if isinstance(outcome, int)}) == 1

    asyncio.run(run())
