"""Which tries are learned from."""

from __future__ import annotations

import random
from collections import Counter

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from trying_adapters import a_try

from whet.core import Failure, FailureKind, InputError, Split, Trajectory
from whet.learners.adapter import AdapterSettings, Pick, curate

TRIES = [
    a_try("a", "one", 0.9, sample=0),
    a_try("a", "two", 0.6, sample=1),
    a_try("a", "one", 0.9, sample=2),
    a_try("a", "six", 0.9, sample=3),
    a_try("b", "bad", 0.0, sample=0),
    a_try("b", "low", 0.3, sample=1),
    a_try("c", "ok", 0.55, sample=0),
    a_try("c", "ok!", 0.5, sample=1),
]


def picks(tries: list[Trajectory], **settings: object) -> list[tuple[str, str]]:
    asked = AdapterSettings(**{"balance": False, **settings})  # type: ignore[arg-type]
    return [(each.task, each.answer) for each in curate(tries, asked).picked]


@pytest.mark.parametrize(
    ("settings", "expected"),
    [
        ({"pick": Pick.BEST_OF}, [("a", "one"), ("a", "six"), ("c", "ok")]),
        ({"pick": Pick.BEST_OF, "per_task": 1}, [("a", "one"), ("c", "ok")]),
        ({"pick": Pick.BEST_OF, "min_soft": 0.0}, [("a", "one"), ("a", "six"), ("b", "low"), ("c", "ok")]),
        ({"pick": Pick.THRESHOLD}, [("a", "one"), ("a", "six"), ("a", "two"), ("c", "ok"), ("c", "ok!")]),
        ({"pick": Pick.THRESHOLD, "per_task": 2}, [("a", "one"), ("a", "six"), ("c", "ok"), ("c", "ok!")]),
        ({"pick": Pick.THRESHOLD, "min_soft": 0.9}, [("a", "one"), ("a", "six")]),
        ({"pick": Pick.TOP, "top_share": 3 / 7}, [("a", "one"), ("a", "six"), ("a", "two")]),
        (
            {"pick": Pick.TOP, "top_share": 1.0, "min_soft": 0.55},
            [("a", "one"), ("a", "six"), ("a", "two"), ("c", "ok")],
        ),
        ({"conditioned": True, "per_task": 1}, [("a", "one"), ("b", "low"), ("c", "ok")]),
    ],
)
def test_what_each_way_of_picking_takes(settings: dict[str, object], expected: list[tuple[str, str]]) -> None:
    assert picks(TRIES, **settings) == expected


def test_balanced_no_task_gives_more_than_its_even_share() -> None:
    tries = [a_try("a", str(number), 0.9, sample=number) for number in range(7)] + [a_try("b", "x", 0.9)]
    taken = Counter(task for task, _ in picks(tries, pick=Pick.THRESHOLD, per_task=7, balance=True))
    assert taken == {"a": 4, "b": 1}


def test_the_report_counts_invalid_answers_as_zero_and_duplicates_once() -> None:
    unplayed = msgspec.structs.replace(a_try("d", "", 0.0), verdict=None, failure=Failure(FailureKind.MODEL, "gone"))
    report = curate([*TRIES, unplayed, a_try("e", "?", 1.0, scored=False)], AdapterSettings(balance=False)).report
    assert (report.tries, report.unscored, report.duplicates) == (8, 2, 1)
    assert report.diversity == 7 / 8
    assert report.mean_soft == pytest.approx(4.65 / 8)
    assert (report.tasks, report.picked, report.picked_tasks) == (3, 3, 2)
    assert report.picked_mean_soft == pytest.approx(2.35 / 3)
    assert report.by_source == {"p": 3}


@pytest.mark.parametrize("split", [Split.SELECTION, Split.TEST, Split.CONFIRM])
def test_a_task_of_another_split_is_refused_by_name(split: Split) -> None:
    with pytest.raises(InputError, match=f"task secret-7 is of the {split.value} split"):
        curate([*TRIES, a_try("secret-7", "x", 1.0, split=split)], AdapterSettings())


def test_nothing_to_pick_is_an_empty_answer() -> None:
    curated = curate([], AdapterSettings())
    assert curated.picked == ()
    assert curated.report.picked_mean_soft == 0.0


some_tries = st.lists(
    st.builds(
        a_try,
        task=st.sampled_from("abcd"),
        answer=st.sampled_from(["", "x", "y", "z", "w"]),
        soft=st.sampled_from([0.0, 0.3, 0.5, 0.8, 1.0]),
        sample=st.integers(0, 5),
        scored=st.booleans(),
        policy=st.sampled_from(["p", "q"]),
    ),
    max_size=40,
)
some_settings = st.builds(
    AdapterSettings,
    pick=st.sampled_from(Pick),
    min_soft=st.sampled_from([0.0, 0.5, 0.9]),
    top_share=st.sampled_from([0.0, 0.3, 1.0]),
    per_task=st.integers(1, 5),
    balance=st.booleans(),
    conditioned=st.booleans(),
)


@given(some_tries, some_settings, st.randoms(use_true_random=False))
def test_the_order_of_tries_changes_nothing(
    tries: list[Trajectory], settings: AdapterSettings, drawn: random.Random
) -> None:
    mixed = list(tries)
    drawn.shuffle(mixed)
    assert curate(mixed, settings) == curate(tries, settings)


@given(some_tries, some_settings)
def test_whatever_is_picked_is_scored_good_enough_and_there_once(
    tries: list[Trajectory], settings: AdapterSettings
) -> None:
    curated = curate(tries, settings)
    assert all(each.verdict is not None and each.verdict.scored for each in curated.picked)
    assert settings.conditioned or all(each.soft >= settings.min_soft for each in curated.picked)
    assert len({each.messages for each in curated.picked}) == len(curated.picked)
    taken = Counter(each.task for each in curated.picked)
    assert all(count <= settings.per_task for count in taken.values())
    assert 0.0 <= curated.report.mean_soft <= 1.0
    if not settings.conditioned and settings.pick is not Pick.TOP:
        good = {each.task for each in tries if each.verdict and each.verdict.scored and each.soft >= settings.min_soft}
        assert set(taken) == good
