"""Minibatches and merges: what is in them does not depend on who comes first, and nobody waits without need."""

from __future__ import annotations

import asyncio
from random import Random

from hypothesis import given, settings
from hypothesis import strategies as st
from learning import ScriptedOptimizer, merged, optimizer, trajectory

from whet.core import Edit, Patch, Purpose, Source, Trajectory
from whet.learners.skill import Minibatch, minibatches
from whet.learners.skill.merge import MergeTree, merge_final
from whet.testing import settle


class Arriving:
    """Futures of trajectories, and the minibatches that were given out so far."""

    def __init__(self, passed: list[bool], size: int, step: bytes = b"step") -> None:
        loop = asyncio.get_running_loop()
        self.passed = passed
        self.futures: list[asyncio.Future[Trajectory]] = [loop.create_future() for _ in passed]
        self.given: list[Minibatch] = []
        self.task = asyncio.create_task(self._read(size, step))

    async def _read(self, size: int, step: bytes) -> None:
        async for batch in minibatches(self.futures, size, step):
            self.given.append(batch)

    async def arrive(self, number: int) -> None:
        self.futures[number].set_result(trajectory(number, hard=self.passed[number]))
        await settle(5)


async def all_batches(passed: list[bool], size: int, order: list[int]) -> list[Minibatch]:
    arriving = Arriving(passed, size)
    for number in order:
        await arriving.arrive(number)
    await arriving.task
    return arriving.given


@settings(max_examples=60, deadline=None)
@given(passed=st.lists(st.booleans(), max_size=20), size=st.integers(1, 6), seed=st.integers(0, 99))
def test_minibatches_do_not_depend_on_the_order_of_arrival(passed: list[bool], size: int, seed: int) -> None:
    order = list(range(len(passed)))
    Random(seed).shuffle(order)
    batches = asyncio.run(all_batches(passed, size, order))
    assert batches == asyncio.run(all_batches(passed, size, sorted(order)))
    for source, wanted in ((Source.FAILURE, False), (Source.SUCCESS, True)):
        mine = [batch for batch in batches if batch.source is source]
        assert [batch.number for batch in mine] == list(range(len(mine)))
        assert all(len(batch.trajectories) == size for batch in mine[:-1])
        tasks = sorted(played.task for batch in mine for played in batch.trajectories)
        assert tasks == sorted(f"task-{number}" for number, hard in enumerate(passed) if hard is wanted)


async def test_a_minibatch_is_given_out_as_soon_as_its_prefix_is_there() -> None:
    passed = [False] * 9
    whole = await all_batches(passed, 3, list(range(9)))
    order = [int(played.task.removeprefix("task-")) for batch in whole for played in batch.trajectories]
    arriving = Arriving(passed, 3)
    for number in order[3:]:
        await arriving.arrive(number)
    assert arriving.given == []
    for number in order[:2]:
        await arriving.arrive(number)
    assert arriving.given == []
    await arriving.arrive(order[2])
    assert arriving.given == whole

    eager = Arriving(passed, 3)
    for count, number in enumerate(order, start=1):
        await eager.arrive(number)
        assert len(eager.given) == count // 3
    await eager.task


async def test_each_step_draws_an_order_of_its_own() -> None:
    async def first(step: bytes) -> list[str]:
        arriving = Arriving([False] * 20, 20, step)
        for number in range(20):
            await arriving.arrive(number)
        await arriving.task
        return [played.task for played in arriving.given[0].trajectories]

    assert await first(b"one") == await first(b"one") != await first(b"two")


def patch(name: str, *, support: int = 1) -> Patch:
    return Patch(f"why {name}", (Edit("append", content=name, source=Source.FAILURE, support=support),))


