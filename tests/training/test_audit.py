"""An audit finds what was planted, and finds nothing where there is nothing."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from whet.core import Brief, End, Json, Split, Task, ToolResult, Trajectory, Verdict, WorldFault
from whet.training.audit import (
    Outcome,
    Probe,
    audit_suite,
    audit_verifier,
    damaged,
    find_twins,
)


class OneVerifier:
    """A world of one task whose verifier is a function, and whose good answer is 42."""

    name = "one"
    fingerprint = "one"

    def __init__(self, verify: Callable[[str], bool]) -> None:
        self.verify = verify
        self.task = Task("t", Split.TRAIN, {"n": 1})

    def tasks(self, split: Split) -> list[Task]:
        return [self.task]

    def known_good(self, task: Task) -> str:
        return "42 apples"

    async def open(self, task: Task, seed: int) -> OneVerifier:
        return self

    brief = Brief("count")
    tools = ()

    async def call(self, name: str, arguments: dict[str, Json]) -> ToolResult:
        raise AssertionError("there are no tools")

    async def judge(self, answer: str) -> Verdict:
        right = self.verify(answer)
        return Verdict(right, float(right))

    async def close(self) -> None:
        pass


def broken(answer: str) -> bool:
    raise WorldFault("the verifier fell over")


class Moody:
    """Passes every other time."""

    def __init__(self) -> None:
        self.times = 0

    def __call__(self, answer: str) -> bool:
        self.times += 1
        return answer == "42 apples" and self.times % 2 == 1


@pytest.mark.parametrize(
    ("verify", "offending"),
    [
        (lambda answer: answer == "42 apples", set()),
        (lambda answer: True, {Probe.DO_NOTHING, Probe.TALK_ONLY, Probe.DAMAGED}),
        (lambda answer: answer != "", {Probe.TALK_ONLY, Probe.DAMAGED}),
        (lambda answer: False, {Probe.KNOWN_GOOD}),
        (lambda answer: answer.endswith("apples"), {Probe.DAMAGED}),
    ],
    ids=["sound", "passes all", "passes any words", "passes none", "reads the end only"],
)
async def test_each_planted_defect_is_found_and_no_other(verify: Callable[[str], bool], offending: set[Probe]) -> None:
    world = OneVerifier(verify)
    (audit,) = await audit_verifier(world, [world.task])
    assert {probe for probe, outcome in audit.outcomes.items() if outcome is Outcome.OFFENDING} == offending
    assert audit.sound == (not offending)
    assert all(probe in audit.note for probe in offending), "the offending case is shown"


async def test_a_verifier_that_does_not_agree_with_itself_is_found() -> None:
    world = OneVerifier(Moody())
    (audit,) = await audit_verifier(world, [world.task])
    assert audit.outcomes[Probe.REPEATED] is Outcome.OFFENDING


async def test_a_verifier_that_always_errs_is_broken_not_strict() -> None:
    world = OneVerifier(broken)
    (audit,) = await audit_verifier(world, [world.task])
    assert set(audit.outcomes.values()) == {Outcome.BROKEN}
    assert "fell over" in audit.note


@pytest.mark.parametrize("good", ["42", "light(kitchen,on)", '{"a": 0.5, "b": 1}', "yes", "0", "a b c"])
def test_a_damaged_answer_is_another_answer(good: str) -> None:
    assert damaged(good) != good
    assert damaged(good).strip()


def played(task: str, hard: bool) -> Trajectory:
    return Trajectory("p", task, Split.SELECTION, 0, (), "", End.ANSWERED, Verdict(hard, float(hard)))


def test_a_suite_says_what_always_passes_what_never_does_and_what_flips() -> None:
    tasks = [Task(name, Split.SELECTION, {"n": name}) for name in "abcd"]
    first = [played(name, hard) for name, hard in zip("abcd", (True, True, False, False), strict=True)]
    second = [played(name, hard) for name, hard in zip("abcd", (True, False, True, False), strict=True)]
    suite = audit_suite(tasks, [], first, second)
    assert (suite.always, suite.never, suite.flips, suite.rate) == (("a",), ("d",), 2, 0.5)


def test_a_suite_says_what_it_can_see_and_how_many_tasks_would_see_five_points() -> None:
    tasks = [Task(str(n), Split.SELECTION, {"n": n}) for n in range(50)]
    first = [played(str(n), n % 2 == 0) for n in range(50)]
    second = [played(str(n), n % 2 == 0 or n % 5 == 0) for n in range(50)]
    suite = audit_suite(tasks, [], first, second)
    assert suite.sees is not None
    assert suite.sees > 0.05
    assert suite.needed_for_five_points > 50


def test_three_tasks_can_show_nothing() -> None:
    tasks = [Task(str(n), Split.SELECTION, {"n": n}) for n in range(3)]
    tries = [played(str(n), False) for n in range(3)]
    assert audit_suite(tasks, [], tries, tries).sees is None


def test_twins_in_two_splits_are_found_whatever_their_case_and_punctuation() -> None:
    one = Task("one", Split.TRAIN, {"q": "Turn on the light!"})
    other = Task("other", Split.TEST, {"q": "turn on  the light"})
    same_split = Task("third", Split.TRAIN, {"q": "Turn on the LIGHT"})
    assert find_twins([one, other, same_split]) == (("one", "other"),)
