from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from enum import Enum
from typing import Annotated, Any, Literal

import msgspec
import pytest

from whet.core import Brief, InputError, Split, Task, ToolFault, ToolResult, Verdict, World, WorldFault
from whet.worlds import AuthoredWorld, SessionOver, SplitSettings, ToolRefusal, require_tasks, tool
from whet.worlds.splits import Limits


def made(author: object) -> World:
    return AuthoredWorld("made", author)


def first(world: World) -> Task:
    return next(task for split in Split for task in world.tasks(split))


class Sums:
    """Adds two numbers."""

    hidden = ("answer",)

    def tasks(self) -> Iterator[dict[str, Any]]:
        for number in range(10):
            yield {"id": f"sum-{number}", "split": "train", "question": f"{number} + 1?", "answer": number + 1}

    def brief(self, task: Task) -> str:
        return str(task.inputs["question"])

    def judge(self, key: dict[str, Any], answer: str) -> bool:
        return answer == str(key["answer"])

    def known_good(self, key: dict[str, Any]) -> str:
        return str(key["answer"])


class Shop(Sums):
    """A shop with a till."""

    def start(self, rng: random.Random) -> dict[str, Any]:
        return {"stock": {"pen": rng.randrange(100)}, "closed": 0}

    @tool
    async def buy(self, state: dict[str, Any], item: str, count: Annotated[int, msgspec.Meta(ge=1)] = 1) -> str:
        """Buy something.

        Args:
            item: what to buy
            count: how many of it
        """
        if item not in state["stock"]:
            raise ToolRefusal(f"there is no {item}")
        state["stock"][item] -= count
        return f"you have {count} {item}"

    @tool
    def stock(self, state: dict[str, Any]) -> dict[str, int]:
        """What is there."""
        return state["stock"]

    @tool
    def leave(self) -> ToolResult:
        """Go home."""
        return ToolResult("bye", ends=True)

    @tool
    def burn(self) -> None:
        """Break the shop."""
        raise ZeroDivisionError("fire")

    def close(self, state: dict[str, Any]) -> None:
        state["closed"] += 1


async def test_hidden_fields_go_to_the_judge_and_nowhere_else() -> None:
    world = made(Sums())
    task = first(world)
    assert task.inputs == {"question": "0 + 1?"}
    session = await world.open(task, 0)
    assert session.brief == Brief("0 + 1?")
    assert session.tools == ()
    assert await session.judge("1") == Verdict(True, 1.0)


def test_a_hidden_field_that_no_task_has_is_an_error() -> None:
    class Misspelled(Sums):
        hidden = ("anwser",)

    with pytest.raises(InputError, match="no task has the hidden field 'anwser'"):
        made(Misspelled())


async def test_a_session_is_used_once() -> None:
    world = made(Shop())
    session = await world.open(first(world), 0)
    await session.judge("1")
    for again in (lambda: session.judge("1"), lambda: session.call("stock", {})):
        with pytest.raises(SessionOver):
            await again()
    closed = await world.open(first(world), 0)
    await closed.close()
    with pytest.raises(SessionOver):
        await closed.judge("1")


async def test_close_lets_go_once_and_after_a_judge_too() -> None:
    kept: list[dict[str, Any]] = []

    class Keeping(Shop):
        def start(self, rng: random.Random) -> dict[str, Any]:
            kept.append(super().start(rng))
            return kept[-1]

    world = made(Keeping())
    session = await world.open(first(world), 0)
    await session.judge("1")
    assert kept[0]["closed"] == 0
    await session.close()
    await session.close()
    assert kept[0]["closed"] == 1


async def test_sessions_share_nothing_and_the_seed_decides() -> None:
    world = made(Shop())
    task = first(world)
    one, same, other = [await world.open(task, seed) for seed in (1, 1, 2)]
    await one.call("buy", {"item": "pen", "count": 3})
    assert (await same.call("stock", {})).text == (await (await world.open(task, 1)).call("stock", {})).text
    texts = {(await session.call("stock", {})).text for session in (one, same, other)}
    assert len(texts) == 3


