"""Strict, stopped early, rules as strict that plays everything."""

from __future__ import annotations

from collections.abc import Sequence
from random import Random

import pytest

from whet.core import Ruling
from whet.gate import Ask, Evidence, make_rule, mean_score, select_gate_score

Outcomes = Sequence[tuple[float, float]]


def published(
    candidate: Outcomes, incumbent: Outcomes, metric: str, mix: float, best: float | None
) -> tuple[bool, bool]:
    """The rule in one line each, over all tasks."""
    ours, theirs = (
        select_gate_score(mean.hard, mean.soft, metric, mix) for mean in (mean_score(candidate), mean_score(incumbent))
    )
    return ours > theirs, ours > theirs and ours > (theirs if best is None else best)


def ruled(
    candidate: Outcomes, incumbent: Outcomes, metric: str, mix: float, best: float | None, chunk: int
) -> tuple[Ruling, int]:
    tasks = [f"t{number}" for number in range(len(candidate))]
    rule = make_rule("strict", tasks=tasks, metric=metric, mix=mix, best=best, chunk=chunk)
    evidence, asks = Evidence(), 0
    for task, (hard, soft) in zip(tasks, incumbent, strict=True):
        evidence.add(task, "incumbent", 0, hard=hard, soft=soft)
    while isinstance(step := rule.next(evidence), Ask):
        asks += 1
        for asked in step.plays:
            hard, soft = candidate[int(asked.task[1:])]
            evidence.add(*asked, hard=hard, soft=soft)
    return step, asks


def drawn(random: Random) -> tuple[Outcomes, Outcomes, str, float, float | None, int]:
    count = random.choice((1, 2, 3, 5, 10, 17, 50))
    able, other = random.random(), random.random()
    tenths = random.random() < 0.5

    def outcome(rate: float) -> tuple[float, float]:
        passed = random.random() < rate
        # Tenths do not add up exactly in binary, so ties depend on how sums are made.
        credit = random.randrange(11) / 10 if tenths else random.random()
        return float(passed), 1.0 if passed and random.random() < 0.5 else credit

    incumbent = [outcome(able) for _ in range(count)]
    candidate = [outcome(other) for _ in range(count)]
    if random.random() < 0.3:
        candidate = random.sample(incumbent, count)
    best = None if random.random() < 0.5 else random.randrange(11) / 10
    return (
        candidate,
        incumbent,
        random.choice(("hard", "soft", "mixed")),
        random.random(),
        best,
        random.choice((0, 1, 4)),
    )


@pytest.mark.slow
def test_ten_thousand_rulings_are_those_of_the_whole_pass() -> None:
    random = Random(20)
    plays = saved = 0
    for _ in range(10_000):
        candidate, incumbent, metric, mix, best, chunk = drawn(random)
        found, _ = ruled(candidate, incumbent, metric, mix, best, chunk)
        assert (found.accepted, found.new_best) == published(candidate, incumbent, metric, mix, best)
        plays, saved = plays + len(candidate), saved + found.saved
    assert saved / plays > 0.1


def test_scores_are_exact_where_later_rulings_rest_on_them() -> None:
    random = Random(21)
    for _ in range(300):
        candidate, incumbent, metric, mix, best, chunk = drawn(random)
        found, _ = ruled(candidate, incumbent, metric, mix, best, chunk)
        means = mean_score(candidate), mean_score(incumbent)
        ours, theirs = (select_gate_score(mean.hard, mean.soft, metric, mix) for mean in means)
        assert found.incumbent == theirs
        if found.saved:
            assert ours - 1e-9 <= found.candidate <= theirs
        else:
            assert found.candidate == ours


def test_as_many_are_asked_for_at_once_as_could_decide_it() -> None:
    """The incumbent fails 20 of 50, so no fewer than 20 failures decide; then two were passed, so two more are."""
    incumbent = [(1.0, 1.0)] * 30 + [(0.0, 0.0)] * 20
    candidate = [(0.0, 0.0)] * 48 + [(1.0, 1.0)] * 2
    found, asks = ruled(candidate, incumbent, "hard", 0.5, None, 1)
    assert (asks, found.rollouts, found.saved) == (2, 50 + 22, 28)
    assert "whatever the 28 tasks left would say" in found.reason


def test_a_chunk_of_all_tasks_is_one_whole_pass() -> None:
    incumbent, candidate = [(0.0, 0.0)] * 5 + [(1.0, 1.0)] * 45, [(0.0, 0.0)] * 50
    found, asks = ruled(candidate, incumbent, "hard", 0.5, None, 50)
    assert (asks, found.saved) == (1, 0)


def test_an_incumbent_that_passes_everything_cannot_be_beaten_and_nothing_is_played() -> None:
    found, asks = ruled([(1.0, 1.0)] * 9, [(1.0, 1.0)] * 9, "hard", 0.5, None, 0)
    assert (found.accepted, asks, found.saved) == (False, 0, 9)
    assert (found.fixed, found.broke, found.both, found.neither) == (0, 0, 0, 0)


def test_outcomes_outside_of_what_scores_can_be_are_refused() -> None:
    for wrong in (1.5, -0.1, float("nan")):
        with pytest.raises(ValueError, match="between 0 and 1"):
            Evidence().add("t", "candidate", 0, hard=0.0, soft=wrong)
