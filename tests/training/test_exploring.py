"""Answers that nobody proposed: valid, judged, repeatable, and never taken for the agent's own."""

from __future__ import annotations

from pathlib import Path

import pytest

from whet.core import ConfigError, Split
from whet.training.exploring import EXPLORED, explore, require_explorable
from whet.worlds import load_world


async def test_drawn_answers_are_valid_judged_and_the_same_by_seed() -> None:
    world = load_world("grid_ctf", {"train": 3}, base_dir=Path())
    tasks = world.tasks(Split.TRAIN)
    tried = await explore(world, tasks, 4, seed=1)
    assert [one.task for one in tried] == [task.id for task in tasks for _ in range(4)]
    assert {one.policy for one in tried} == {EXPLORED}
    assert all(one.verdict and one.verdict.facts["valid"] for one in tried)
    assert len({one.answer for one in tried}) == 12
    assert await explore(world, tasks, 4, seed=1) == tried
    assert await explore(world, tasks, 4, seed=2) != tried


def test_a_world_that_draws_none_says_so_before_anything_is_played() -> None:
    world = load_world("dates", {"train": 3}, base_dir=Path())
    with pytest.raises(ConfigError, match="dates cannot draw answers"):
        require_explorable(world, world.tasks(Split.TRAIN))
