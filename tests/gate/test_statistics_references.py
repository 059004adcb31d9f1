"""Intervals, tests and power against tables that scipy computed (see make_references.py)."""

from __future__ import annotations

import json
import math
from itertools import product
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from whet.core import InputError
from whet.gate import (
    Side,
    binomial_test,
    bootstrap_interval,
    clopper_pearson,
    holm,
    make_rule,
    paired_interval,
    sign_flip_test,
    sign_test,
    sign_test_power,
    simulate,
    smallest_gain,
    tasks_needed,
    wilson,
)

TABLES: dict[str, Any] = json.loads((Path(__file__).parent / "references.json").read_text())


@pytest.mark.parametrize("row", TABLES["intervals"], ids=lambda row: f"{row['passed']} of {row['count']}")
def test_intervals_of_a_rate_are_scipys(row: dict[str, Any]) -> None:
    for name, found in (("wilson", wilson), ("clopper_pearson", clopper_pearson)):
        interval = found(row["passed"], row["count"])
        assert [interval.low, interval.high] == pytest.approx(row[name], abs=1e-9)


@pytest.mark.parametrize("row", TABLES["binomials"], ids=lambda row: f"{row['k']} of {row['n']}")
@pytest.mark.parametrize("side", list(Side))
def test_binomial_tests_are_scipys(row: dict[str, Any], side: Side) -> None:
    assert binomial_test(row["k"], row["n"], row["p"], side) == pytest.approx(row[side], rel=1e-9)


@pytest.mark.parametrize("row", TABLES["sign_flips"], ids=lambda row: f"{len(row['differences'])} differences")
@pytest.mark.parametrize("side", list(Side))
def test_sign_flip_tests_are_scipys(row: dict[str, Any], side: Side) -> None:
    assert sign_flip_test(row["differences"], side) == pytest.approx(row[side], rel=1e-9)


@pytest.mark.parametrize("row", TABLES["bootstraps"], ids=lambda row: f"{len(row['differences'])} differences")
def test_bootstrap_intervals_are_scipys_but_for_chance(row: dict[str, Any]) -> None:
    found = bootstrap_interval(row["differences"], seed=1)
    width = row["interval"][1] - row["interval"][0]
    assert [found.low, found.high] == pytest.approx(row["interval"], abs=0.05 * width)


@pytest.mark.parametrize("row", TABLES["powers"], ids=lambda row: f"{row['tasks']} tasks")
def test_power_is_what_scipys_distributions_add_up_to(row: dict[str, Any]) -> None:
    found = sign_test_power(row["tasks"], row["discordant"], row["gain"], row["level"])
    assert found == pytest.approx(row["power"], abs=1e-9)


def test_holm_steps_down() -> None:
    assert holm([0.01, 0.04, 0.03, 0.005]) == pytest.approx([0.03, 0.06, 0.06, 0.02])
    assert holm([0.2]) == [0.2]
    assert holm([0.5, 0.6]) == [1.0, 1.0]
    assert holm([]) == []


@given(st.lists(st.floats(0, 1), min_size=1, max_size=12))
def test_holm_is_between_no_correction_and_bonferronis_and_keeps_order(ps: list[float]) -> None:
    adjusted = holm(ps)
    assert all(p <= one <= min(1.0, len(ps) * max(ps)) for p, one in zip(ps, adjusted, strict=True))
    assert adjusted[ps.index(min(ps))] == min(1.0, len(ps) * min(ps))
    order = sorted(range(len(ps)), key=lambda index: ps[index])
    assert [adjusted[index] for index in order] == sorted(adjusted)


DIFFERENCES = st.lists(st.sampled_from([-1.0, -0.75, -0.5, -0.1, 0.0, 0.1, 0.3, 0.5, 1.0]), min_size=1, max_size=9)


@settings(deadline=None)
@given(DIFFERENCES)
def test_the_sign_flip_test_counts_every_way(differences: list[float]) -> None:
    total = math.fsum(differences)
    sums = [
        math.fsum(sign * d for sign, d in zip(signs, differences, strict=True))
        for signs in product((1, -1), repeat=len(differences))
    ]
    assert sign_flip_test(differences, Side.GREATER) == sum(one >= total - 1e-9 for one in sums) / len(sums)
    assert sign_flip_test(differences, Side.LESS) == sum(one <= total + 1e-9 for one in sums) / len(sums)


@given(st.integers(0, 40), st.integers(0, 40), st.integers(0, 20))
def test_on_passes_it_is_the_sign_test(better: int, worse: int, same: int) -> None:
    differences = [1.0] * better + [-1.0] * worse + [0.0] * same
    assert sign_flip_test(differences) == pytest.approx(sign_test(better, worse), rel=1e-12)


@pytest.mark.parametrize("count", [0, 1, 300])
def test_many_differences_of_partial_credit_can_be_counted(count: int) -> None:
    values = [((number * 37) % 100) / 100 - 0.49 for number in range(count)]
    assert 0.0 < sign_flip_test(values) <= 1.0


def test_a_bootstrap_repeats_itself_and_leaves_doubt_where_all_agree() -> None:
    values = [math.sin(number) for number in range(30)]
    assert bootstrap_interval(values, seed=3) == bootstrap_interval(values, seed=3)
    assert bootstrap_interval(values, seed=3) != bootstrap_interval(values, seed=4)
    assert bootstrap_interval([0.0] * 20, seed=1) == paired_interval([0.0] * 20)


def test_what_tasks_can_show_and_how_many_are_needed_agree() -> None:
    least = smallest_gain(50, 0.3)
    assert least is not None
    assert sign_test_power(50, 0.3, least) >= 0.8 > sign_test_power(50, 0.3, least - 0.002)
    needed = tasks_needed(0.1, 0.3)
    assert 200 < needed < 300
    assert sign_test_power(needed, 0.3, 0.1) >= 0.8
    assert smallest_gain(5, 0.3) is None


def test_a_search_that_has_no_end_is_refused() -> None:
    with pytest.raises(InputError, match="between 0 and 1"):
        tasks_needed(0.0, 0.3)
    with pytest.raises(InputError, match="a share of tasks"):
        sign_test_power(50, 1.5, 0.1)


def test_simulated_power_repeats_itself() -> None:
    rates = [0.1, 0.5, 0.9] * 8
    made = [simulate(lambda tasks: make_rule("paired", tasks=tasks), rates, 0.4, repeats=30, seed=5) for _ in range(2)]
    assert made[0] == made[1]
    assert made[0].accepted > 0.5
    assert made[0].passes == made[0].rollouts / 48
