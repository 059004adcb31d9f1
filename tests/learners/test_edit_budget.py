"""The edit budget follows the schedules of the specification."""

from __future__ import annotations

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from whet.learners.skill import Schedule, SkillSettings, edit_budget


def budgets(schedule: Schedule, most: int, least: int, total: int) -> list[int | None]:
    settings = SkillSettings(schedule=schedule, learning_rate=most, min_learning_rate=least)
    return [edit_budget(settings, step, total) for step in range(1, total + 1)]


@pytest.mark.parametrize(
    ("schedule", "most", "least", "expected"),
    [
        (Schedule.CONSTANT, 4, 2, [4, 4, 4, 4]),
        (Schedule.CONSTANT, 1, 2, [1, 1]),
        (Schedule.CONSTANT, 0, 2, [0, 0]),
        (Schedule.LINEAR, 8, 2, [7, 6, 5, 4, 3, 2]),
        # 3.75, 3.5, 3.25, 3, 2.75, 2.5, 2.25, 2: halves go to the even number.
        (Schedule.LINEAR, 4, 2, [4, 4, 3, 3, 3, 2, 2, 2]),
        (Schedule.LINEAR, 4, 2, [4]),
        (Schedule.LINEAR, 0, 0, [0, 0, 0]),
        # 3.707, 3, 2.293, 2
        (Schedule.COSINE, 4, 2, [4, 3, 2, 2]),
        # 7.121, 5, 2.879, 2
        (Schedule.COSINE, 8, 2, [7, 5, 3, 2]),
        (Schedule.COSINE, 4, 2, [4]),
        # Never below the least, and a least above the most is the most.
        (Schedule.COSINE, 4, 4, [4, 4, 4]),
        (Schedule.COSINE, 2, 5, [2, 2, 2]),
        (Schedule.NONE, 4, 2, [None, None, None]),
        (Schedule.NONE, 4, 2, [None]),
    ],
)
def test_budgets_are_those_of_the_formulas(
    schedule: Schedule, most: int, least: int, expected: list[int | None]
) -> None:
    assert budgets(schedule, most, least, len(expected)) == expected


@given(
    schedule=st.sampled_from([Schedule.LINEAR, Schedule.COSINE]),
    most=st.integers(0, 50),
    least=st.integers(0, 50),
    total=st.integers(2, 60),
)
def test_a_schedule_comes_down_and_ends_at_the_least(schedule: Schedule, most: int, least: int, total: int) -> None:
    found = budgets(schedule, most, least, total)
    low = min(most, least)
    assert all(budget is not None and low <= budget <= most for budget in found)
    assert found == sorted(found, reverse=True)  # type: ignore[type-var]
    assert found[-1] == low


@pytest.mark.parametrize("key", ["minibatch_size", "merge_size", "learning_rate", "min_learning_rate"])
def test_numbers_that_cannot_be_are_refused(key: str) -> None:
    with pytest.raises(msgspec.ValidationError, match=key):
        msgspec.convert({key: -1}, SkillSettings)
