from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import Any

import pytest

from whet.core import Brief, Speaker, Split, Task, ToolSpec, Verdict
from whet.worlds import AuthoredWorld, Severity, check_world, tool
from whet.worlds.check import tool_problems


class Good:
    """A world without faults."""

    hidden = ("answer",)
    version = "1"

    def tasks(self) -> Iterator[dict[str, Any]]:
        for split, number in itertools.product(("train", "selection", "test"), range(4)):
            yield {
                "id": f"{split}-{number}",
                "split": split,
                "question": f"{split} {number}?",
                "answer": f"yes {number}",
            }

    def brief(self, task: Task) -> str:
        return str(task.inputs["question"])

    def judge(self, key: dict[str, Any], answer: str) -> bool:
        return answer == key["answer"]

    def known_good(self, key: dict[str, Any]) -> str:
        return key["answer"]

    @tool
    def look(self, where: str, how_often: int = 1) -> str:
        """Look at something."""
        return f"nothing at {where}"


async def problems(author: object, **options: Any) -> list[str]:
    report = await check_world(AuthoredWorld("checked", author), **options)
    assert report.sound == (not any(problem.severity is Severity.ERROR for problem in report.problems))
    return [str(problem) for problem in report.problems]


async def test_a_good_world_has_no_problems_and_shows_a_session() -> None:
    report = await check_world(AuthoredWorld("good", Good()), again=lambda: AuthoredWorld("good", Good()))
    assert report.problems == ()
    assert report.sound
    assert report.tasks == {Split.TRAIN: 4, Split.SELECTION: 4, Split.TEST: 4, Split.CONFIRM: 0}
    speakers = [message.speaker for message in report.transcript]
    assert speakers == [Speaker.USER, Speaker.ASSISTANT, Speaker.TOOL, Speaker.ASSISTANT]
    assert report.transcript[2].text == "nothing at a"
    assert report.verdict == Verdict(False, 0.0)


@pytest.mark.parametrize("use", ["grid_ctf", "othello_opening", "othello"])
async def test_the_built_in_games_have_no_problems(project: Any, use: str) -> None:
    report = await check_world(project.load(use), again=lambda: project.load(use))
    assert report.problems == ()


async def test_questions_from_a_file_have_no_problems(project: Any) -> None:
    rows = [{"question": f"What is {n} + 1000?", "answer": n + 1000} for n in range(40)]
    project.rows("all.jsonl", *rows)
    for scorer in ("exact", "normalised", "f1", "numeric"):
        report = await check_world(project.load(path="all.jsonl", scorer=scorer))
        assert report.problems == ()


class EasyWin(Good):
    def judge(self, answer: str) -> bool:
        return "completed" in answer or not answer


class Broken(Good):
    def judge(self, answer: str) -> bool:
        raise KeyError("row")


class Silent(Good):
    def brief(self) -> str:
        return ""


class BadKey(Good):
    def known_good(self) -> str:
        return "no"


class Moody(Good):
    count = 0

    def brief(self) -> str:
        self.count += 1
        return f"Try {self.count}"


class Telling(Good):
    def tasks(self) -> Iterator[dict[str, Any]]:
        return ({**row, "solution": row["answer"]} for row in super().tasks())


class Leaking(Good):
    def tasks(self) -> Iterator[dict[str, Any]]:
        return ({**row, "question": f"Is it {row['answer']}? ({row['id']})"} for row in super().tasks())


class BadSchema(Good):
    def brief(self, task: Task) -> Brief:
        return Brief(str(task.inputs), answer_schema={"type": "whole"})


class Undescribed(Good):
    @tool
    def peek(self) -> str:
        return ""


class OnlyTrain(Good):
    def tasks(self) -> Iterator[dict[str, Any]]:
        return (row for row in super().tasks() if row["split"] == "train")


class Odd(Good):
    @tool
    def look(self) -> str:
        """Look."""
        raise LookupError("dark")


@pytest.mark.parametrize(
    ("author", "says"),
    [
        (EasyWin, "it is passed by doing nothing, with an empty answer"),
        (EasyWin, "with the answer 'I have completed the task.'"),
        (Broken, "judge raised KeyError: 'row'"),
        (Silent, "the brief is empty"),
        (BadKey, "the known good answer does not pass"),
        (Moody, "two sessions with the same seed have different briefs"),
        (Telling, "the answer key is one of the inputs in 9 of 9 tasks"),
        (Leaking, "warning: task train-0: the right answer stands in the brief of 9 of 9 tasks"),
        (BadSchema, "the answer's schema.type must be one of"),
        (Undescribed, "warning: the tool peek has no description"),
        (OnlyTrain, "warning: there are no test tasks"),
        (Odd, "the tool look raised LookupError: dark"),
    ],
)
async def test_a_fault_of_a_world_is_found(author: type, says: str) -> None:
    assert any(says in problem for problem in await problems(author()))


async def test_every_problem_is_told_not_only_the_first() -> None:
    class Many(EasyWin, BadKey, Undescribed):
        pass

    found = await problems(Many())
    assert len([problem for problem in found if "doing nothing" in problem]) == 18
    assert any("no description" in problem for problem in found)


async def test_a_world_that_changes_from_load_to_load_is_found() -> None:
    counter = itertools.count()

    class Drifting(Good):
        def tasks(self) -> Iterator[dict[str, Any]]:
            load = next(counter)
            return ({**row, "id": f"{row['id']}-{load}", "load": load} for row in super().tasks())

    found = await problems(Drifting(), again=lambda: AuthoredWorld("checked", Drifting()))
    assert any("its fingerprint changes" in problem for problem in found)
    assert any("its train tasks change" in problem for problem in found)


class Reusable:
    """A world of another make, whose sessions can be judged again and again."""

    name = "reusable"
    fingerprint = "f"

    def __init__(self, verdict: Any = None) -> None:
        self.brief = Brief("What?")
        self.tools = ()

    def tasks(self, split: Split) -> list[Task]:
        return [Task("one", Split.TRAIN, {"q": 1})] if split in (Split.TRAIN, Split.TEST) else []

    async def open(self, task: Task, seed: int) -> Any:
        return self

    async def judge(self, answer: str) -> Verdict:
        return Verdict(False, 0.0)

    async def close(self) -> None:
        pass


async def test_any_world_can_be_checked_by_the_protocol_alone() -> None:
    world: Any = Reusable()
    found = [str(problem) for problem in (await check_world(world)).problems]
    assert any("a session can be judged twice" in problem for problem in found)
    assert any("it is listed in test and says that it is in train" in problem for problem in found)
    assert any("it is the same task as one" in problem for problem in found)


async def test_a_slow_world_is_told_so() -> None:
    class Ticking:
        time = 0.0

        def now(self) -> float:
            self.time += 3.0
            return self.time

    clock: Any = Ticking()
    found = await problems(Good(), clock=clock)
    assert found == ["warning: a session takes 3000 ms without an agent: training plays thousands of them"]


def test_tools_that_cannot_be_called_are_told() -> None:
    schema = {"type": "object", "properties": {}}
    assert tool_problems([ToolSpec("look", "", schema), ToolSpec("go", "", schema)]) == []
    assert tool_problems([ToolSpec("a", "", schema), ToolSpec("a", "", schema)]) == ["two tools are named a"]
    assert "must be 1 to 64 letters" in tool_problems([ToolSpec("look at", "", schema)])[0]
    assert "schema of type object" in tool_problems([ToolSpec("look", "", {"type": "string"})])[0]