async def test_a_tool_is_described_by_its_hints_and_docstring() -> None:
    world = made(Shop())
    session = await world.open(first(world), 0)
    assert [spec.name for spec in session.tools] == ["buy", "stock", "leave", "burn"]
    buy = session.tools[0]
    assert buy.description == "Buy something."
    assert buy.parameters == {
        "type": "object",
        "properties": {
            "item": {"type": "string", "description": "what to buy"},
            "count": {"type": "integer", "minimum": 1, "default": 1, "description": "how many of it"},
        },
        "required": ["item"],
        "additionalProperties": False,
    }


@pytest.mark.parametrize(
    ("name", "arguments", "fault", "says"),
    [
        ("buy", {"item": "pen"}, None, "you have 1 pen"),
        ("buy", {"item": "hat"}, ToolFault.REFUSED, "there is no hat"),
        ("buy", {}, ToolFault.INVALID_ARGUMENTS, "buy was not called: 'item' is missing"),
        ("buy", {"item": "pen", "count": 0}, ToolFault.INVALID_ARGUMENTS, "'count' must be at least 1, not 0"),
        ("buy", {"item": "pen", "count": "2"}, ToolFault.INVALID_ARGUMENTS, "'count' must be an integer"),
        ("buy", {"item": "pen", "state": {}}, ToolFault.INVALID_ARGUMENTS, "'state' is not known"),
        ("by", {}, ToolFault.UNKNOWN_TOOL, "there is no tool 'by'. Did you mean 'buy'?"),
        ("judge", {"answer": "1"}, ToolFault.UNKNOWN_TOOL, "there is no tool 'judge'"),
        ("close", {}, ToolFault.UNKNOWN_TOOL, "there is no tool 'close'"),
        ("leave", {}, None, "bye"),
    ],
)
async def test_a_tool_call_is_answered_or_told_what_is_wrong(
    name: str, arguments: dict[str, Any], fault: ToolFault | None, says: str
) -> None:
    world = made(Shop())
    session = await world.open(first(world), 0)
    answer = await session.call(name, arguments)
    assert answer.fault is fault
    assert says in answer.text
    assert answer.ends == (name == "leave")


async def test_a_tool_that_breaks_is_the_worlds_fault_and_says_where() -> None:
    world = made(Shop())
    session = await world.open(first(world), 0)
    says = r"world made, task sum-0: the tool burn raised ZeroDivisionError: fire \(.*test_world_authoring\.py:\d+\)"
    with pytest.raises(WorldFault, match=says):
        await session.call("burn", {})


class Colour(Enum):
    RED = "red"


class Place(msgspec.Struct):
    x: int
    y: int = 0


async def test_tools_are_given_typed_values() -> None:
    seen: list[Any] = []

    class Typed(Sums):
        @tool
        def paint(self, colour: Colour, at: list[Place], how: Literal["dry", "wet"], note: str | None = None) -> None:
            seen.extend([colour, at, how, note])

    world = made(Typed())
    session = await world.open(first(world), 0)
    answer = await session.call("paint", {"colour": "red", "at": [{"x": 1}], "how": "dry"})
    assert answer == ToolResult("done")
    assert seen == [Colour.RED, [Place(1)], "dry", None]
    assert "$ref" not in msgspec.json.encode(session.tools[0].parameters).decode()


def judging(judge: Callable[..., Any]) -> World:
    kind = type("Judging", (Sums,), {"judge": judge, "version": "1"})
    return made(kind())


@pytest.mark.parametrize(
    ("returned", "verdict"),
    [
        (True, Verdict(True, 1.0)),
        (False, Verdict(False, 0.0)),
        (1, Verdict(True, 1.0)),
        (0.5, Verdict(False, 0.5)),
        (Verdict(True, 0.25, "fine: yes"), Verdict(True, 0.25, "fine: yes")),
    ],
)
async def test_a_judge_returns_what_is_plainest(judge_answer: Any, returned: Any, verdict: Verdict) -> None:
    world = judging(lambda self: returned)
    assert await judge_answer(world, "x", first(world)) == verdict


