"""The gate rules on outcomes alone: not on their order, and on no more plays than it needs."""

from __future__ import annotations

from collections.abc import Sequence
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from whet.core import ConfigError, Ruling, Score
from whet.gate import (
    RULES,
    Arm,
    Ask,
    Evidence,
    Metric,
    make_rule,
    mean_score,
    paired_interval,
    select_gate_score,
    sign_test,
    wilson,
)

Outcomes = Sequence[tuple[bool, float]]


def ruling(
    name: str,
    candidate: Outcomes,
    incumbent: Outcomes,
    *,
    metric: str = Metric.HARD,
    mix: float = 0.5,
    best: float | None = None,
    chunk: int = 0,
    order: Random | None = None,
) -> tuple[Ruling, Evidence]:
    tasks = [f"t{number}" for number in range(len(candidate))]
    rule = make_rule(name, tasks=tasks, metric=metric, mix=mix, best=best, chunk=chunk)
    evidence = Evidence()
    while isinstance(step := rule.next(evidence), Ask):
        plays = list(step.plays)
        if order is not None:
            order.shuffle(plays)
        for play in plays:
            hard, soft = (candidate if play.arm is Arm.CANDIDATE else incumbent)[int(play.task[1:])]
            evidence.add(play.task, play.arm, play.sample, hard=hard, soft=soft)
    return step, evidence


def passes(pattern: str) -> Outcomes:
    return [(letter == "1", float(letter == "1")) for letter in pattern]


@pytest.mark.parametrize(
    ("metric", "w", "score"),
    [
        ("hard", 0.5, 0.25),
        ("soft", 0.5, 0.75),
        ("mixed", 0.5, 0.5),
        ("mixed", 0.0, 0.25),
        ("mixed", 1.0, 0.75),
        ("mixed", 0.2, 0.35),
        (Metric.MIXED, 0.5, 0.5),
    ],
)
def test_a_score_is_what_its_metric_says(metric: str, w: float, score: float) -> None:
    assert select_gate_score(0.25, 0.75, metric, w) == pytest.approx(score, abs=1e-12)


@pytest.mark.parametrize(
    ("metric", "w"), [("best", 0.5), ("", 0.5), ("mixed", 1.1), ("mixed", -0.1), ("mixed", float("nan"))]
)
def test_an_unknown_metric_or_mix_is_a_mistake_that_says_what_is_allowed(metric: str, w: float) -> None:
    with pytest.raises(ConfigError, match=r"hard, soft, mixed|between 0 and 1"):
        select_gate_score(0.5, 0.5, metric, w)


def test_an_unknown_rule_and_an_empty_split_are_mistakes() -> None:
    with pytest.raises(ConfigError, match=r"gate\.rule is 'strikt'.*strict"):
        make_rule("strikt", tasks=["t"])
    with pytest.raises(ConfigError, match="no selection tasks"):
        make_rule("strict", tasks=[])


def test_means_are_over_all_outcomes() -> None:
    assert mean_score([(1.0, 1.0), (0.0, 0.5)]) == Score(0.5, 0.75, 2)
    assert mean_score([]) == Score(0.0, 0.0, 0)


@pytest.mark.parametrize(
    ("candidate", "incumbent", "best", "accepted", "new_best"),
    [
        ("1110", "1100", None, True, True),
        ("1100", "1100", None, False, False),
        ("1010", "1100", None, False, False),
        ("1000", "1100", None, False, False),
        ("0000", "0000", None, False, False),
        ("1110", "1100", 0.75, True, False),
        ("1110", "1100", 1.0, True, False),
        ("1111", "1100", 0.75, True, True),
    ],
)
def test_strict_accepts_more_and_rejects_ties(
    candidate: str, incumbent: str, best: float | None, accepted: bool, new_best: bool
) -> None:
    found, _ = ruling("strict", passes(candidate), passes(incumbent), best=best)
    assert (found.accepted, found.new_best) == (accepted, new_best)
    assert found.incumbent == incumbent.count("1") / 4
    assert found.best == (found.incumbent if best is None else best)
    assert found.reason


def test_pairs_are_counted_task_by_task() -> None:
    found, _ = ruling("off", passes("110100"), passes("101000"))
    assert (found.fixed, found.broke, found.both, found.neither) == (2, 1, 1, 2)


@pytest.mark.parametrize(("candidate", "new_best"), [("1110", True), ("1100", False), ("0000", False)])
def test_off_accepts_always_and_still_knows_the_best(candidate: str, new_best: bool) -> None:
    found, evidence = ruling("off", passes(candidate), passes("1100"))
    assert (found.accepted, found.new_best) == (True, new_best)
    assert (found.candidate, found.incumbent) == (candidate.count("1") / 4, 0.5)
    assert evidence.added == 8


