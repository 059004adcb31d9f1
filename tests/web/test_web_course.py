"""What the learning curve draws."""

from __future__ import annotations

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from reading_pages import report, ruling, score, slow_update, step

from whet.core import Ruling
from whet.gate import wilson
from whet.training.records import RecordKind
from whet.training.telling import duration
from whet.web.course import course_of, told
from whet.web.outcomes import Outcome, interval_of
from whet.web.words import in_order, moment, sentence


def test_scores_hold_until_a_ruling_changes_them() -> None:
    steps = (
        step(1, decided=ruling(0.6, 0.5)),
        step(2),
        step(3, decided=ruling(0.4, 0.6, accepted=False)),
        step(4, decided=ruling(0.9, 0.6)),
    )
    course = course_of(report(*steps))
    assert course.start == 0.5
    assert [point.current for point in course.points] == [0.6, 0.6, 0.6, 0.9]
    assert [point.outcome.value for point in course.points] == ["accepted", "skipped", "rejected", "accepted"]
    assert told(course, report(*steps)) == (
        "4 steps. The best selection score went from 0.500 to 0.900."
        " Of what was proposed: 2 accepted, 1 rejected, 1 skipped."
    )


def test_an_accepted_candidate_that_is_not_the_best_moves_only_what_is_current() -> None:
    made = Ruling(True, False, 0.6, 0.5, 0.8, "")
    (point,) = course_of(report(step(1, decided=made))).points
    assert (point.current, point.best) == (0.6, 0.8)


def test_a_last_policy_counts_by_whether_it_scores_more() -> None:
    made = step(1, kind=RecordKind.LAST, decided=Ruling(False, False, 0.7, 0.6, 0.6, ""))
    (point,) = course_of(report(made)).points
    assert (point.outcome, point.best) == (Outcome.ACCEPTED, 0.7)


def test_a_rule_that_tests_differences_moves_nothing_that_it_rejects() -> None:
    """It looks at as many tasks as it takes, so the scores of one ruling are not those of another."""
    worse = msgspec.structs.replace(ruling(0.1, 0.4, accepted=False), p=0.9)
    better = msgspec.structs.replace(ruling(0.8, 0.6), p=0.001)
    hopeless = msgspec.structs.replace(ruling(0.0, 0.9, accepted=False), p=1.0)
    course = course_of(
        report(step(1, decided=worse), step(2, decided=better), step(3, decided=hopeless), rule="paired")
    )
    assert [point.current for point in course.points] == [0.5, 0.8, 0.8]
    assert [point.best for point in course.points] == [0.5, 0.8, 0.8]
    assert [point.score for point in course.points] == [pytest.approx(0.2), 0.8, 0.0]
    assert [point.interval for point in course.points] == [None, None, None]
    assert course.points[0].told == "Step 1: rejected at -0.300; 0 fixed, 6 broken"


def test_such_a_rule_says_itself_whether_the_last_policy_wins() -> None:
    unsure = msgspec.structs.replace(ruling(0.7, 0.6, accepted=False), p=0.2)
    (point,) = course_of(report(step(1, kind=RecordKind.LAST, decided=unsure), rule="paired")).points
    assert (point.outcome, point.current, point.best) == (Outcome.REJECTED, 0.5, 0.5)


def test_guidance_without_a_gate_has_no_score() -> None:
    (point,) = course_of(report(slow_update(1, 1, skill="x"))).points
    assert (point.outcome, point.score, point.step) == (Outcome.PUT_IN, None, 0)


def test_an_interval_is_that_of_the_counts_behind_the_score() -> None:
    assert interval_of(ruling(0.7, 0.5)) == wilson(14, 20)
    assert interval_of(msgspec.structs.replace(ruling(0.7, 0.5), candidate=0.71)) is None
    assert interval_of(msgspec.structs.replace(ruling(0.4, 0.5, accepted=False), saved=3)) is None
    assert interval_of(Ruling(True, True, 0.0, 0.0, 0.0, "")) is None


def test_partial_credit_has_no_interval_of_passes() -> None:
    soft = msgspec.structs.replace(score("p0", 10), score=0.7)
    assert course_of(report(selection=(soft,))).start_interval is None
    assert course_of(report(selection=(score("p0", 10),))).start_interval == wilson(10, 20)


@given(st.lists(st.tuples(st.floats(0, 1), st.floats(0, 1), st.booleans()), max_size=6))
def test_every_score_and_interval_lies_within_the_axis(drawn: list[tuple[float, float, bool]]) -> None:
    steps = [
        step(n, decided=Ruling(accepted, accepted, candidate, incumbent, incumbent, ""))
        for n, (candidate, incumbent, accepted) in enumerate(drawn, start=1)
    ]
    course = course_of(report(*steps))
    low, high = course.range
    assert 0.0 <= low < high <= 1.0
    assert high - low > 0.19
    for point in course.points:
        assert all(low - 1e-6 <= value <= high + 1e-6 for value in (point.score, point.current, point.best) if value)


def test_words() -> None:
    assert [duration(seconds) for seconds in (0.44, 9.97, 59.7, 61, 7384)] == [
        "0.4 s",
        "10 s",
        "1 min 00 s",
        "1 min 01 s",
        "2 h 03 min",
    ]
    assert sorted(["kind10", "kind2", "door", "kind2b", "7"], key=in_order) == [
        "door",
        "kind2",
        "kind2b",
        "kind10",
        "7",
    ]
    assert moment(0) == "-"
    assert moment(1_800_000_000) == "2027-01-15 08:00 UTC"
    assert sentence("it is so") == "It is so."
    assert sentence("Is it?") == "Is it?"