@pytest.mark.parametrize("returned", [float("nan"), float("inf"), 1.01, -0.1, None, "yes", [1]])
async def test_a_judge_that_returns_no_score_is_the_worlds_fault(judge_answer: Any, returned: Any) -> None:
    world = judging(lambda self: returned)
    with pytest.raises(WorldFault, match="judge raised"):
        await judge_answer(world, "x", first(world))


async def test_a_judge_that_raises_is_the_worlds_fault_even_with_a_refusal(judge_answer: Any) -> None:
    def refuse(self: object) -> bool:
        raise ToolRefusal("no")

    world = judging(refuse)
    with pytest.raises(WorldFault, match="judge raised ToolRefusal"):
        await judge_answer(world, "x", first(world))


async def test_a_pass_mark_makes_a_score_a_pass(judge_answer: Any) -> None:
    class Half(Sums):
        pass_mark = 0.5

        async def judge(self, answer: str) -> float:
            return float(answer)

    world = made(Half())
    assert (await judge_answer(world, "0.5", first(world))).hard
    assert not (await judge_answer(world, "0.4", first(world))).hard


async def test_an_empty_brief_is_the_worlds_fault_and_the_session_is_closed() -> None:
    closed: list[Task] = []

    class Silent(Sums):
        def brief(self) -> str:
            return "  \n"

        def close(self, task: Task) -> None:
            closed.append(task)

    world = made(Silent())
    with pytest.raises(WorldFault, match="the brief is empty"):
        await world.open(first(world), 0)
    assert closed == [first(world)]


@pytest.mark.parametrize(
    ("members", "says"),
    [
        ({"judge": None}, "has no judge()"),
        ({"judge": lambda self, wisdom: True}, "asks for 'wisdom'"),
        ({"known_good": lambda self, state: "x"}, "asks for 'state'"),
        ({"pass_mark": 0}, "pass_mark must be above 0"),
        ({"tasks": lambda self: ["x"]}, "task number 1 is str"),
        ({"tasks": lambda self: [{"split": "dev", "answer": 1}]}, "there is no split 'dev'"),
        ({"tasks": lambda self: [{"question": object(), "answer": 1}]}, "must be JSON values"),
        ({"act": tool(lambda self, thing: None)}, "the parameter 'thing' needs a type hint"),
    ],
)
def test_a_world_that_cannot_be_is_told_when_it_is_loaded(members: dict[str, Any], says: str) -> None:
    kind = type("Wrong", (Sums,), {**members, "version": "1"})
    with pytest.raises(InputError) as caught:
        made(kind())
    assert says in str(caught.value)


def test_tasks_that_raise_are_the_worlds_fault() -> None:
    class Broken(Sums):
        def tasks(self) -> Iterator[dict[str, Any]]:
            yield {"question": "q", "answer": 1}
            raise OSError("gone")

    with pytest.raises(WorldFault, match="world made: tasks raised OSError: gone"):
        made(Broken())


async def test_a_task_of_another_world_is_refused() -> None:
    world = made(Sums())
    for stranger in (Task("x", Split.TRAIN, {}), Task("sum-0", Split.TRAIN, {"question": "other"})):
        with pytest.raises(InputError, match="has no task"):
            await world.open(stranger, 0)


def test_the_fingerprint_follows_tasks_keys_and_version_and_nothing_else() -> None:
    class Named(Sums):
        version = "1"

    class Renamed(Sums):
        version = "2"

    class Other(Named):
        def tasks(self) -> Iterator[dict[str, Any]]:
            for row in super().tasks():
                yield {**row, "answer": 0}

    limited = AuthoredWorld("made", Named(), splits=SplitSettings(limits=Limits(train=3)))
    assert made(Named()).fingerprint == made(Named()).fingerprint == limited.fingerprint
    assert len({made(author).fingerprint for author in (Named(), Renamed(), Other(), Sums())}) == 4


def test_a_split_that_is_needed_and_empty_is_told_with_what_to_do() -> None:
    world = made(Sums())
    assert len(require_tasks(world, Split.TRAIN)) == 10
    with pytest.raises(InputError, match=r"has no test tasks \(10 in train, .*split_ratio"):
        require_tasks(world, Split.TEST)
