"""Evidence by betting: never above chance by expectation, whenever one looks."""

from __future__ import annotations

import math
from itertools import product
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from whet.gate import Bets

DIFFERENCES = st.lists(st.floats(-1, 1), max_size=30)


def test_the_expected_capital_without_a_gain_is_one_exactly() -> None:
    """Over all outcomes of six fair differences, and at every length on the way."""
    for length in range(1, 7):
        ways = list(product((-1.0, 0.0, 1.0), repeat=length))
        assert math.fsum(math.exp(Bets(way).log_capital()) for way in ways) / len(ways) == pytest.approx(1.0)


@given(DIFFERENCES, st.randoms(use_true_random=False))
def test_capital_does_not_depend_on_order(differences: list[float], random: Random) -> None:
    shuffled = random.sample(differences, len(differences))
    assert Bets().more(differences).log_capital() == pytest.approx(Bets().more(shuffled).log_capital(), abs=1e-9)


@settings(deadline=None)
@given(DIFFERENCES, st.sampled_from([0.001, 0.025, 0.05]))
def test_the_interval_and_the_bet_agree(differences: list[float], alpha: float) -> None:
    bets = Bets().more(differences)
    interval = bets.interval(alpha)
    assert -1.0 <= interval.low <= interval.high <= 1.0
    if differences:
        mean = math.fsum(differences) / len(differences)
        assert interval.low - 1e-9 <= mean <= interval.high + 1e-9
    if abs(interval.low) > 1e-9:
        assert bets.against(alpha) == (interval.low > 0)


def test_no_differences_say_nothing() -> None:
    interval = Bets().interval(0.05)
    assert (interval.low, interval.high) == (-1.0, 1.0)
    assert Bets().log_capital() == pytest.approx(0.0)


def test_differences_that_cannot_be_are_refused() -> None:
    for wrong in (1.5, -2.0, math.nan):
        with pytest.raises(ValueError, match="between -1 and 1"):
            Bets().more([wrong])


@pytest.mark.slow
@pytest.mark.parametrize("outcomes", [(-1.0, 1.0), (-1.0, 0.0, 0.0, 1.0), (-0.5, -0.5, 1.0), (-1.0, 0.25, 0.25, 0.5)])
def test_stopping_at_the_best_moment_does_not_help(outcomes: tuple[float, ...]) -> None:
    """A thousand series of mean 0, each looked at after every difference, against alpha 0.05; 0.07 is 3 errors away."""
    assert math.fsum(outcomes) == 0.0
    reached = 0
    for number in range(1000):
        random, bets = Random(number), Bets()
        for _ in range(60):
            bets = bets.more([random.choice(outcomes)])
            if bets.against(0.05):
                reached += 1
                break
    assert reached <= 70


@pytest.mark.slow
def test_the_interval_holds_the_mean_whenever_one_looks() -> None:
    missed = 0
    for number in range(120):
        random, bets = Random(number), Bets()
        for _ in range(10):
            bets = bets.more(random.choice((-1.0, 0.0, 0.0, 1.0, 1.0)) for _ in range(5))
            interval = bets.interval(0.05)
            if not interval.low <= 0.2 <= interval.high:
                missed += 1
                break
    # Each end is wrong in one of twenty at most, so both together in 12 of 120; 22 is 3 errors away.
    assert missed <= 22
