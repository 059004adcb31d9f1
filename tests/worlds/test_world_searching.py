"""Searches without a model: what they are compared with must be honest."""

from __future__ import annotations

import random

import pytest

from whet.worlds.games.grid_ctf import score
from whet.worlds.games.searching import SEARCHES, mean_score

TRAIN, TEST = range(40), range(2_000_000, 2_000_100)


@pytest.mark.parametrize("name", SEARCHES)
def test_a_search_gives_a_valid_strategy_and_no_more_calls_than_it_may(name: str) -> None:
    for seed in range(10):
        found = SEARCHES[name](TRAIN, 100, random.Random(seed))
        assert found.strategy.valid
        assert found.calls <= 100
        assert score(found.strategy, 0) > 0.0


@pytest.mark.parametrize("name", SEARCHES)
def test_more_calls_find_more(name: str) -> None:
    def reached(calls: int) -> float:
        return sum(mean_score(SEARCHES[name](TRAIN, calls, random.Random(n)).strategy, TEST) for n in range(10)) / 10

    assert reached(80) < reached(1600) < 0.9


@pytest.mark.parametrize("name", SEARCHES)
def test_the_same_seed_searches_the_same(name: str) -> None:
    assert SEARCHES[name](TRAIN, 200, random.Random(1)) == SEARCHES[name](TRAIN, 200, random.Random(1))
