from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from whet.core import InputError, Split
from whet.worlds.splits import Duplicates, Limits, Listed, Shares, SplitSettings, arrange, draw

QUESTIONS = st.lists(st.text(min_size=1), unique=True, max_size=40)


def listed(*questions: str, split: Split | None = None) -> list[Listed]:
    return [Listed({"question": question}, split=split) for question in questions]


@given(QUESTIONS, QUESTIONS, st.integers(0, 2**63 - 1))
def test_adding_tasks_moves_none_of_the_others(first: list[str], more: list[str], seed: int) -> None:
    settings = SplitSettings(split_seed=seed, duplicates=Duplicates.DROP)
    before = arrange(listed(*first), settings).tasks
    after = arrange(listed(*more, *first), settings).tasks
    for split in Split:
        assert {task.id for task in before[split]} <= {task.id for task in after[split]}


@given(QUESTIONS)
def test_every_task_is_in_exactly_one_split(questions: list[str]) -> None:
    tasks = arrange(listed(*questions), SplitSettings()).tasks
    names = [task.inputs["question"] for split in Split for task in tasks[split]]
    assert sorted(map(str, names)) == sorted(questions)
    assert all(task.split is split for split in Split for task in tasks[split])


@given(st.text(), st.integers(0, 2**63 - 1))
def test_a_split_without_a_share_gets_nothing(content: str, seed: int) -> None:
    assert draw(content, Shares(train=1, test=3), seed) in (Split.TRAIN, Split.TEST)
    assert draw(content, Shares(confirm=0.1), seed) is Split.CONFIRM


def test_shares_are_kept_on_the_whole() -> None:
    counts = Counter(draw(str(number), Shares(train=2, selection=1, test=1), 0) for number in range(4000))
    assert abs(counts[Split.TRAIN] - 2000) < 120
    assert abs(counts[Split.SELECTION] - 1000) < 120


def test_another_seed_is_another_draw() -> None:
    draws = [[draw(str(number), Shares(train=1, test=1), seed) for number in range(50)] for seed in (0, 1)]
    assert draws[0] != draws[1]


def test_the_same_task_in_two_splits_is_an_error_that_names_both() -> None:
    rows = [Listed({"q": 1}, "a", Split.TRAIN, where="train.jsonl:1"), Listed({"q": 1}, "b", Split.TEST)]
    with pytest.raises(InputError, match=r"task b in test is the same task as train.jsonl:1 \(task a\) in train"):
        arrange(rows, SplitSettings(duplicates=Duplicates.DROP))


def test_a_duplicate_in_a_split_is_an_error_or_dropped() -> None:
    rows = [Listed({"q": 1}, "a"), Listed({"q": 1}, "b")]
    with pytest.raises(InputError, match="task b is the same task as task a"):
        arrange(rows, SplitSettings())
    tasks = arrange(rows, SplitSettings(duplicates=Duplicates.DROP)).tasks
    assert [task.id for split in Split for task in tasks[split]] == ["a"]


def test_the_same_question_with_two_answers_is_always_an_error() -> None:
    rows = [Listed({"q": 1}, "a", key={"answer": 1}), Listed({"q": 1}, "b", key={"answer": 2})]
    with pytest.raises(InputError, match="with another answer"):
        arrange(rows, SplitSettings(duplicates=Duplicates.DROP))


def test_an_id_belongs_to_one_task() -> None:
    with pytest.raises(InputError, match="the id 'a' is taken"):
        arrange([Listed({"q": 1}, "a", Split.TRAIN), Listed({"q": 2}, "a", Split.TEST)], SplitSettings())


def test_all_problems_are_told_at_once_and_counted() -> None:
    rows = [Listed({"q": number % 10}, str(number)) for number in range(20)]
    with pytest.raises(InputError) as caught:
        arrange(rows, SplitSettings())
    assert str(caught.value).startswith("10 problems in the list of tasks:\n")
    assert str(caught.value).endswith("and 5 more")


def test_a_limit_draws_the_same_sample_in_the_order_listed() -> None:
    questions = [str(number) for number in range(100)]
    settings = SplitSettings(limits=Limits(train=10))
    kept = arrange(listed(*questions, split=Split.TRAIN), settings).tasks[Split.TRAIN]
    turned = arrange(listed(*reversed(questions), split=Split.TRAIN), settings).tasks[Split.TRAIN]
    assert len(kept) == 10
    assert [task.id for task in kept] == [task.id for task in reversed(turned)]
    assert [int(str(task.inputs["question"])) for task in kept] == sorted(int(str(t.inputs["question"])) for t in kept)
    assert max(int(str(task.inputs["question"])) for task in kept) > 10


def test_a_limit_changes_no_content() -> None:
    rows = listed(*"abcdef", split=Split.TRAIN)
    assert arrange(rows, SplitSettings(limits=Limits(train=1))).content == arrange(rows, SplitSettings()).content