async def merge(count: int, size: int, order: list[int]) -> tuple[Patch | None, list[str]]:
    """The merged patch and what was asked, when patches arrive in this order."""
    model = ScriptedOptimizer(lambda purpose, request: merged("join of " + str(request.messages[0].text.count("###"))))
    loop = asyncio.get_running_loop()
    arriving: list[asyncio.Future[Patch | None]] = [loop.create_future() for _ in range(count)]

    async def take(future: asyncio.Future[Patch | None]) -> Patch | None:
        return await future

    async with asyncio.TaskGroup() as tasks:
        tree = MergeTree(tasks, optimizer(model), "# Skill", Source.FAILURE, size)
        for future in arriving:
            tree.add(tasks.create_task(take(future)))
        finishing = tasks.create_task(tree.finish())
        for number in order:
            arriving[number].set_result(patch(f"[patch {number}]"))
            await settle(5)
    return finishing.result(), sorted(model.prompts(Purpose.MERGE_FAILURE))


@settings(max_examples=60, deadline=None)
@given(count=st.integers(0, 14), size=st.integers(2, 5), seed=st.integers(0, 99))
def test_merging_groups_by_place_whatever_the_order_of_arrival(count: int, size: int, seed: int) -> None:
    order = list(range(count))
    Random(seed).shuffle(order)
    result, asked = asyncio.run(merge(count, size, order))
    assert (result, asked) == asyncio.run(merge(count, size, sorted(order)))
    groups = [range(start, min(start + size, count)) for start in range(0, count, size)]
    for group in groups:
        together = [text for text in asked if all(f"[patch {number}]" in text for number in group)]
        assert len(together) == (1 if len(group) > 1 else len(together))
    if count == 0:
        assert result is None
    if count <= 1:
        assert asked == []


async def test_a_single_patch_is_not_sent_to_be_merged() -> None:
    result, asked = await merge(1, 8, [0])
    assert (result, asked) == (patch("[patch 0]"), [])
    result, asked = await merge(9, 8, list(range(9)))
    assert len(asked) == 2
    assert "[patch 8]" in asked[0] + asked[1]


async def test_a_group_is_merged_while_others_are_still_written() -> None:
    model = ScriptedOptimizer(lambda purpose, request: merged("joined"))
    never: asyncio.Future[Patch | None] = asyncio.get_running_loop().create_future()

    async def take(patch: Patch) -> Patch | None:
        return patch

    async def wait() -> Patch | None:
        return await never

    async with asyncio.TaskGroup() as tasks:
        tree = MergeTree(tasks, optimizer(model), "# Skill", Source.FAILURE, 2)
        for name in "ab":
            tree.add(tasks.create_task(take(patch(name))))
        tree.add(tasks.create_task(wait()))
        await settle()
        assert model.purposes() == ["merge_failure"]
        never.set_result(None)


async def test_failures_and_successes_are_joined_once_with_failures_first() -> None:
    model = ScriptedOptimizer(lambda purpose, request: merged("f", "new"))
    joined = await merge_final(optimizer(model), "# Skill", patch("f", support=3), patch("s", support=5))
    (prompt,) = model.prompts(Purpose.MERGE_FINAL)
    assert prompt.index('"f"') < prompt.index('"s"')
    assert joined is not None
    assert [(one.content, one.support, one.merge_level) for one in joined.edits] == [("f", 3, 1), ("new", 5, 1)]


async def test_an_empty_side_is_skipped() -> None:
    model = ScriptedOptimizer(lambda purpose, request: merged("x"))
    asking = optimizer(model)
    empty = Patch("nothing to add")
    assert await merge_final(asking, "", patch("f"), None) == patch("f")
    assert await merge_final(asking, "", None, patch("s")) == patch("s")
    assert await merge_final(asking, "", None, None) is None
    assert await merge_final(asking, "", patch("f"), empty) == patch("f")
    assert await merge_final(asking, "", empty, patch("s")) == patch("s")
    nothing = await merge_final(asking, "", empty, empty)
    assert nothing is None or nothing.edits == ()
    assert model.asked == []


async def test_a_merge_that_cannot_be_read_joins_the_lists() -> None:
    model = ScriptedOptimizer(lambda purpose, request: "I would rather not")
    asking = optimizer(model)
    joined = await merge_final(asking, "", patch("f"), patch("s"))
    assert joined is not None
    assert [one.content for one in joined.edits] == ["f", "s"]
    assert model.purposes() == ["merge_final", "merge_final"]
    (fallback,) = asking.fallbacks
    assert "joined as they are, failures first" in fallback
