"""A front keeps whoever is best at something, and lets go of whoever is beaten everywhere."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from whet.core import ModelRef, Policy, Skill
from whet.training.front import Front, Member

TASKS = ("a", "b", "c")
START = Policy(ModelRef("x", "y"))


def member(name: str, *scores: float) -> Member:
    return Member(START.with_skill(Skill.from_text(name)), dict(zip(TASKS, scores, strict=True)))


def front_of(*members: Member) -> Front:
    front = Front(START)
    front.measured(START, dict.fromkeys(TASKS, 0.0))
    for one in members:
        front.join(one)
    return front


def names(front: Front) -> list[str]:
    return [one.policy.skill.text for one in front.members]


def test_a_candidate_that_is_best_at_one_task_joins_though_another_has_the_higher_mean() -> None:
    front = front_of(member("two", 1, 1, 0))
    assert front.join(member("third", 0, 0, 1))
    assert names(front) == ["two", "third"], "the start is beaten everywhere and has left"


def test_a_candidate_that_is_best_at_nothing_stays_out() -> None:
    front = front_of(member("two", 1, 1, 0))
    assert not front.join(member("same", 1, 1, 0))
    assert not front.join(member("less", 1, 0, 0))


def test_the_two_that_complement_each_other_are_joined_once() -> None:
    front = front_of(member("left", 1, 1, 0), member("right", 0, 0, 1))
    pair = front.complements()
    assert pair is not None
    assert {one.policy.skill.text for one in pair} == {"left", "right"}
    assert front.complements() is None


def test_a_front_of_one_has_nothing_to_join() -> None:
    assert front_of(member("all", 1, 1, 1)).complements() is None


def test_the_start_plays_first_and_each_key_draws_its_own_parent() -> None:
    assert Front(START).pick(b"key") is START
    front = front_of(member("left", 1, 1, 0), member("right", 0, 0, 1))
    drawn = {front.pick(bytes([n])).skill.text for n in range(50)}
    assert drawn == {"left", "right"}
    assert front.pick(b"k").fingerprint == front.pick(b"k").fingerprint


@given(st.lists(st.tuples(*[st.sampled_from((0.0, 0.5, 1.0))] * 3), max_size=12))
def test_no_member_is_ever_beaten_everywhere_by_another(scores: list[tuple[float, float, float]]) -> None:
    front = front_of(*(member(str(number), *row) for number, row in enumerate(scores)))
    for one in front.members:
        for other in front.members:
            worse = any(one.scores[task] < other.scores[task] for task in TASKS)
            assert not worse or any(one.scores[task] > other.scores[task] for task in TASKS)
    best = max((sum(row) / 3 for row in scores), default=0.0)
    assert max(one.mean for one in front.members) == best
