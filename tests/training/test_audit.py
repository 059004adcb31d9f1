"""An audit finds what was planted, and finds nothing where there is nothing."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from whet.core import (
    Act,
    Brief,
    End,
    Json,
    Solution,
    Split,
    Task,
    ToolFault,
    ToolResult,
    ToolSpec,
    Trajectory,
    Verdict,
    WorldFault,
)
from whet.training.audit import audit_suite, find_twins
from whet.training.probing import Outcome, Probe, audit_verifier, damaged


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
    tried = set(Probe) - {Probe.TWO_DATES, Probe.TAMPER}
    assert {audit.outcomes[probe] for probe in tried} == {Outcome.BROKEN}
    assert "fell over" in audit.note


class OneTool:
    """A world of one task: `put` the number 42, and say nothing. What may be wrong with it is a parameter."""

    name = "tool"
    fingerprint = "tool"

    def __init__(self, *, hidden: str = "", leaky: bool = False, fragile: bool = False, dated: bool = False) -> None:
        self.hidden, self.leaky, self.fragile, self.dated = hidden, leaky, fragile, dated
        self.date = 0.0
        self.task = Task("t", Split.TRAIN, {"n": 1})

    def tasks(self, split: Split) -> list[Task]:
        return [self.task]

    def known_good(self, task: Task) -> Solution:
        return Solution((Act("put", {"number": 42}),))

    def damaged(self, task: Task) -> list[Solution]:
        return [Solution(), Solution((Act("put", {"number": 43}),))]

    def on_date(self, moment: float) -> OneTool:
        other = OneTool(dated=self.dated)
        other.date = moment
        return other

    async def open(self, task: Task, seed: int) -> ToolSession:
        return ToolSession(self)


class ToolSession:
    brief = Brief("put 42")
    tools = (ToolSpec("put", "puts", {"type": "object", "properties": {"number": {"type": "integer"}}}),)

    def __init__(self, world: OneTool) -> None:
        self.world = world
        self.number: Json = None
        self.touched = False

    async def call(self, name: str, arguments: dict[str, Json]) -> ToolResult:
        if name == self.world.hidden:
            return ToolResult("1.0")
        if name != "put":
            return ToolResult(f"there is no tool {name}", ToolFault.UNKNOWN_TOOL)
        if self.world.fragile and arguments.get("number") is None:
            raise WorldFault("put broke")
        self.touched = True
        self.number = arguments.get("number")
        return ToolResult("done")

    async def judge(self, answer: str) -> Verdict:
        right = self.number == 42 or (self.world.leaky and self.touched)
        right = right and not (self.world.dated and self.world.date)
        return Verdict(right, float(right))

    async def close(self) -> None:
        pass


@pytest.mark.parametrize(
    ("world", "offending"),
    [
        (OneTool(), set()),
        (OneTool(hidden="verify"), {Probe.TAMPER}),
        (OneTool(leaky=True), {Probe.DAMAGED, Probe.TAMPER}),
        (OneTool(dated=True), {Probe.TWO_DATES}),
    ],
    ids=["sound", "a hidden name answers", "any call passes", "the date decides"],
)
async def test_each_defect_planted_in_a_world_of_tools_is_found(world: OneTool, offending: set[Probe]) -> None:
    (audit,) = await audit_verifier(world, [world.task])
    assert {probe for probe, outcome in audit.outcomes.items() if outcome is Outcome.OFFENDING} == offending
    assert set(audit.outcomes.values()) <= {Outcome.SOUND, Outcome.OFFENDING}, "every probe was made"
    assert all(probe in audit.note for probe in offending)


async def test_a_tool_that_breaks_on_nonsense_is_broken() -> None:
    world = OneTool(fragile=True)
    (audit,) = await audit_verifier(world, [world.task])
    assert audit.outcomes[Probe.TAMPER] is Outcome.BROKEN
    assert not audit.sound


async def test_where_there_is_nothing_to_try_the_audit_says_so() -> None:
    world = OneVerifier(lambda answer: answer == "42 apples")
    (audit,) = await audit_verifier(world, [world.task])
    assert {probe for probe, outcome in audit.outcomes.items() if outcome is Outcome.ABSENT} == {
        Probe.TWO_DATES,
        Probe.TAMPER,
    }


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