def test_results_that_are_known_are_not_asked_for_again() -> None:
    rule, evidence = make_rule("strict", tasks=["a", "b"]), Evidence()
    for task in "ab":
        evidence.add(task, "incumbent", 0, hard=0, soft=0)
    step = rule.next(evidence)
    assert isinstance(step, Ask)
    assert {play.arm for play in step.plays} == {Arm.CANDIDATE}


OUTCOMES = st.tuples(st.booleans(), st.sampled_from([0.0, 0.1, 0.3, 0.5, 0.7, 1.0]))
PAIRS = st.lists(st.tuples(OUTCOMES, OUTCOMES), min_size=1, max_size=30)
ENOUGH = st.lists(st.tuples(OUTCOMES, OUTCOMES), min_size=6, max_size=20)
"""As many tasks as the paired rule needs."""


@settings(max_examples=80, deadline=None)
@given(pairs=ENOUGH, rule=st.sampled_from(RULES), metric=st.sampled_from(list(Metric)), seed=st.integers(0, 99))
def test_a_ruling_does_not_depend_on_the_order_of_the_evidence(
    pairs: list[tuple[tuple[bool, float], tuple[bool, float]]], rule: str, metric: Metric, seed: int
) -> None:
    candidate, incumbent = zip(*pairs, strict=True)
    usual, _ = ruling(rule, candidate, incumbent, metric=metric)
    shuffled, _ = ruling(rule, candidate, incumbent, metric=metric, order=Random(seed))
    assert shuffled == usual


@settings(max_examples=150, deadline=None)
@given(pairs=PAIRS, metric=st.sampled_from(list(Metric)), chunk=st.integers(0, 40))
def test_stopping_early_rules_as_playing_everything_would(
    pairs: list[tuple[tuple[bool, float], tuple[bool, float]]], metric: Metric, chunk: int
) -> None:
    candidate, incumbent = zip(*pairs, strict=True)
    early, evidence = ruling("strict", candidate, incumbent, metric=metric, chunk=chunk)
    measured, _ = ruling("off", candidate, incumbent, metric=metric)
    assert early.accepted == (measured.candidate > measured.incumbent)
    assert early.rollouts + early.saved == 2 * len(pairs)
    assert evidence.added == early.rollouts
    if early.accepted:
        assert early.candidate == measured.candidate


def test_a_hopeless_candidate_is_not_played_on_everything() -> None:
    found, _ = ruling("strict", passes("0" * 80), passes("1" * 60 + "0" * 20), chunk=8)
    assert not found.accepted
    assert found.saved > 0


@pytest.mark.parametrize(
    ("passed", "count", "low", "high"),
    [
        (8, 10, 0.4902, 0.9433),
        (5, 10, 0.2366, 0.7634),
        (0, 10, 0.0, 0.2775),
        (10, 10, 0.7225, 1.0),
        (50, 100, 0.4038, 0.5962),
        (1, 1, 0.2065, 1.0),
        (0, 0, 0.0, 1.0),
    ],
)
def test_wilson_intervals_are_those_of_the_tables(passed: int, count: int, low: float, high: float) -> None:
    found = wilson(passed, count)
    assert (found.low, found.high) == (pytest.approx(low, abs=5e-5), pytest.approx(high, abs=5e-5))


@given(count=st.integers(1, 500), share=st.floats(0, 1))
def test_wilson_holds_the_rate_and_mirrors(count: int, share: float) -> None:
    passed = round(count * share)
    found, mirrored = wilson(passed, count), wilson(count - passed, count)
    assert 0.0 <= found.low <= passed / count + 1e-12
    assert passed / count - 1e-12 <= found.high <= 1.0
    assert found.low == pytest.approx(1 - mirrored.high, abs=1e-12)


@pytest.mark.parametrize(
    ("better", "worse", "p"),
    [
        (0, 0, 1.0),
        (1, 0, 1.0),
        (5, 0, 2 / 32),
        (0, 5, 2 / 32),
        (6, 0, 2 / 64),
        (8, 1, 2 * (1 + 9) / 512),
        (9, 3, 2 * (1 + 12 + 66 + 220) / 4096),
        (4, 4, 1.0),
    ],
)
def test_the_sign_test_is_exact(better: int, worse: int, p: float) -> None:
    assert sign_test(better, worse) == pytest.approx(p, abs=1e-15)


def test_a_paired_interval_leaves_doubt_where_all_agree() -> None:
    assert paired_interval([0.0] * 20).low < 0 < paired_interval([0.0] * 20).high
    assert paired_interval([]).low == paired_interval([1.0]).low == -1.0
    known = paired_interval([1.0, 0.0, 0.0, -1.0] * 25)
    # Variance 50/99, mean 0, so 1.96 * sqrt(0.50505 / 100).
    assert (known.low, known.high) == (pytest.approx(-0.13929, abs=1e-5), pytest.approx(0.13929, abs=1e-5))
