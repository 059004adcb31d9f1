"""Episodes: what is said, what ends them, and what is kept; in both ways of calling tools."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import msgspec
import pytest

from whet.core import (
    Brief,
    End,
    Harness,
    ImagePart,
    Json,
    ModelRef,
    ModelReply,
    ModelRequest,
    Policy,
    Priority,
    Purpose,
    Skill,
    Speaker,
    Split,
    Task,
    TextPart,
    ToolCall,
    ToolFault,
    ToolMode,
    ToolResult,
    ToolSpec,
    Trajectory,
    Usage,
    Verdict,
    WorldFault,
)
from whet.rollout import TRIES, Engine, render
from whet.store import RunReader, RunStore, open_run
from whet.testing import FakeClock, settle

TOOLS = (
    ToolSpec("add", "Adds to the sum.", {"type": "object", "properties": {"number": {"type": "integer"}}}),
    ToolSpec("stop", "Ends the game.", {"type": "object", "properties": {}}),
)
REF = ModelRef("scripted", "agent")
BOTH = pytest.mark.parametrize("mode", list(ToolMode))


class SumWorld:
    """The agent adds numbers with a tool and then says the sum."""

    name = "sums"
    fingerprint = "sums-1"

    def __init__(self, tools: Sequence[ToolSpec] = TOOLS, images: tuple[ImagePart, ...] = ()) -> None:
        self.offered = tuple(tools)
        self.images = images
        self.sessions: list[SumSession] = []
        self.verdicts: list[Verdict | Exception] = []
        """What the next judgements come to; else the sum decides."""
        self.hang: asyncio.Event | None = None

    def tasks(self, split: Split) -> list[Task]:
        return [Task("t1", split, {"text": "Add 2 and 3."}, "easy")]

    async def open(self, task: Task, seed: int) -> SumSession:
        self.sessions.append(SumSession(self, task, seed))
        return self.sessions[-1]


class SumSession:
    def __init__(self, world: SumWorld, task: Task, seed: int) -> None:
        self.world, self.seed = world, seed
        self.brief = Brief(str(task.inputs["text"]), world.images)
        self.tools = world.offered
        self.sum = self.closed = 0

    async def call(self, name: str, arguments: dict[str, Json]) -> ToolResult:
        if self.world.hang is not None:
            await self.world.hang.wait()
        if name == "stop":
            return ToolResult("stopped", ends=True)
        number = arguments.get("number")
        if not isinstance(number, int):
            return ToolResult("number is missing", ToolFault.INVALID_ARGUMENTS)
        if number < 0:
            return ToolResult("nothing below 0", ToolFault.REFUSED)
        self.sum += number
        return ToolResult(f"the sum is {self.sum}")

    async def judge(self, answer: str) -> Verdict:
        if self.world.verdicts:
            verdict = self.world.verdicts.pop(0)
            if isinstance(verdict, Exception):
                raise verdict
            return verdict
        right = self.sum == 5 and answer == "5"
        return Verdict(right, float(right))

    async def close(self) -> None:
        self.closed += 1


Call = tuple[str, str]


class Agent:
    """Says its turns one after another: a text, or a text with calls (name, arguments as JSON text)."""

    ref = REF

    def __init__(self, mode: ToolMode, *turns: str | tuple[str, list[Call]]) -> None:
        self.mode = mode
        self.turns = list(turns)
        self.asked: list[ModelRequest] = []

    async def complete(
        self, request: ModelRequest, *, purpose: Purpose, salt: bytes = b"", priority: Priority = Priority.CRITICAL
    ) -> ModelReply:
        self.asked.append(request)
        turn = self.turns[sum(message.speaker is Speaker.ASSISTANT for message in request.messages) % len(self.turns)]
        text, calls = (turn, []) if isinstance(turn, str) else turn
        usage = Usage(100, 10)
        if self.mode is ToolMode.NATIVE:
            return ModelReply(text, tuple(ToolCall(f"c{n}", *call) for n, call in enumerate(calls)), usage=usage)
        blocks = [f'<tool_call>\n{{"name": {json.dumps(n)}, "arguments": {a}}}\n</tool_call>' for n, a in calls]
        return ModelReply("\n".join([text, *blocks]), usage=usage)


class Table:
    """An engine over a world, an agent and a store."""

    def __init__(self, folder: Path, agent: Agent, world: SumWorld | None = None, **harness: Any) -> None:
        self.clock = FakeClock()
        self.store: RunStore = open_run(folder / "run.db", self.clock)
        self.world = world or SumWorld()
        self.agent = agent
        self.engine = self.another_engine()
        self.policy = Policy(REF, skill=Skill.from_text("Be exact."), harness=Harness(tool_mode=agent.mode, **harness))
        self.task = self.world.tasks(Split.TRAIN)[0]

    def another_engine(self) -> Engine:
        return Engine(self.world, self.agent, self.store, self.clock, seed=1, max_episodes=4)

    async def play(self, sample: int = 0) -> Trajectory:
        played = await self.engine.play(self.policy, self.task, sample=sample)
        assert all(session.closed for session in self.world.sessions)
        return played

    async def failures(self) -> list[str]:
        with RunReader(self.store.path) as reader:
            return [failure.message for failure in reader.failures()]


def tool_texts(played: Trajectory) -> list[str]:
    """What the tools said, without what differs between the two ways."""
    tools = [m for m in played.messages[1:] if m.speaker in (Speaker.TOOL, Speaker.USER)]
    return [m.text.removeprefix("<tool_result>\n").removesuffix("\n</tool_result>") for m in tools]


def told(played: Trajectory) -> tuple[Any, ...]:
    """What must be the same in both ways."""
    return played.end, played.verdict, played.answer, played.usage, played.turns, played.tool_faults, tool_texts(played)


GAMES: dict[str, tuple[list[str | tuple[str, list[Call]]], dict[str, int], End, bool, int, list[str]]] = {
    "several calls in one message": (
        [("", [("add", '{"number": 2}'), ("add", '{"number": 3}')]), "5"],
        {},
        End.ANSWERED,
        True,
        0,
        ["the sum is 2", "the sum is 5"],
    ),
    "an unknown tool": (
        [("", [("multiply", "{}")]), ("", [("add", '{"number": 5}')]), "5"],
        {},
        End.ANSWERED,
        True,
        1,
        ["There is no tool multiply. The tools are: add, stop.", "the sum is 5"],
    ),
    "arguments of the wrong kind": (
        [("", [("add", "[1]"), ("add", '{"numbr": 1}'), ("add", '{"number": 5}')]), "5"],
        {},
        End.ANSWERED,
        True,
        2,
        [
            "The arguments of add are not a JSON object: Expected `object`, got `array`.",
            "number is missing",
            "the sum is 5",
        ],
    ),
    "a refusal is an answer and no fault": (
        [("", [("add", '{"number": -1}')]), "0"],
        {},
        End.ANSWERED,
        False,
        0,
        ["nothing below 0"],
    ),
    "the world ends it at once": (
        [("", [("add", '{"number": 5}'), ("stop", "{}"), ("add", '{"number": 1}')]), "never said"],
        {},
        End.WORLD_ENDED,
        False,
        0,
        ["the sum is 5", "stopped"],
    ),
    "out of turns": (
        [("", [("add", '{"number": 1}')])],
        {"max_turns": 3},
        End.TURN_LIMIT,
        False,
        0,
        ["the sum is 1", "the sum is 2", "the sum is 3"],
    ),
    "out of tokens": (
        [("", [("add", '{"number": 1}')])],
        {"max_episode_tokens": 220},
        End.TOKEN_LIMIT,
        False,
        0,
        ["the sum is 1", "the sum is 2"],
    ),
}


@pytest.mark.parametrize("game", GAMES)
async def test_a_game_goes_the_same_way_with_native_and_with_written_calls(tmp_path: Path, game: str) -> None:
    turns, harness, end, right, faults, said = GAMES[game]
    both: list[tuple[Any, ...]] = []
    for mode in ToolMode:
        table = Table(tmp_path / mode, Agent(mode, *turns), **harness)
        played = await table.play()
        assert (played.end, played.hard, played.tool_faults) == (end, float(right), faults)
        assert tool_texts(played) == said
        assert played.usage == Usage(100 * played.turns, 10 * played.turns)
        both.append(told(played))
        await table.store.aclose()
    if end is End.ANSWERED:
        assert both[0] == both[1]


@pytest.mark.parametrize(
    ("written", "told"),
    [
        ("<tool_call>add 5</tool_call>", "must be one JSON object"),
        ('<tool_call>{"arguments": {}}</tool_call>', "must be one JSON object"),
        ('<tool_call>{"name": 5}</tool_call>', "must be one JSON object"),
        ('<tool_call>{"name": "add", "arguments": "5"}</tool_call>', "arguments of add are not a JSON object"),
        ('<tool_call>{"name": "add", "arguments": ' + "[" * 50_000, "must be one JSON object"),
        ('<tool_call>{"name": "add", "arguments": ' + '{"a":' * 50_000 + "1" + "}" * 50_001, "not a JSON object"),
    ],
    ids=["prose", "no name", "name is a number", "arguments are a text", "cut off", "deep"],
)
async def test_a_call_written_wrongly_is_told_to_the_agent(tmp_path: Path, written: str, told: str) -> None:
    table = Table(tmp_path, Agent(ToolMode.TEXT, written, "5"))
    played = await table.play()
    assert (played.turns, played.tool_faults) == (2, 1)
    (answer,) = tool_texts(played)
    assert told in answer or (len(written) > 1000 and "JSON object" in answer)
    await table.store.aclose()


@pytest.mark.parametrize(
    "arguments", ["{", "nonsense", '{"number": ', "[" * 50_000, '{"a":' * 50_000, '{"a": "\ud800"}']
)
async def test_arguments_that_are_no_json_are_told_to_the_agent(tmp_path: Path, arguments: str) -> None:
    table = Table(tmp_path, Agent(ToolMode.NATIVE, ("", [("add", arguments)]), "5"))
    episode = asyncio.create_task(table.engine.play(table.policy, table.task))
    await settle(100)
    assert episode.done()
    played = await episode
    assert played.tool_faults == 1
    assert "not a JSON object" in tool_texts(played)[0]


async def test_no_arguments_are_empty_arguments(tmp_path: Path) -> None:
    table = Table(tmp_path, Agent(ToolMode.NATIVE, ("", [("stop", "")])))
    assert (await table.play()).end is End.WORLD_ENDED
    table_without = Table(tmp_path / "text", Agent(ToolMode.TEXT, '<tool_call>{"name": "stop"}'))
    assert (await table_without.play()).end is End.WORLD_ENDED
    await table.store.aclose()
    await table_without.store.aclose()


@BOTH
async def test_a_world_without_tools_takes_the_first_answer(tmp_path: Path, mode: ToolMode) -> None:
    table = Table(tmp_path, Agent(mode, ("5", [("add", "{}")])), SumWorld(tools=()))
    played = await table.play()
    assert (played.end, played.turns) == (End.ANSWERED, 1)
    assert table.agent.asked[0].tools == ()
    await table.store.aclose()


async def test_a_world_that_breaks_is_tried_again_and_never_scored(tmp_path: Path) -> None:
    table = Table(tmp_path, Agent(ToolMode.NATIVE, ("", [("add", '{"number": 5}')]), "5"))
    table.world.verdicts = [WorldFault("the database broke"), Verdict(False, 0.0, "no judge", scored=False)]
    played = await table.play()
    assert played.hard == 1.0
    assert len(table.world.sessions) == 3
    assert len({session.seed for session in table.world.sessions}) == 1
    assert await table.failures() == ["task t1 could not be judged: no judge", "the database broke"]
    await table.store.aclose()


@pytest.mark.parametrize("verdict", [WorldFault("it broke", hint="mend it"), Verdict(False, 0.0, "why", scored=False)])
async def test_a_world_that_keeps_breaking_stops_the_run_without_a_verdict(
    tmp_path: Path, verdict: Verdict | WorldFault
) -> None:
    table = Table(tmp_path, Agent(ToolMode.NATIVE, "5"))
    table.world.verdicts = [verdict] * (TRIES + 1)
    with pytest.raises(WorldFault, match=f"sums broke {TRIES} times at task t1"):
        await table.play()
    assert len(await table.failures()) == TRIES
    await table.clock.advance(1.0)
    with RunReader(table.store.path) as reader:
        assert list(reader.rollouts()) == []
    assert [session.closed for session in table.world.sessions] == [1] * TRIES
    # Once it works again, the same rollout succeeds.
    table.world.verdicts = []
    assert (await table.play()).verdict is not None
    await table.store.aclose()


async def test_the_same_rollout_is_played_once(tmp_path: Path) -> None:
    table = Table(tmp_path, Agent(ToolMode.NATIVE, "5"))
    first, shared = await asyncio.gather(table.play(), table.play())
    again = await table.play()
    assert (first == shared == again, len(table.world.sessions)) == (True, 1)
    await table.clock.advance(1.0)
    table.engine = table.another_engine()
    assert await table.play() == first
    assert len(table.world.sessions) == 1
    await table.play(sample=1)
    assert len(table.world.sessions) == 2
    assert table.world.sessions[0].seed != table.world.sessions[1].seed
    await table.store.aclose()


async def test_two_policies_meet_the_same_chance(tmp_path: Path) -> None:
    table = Table(tmp_path, Agent(ToolMode.NATIVE, "5"))
    await table.play()
    table.policy = table.policy.with_skill(Skill.from_text("Be quick."))
    await table.play()
    assert len({session.seed for session in table.world.sessions}) == 1
    assert len({request.seed for request in table.agent.asked}) == 2
    await table.store.aclose()


async def test_a_session_is_closed_when_its_episode_is_cancelled(tmp_path: Path) -> None:
    table = Table(tmp_path, Agent(ToolMode.NATIVE, ("", [("add", "{}")])))
    table.world.hang = asyncio.Event()
    playing = asyncio.create_task(table.engine.play(table.policy, table.task))
    await settle()
    assert [session.closed for session in table.world.sessions] == [0]
    playing.cancel()
    await settle()
    assert playing.cancelled()
    assert [session.closed for session in table.world.sessions] == [1]
    table.world.hang = None
    table.agent.turns = ["5"]
    await table.play()
    await table.store.aclose()


async def test_a_session_is_closed_when_the_model_fails(tmp_path: Path) -> None:
    class Broken(Agent):
        async def complete(self, *args: Any, **kwargs: Any) -> ModelReply:
            raise RuntimeError("broken")

    table = Table(tmp_path, Broken(ToolMode.NATIVE))
    with pytest.raises(RuntimeError):
        await table.play()
    assert [session.closed for session in table.world.sessions] == [1]
    await table.store.aclose()


async def test_no_more_episodes_are_under_way_than_may_be(tmp_path: Path) -> None:
    table = Table(tmp_path, Agent(ToolMode.NATIVE, ("", [("stop", "{}")])))
    table.world.hang = asyncio.Event()
    playing = [asyncio.create_task(table.engine.play(table.policy, table.task, sample=n)) for n in range(9)]
    await settle()
    assert len(table.world.sessions) == 4
    table.world.hang.set()
    await asyncio.gather(*playing)
    assert table.engine.finished == 9
    await table.store.aclose()


async def test_images_are_shown_and_not_stored(tmp_path: Path) -> None:
    image = ImagePart("image/png", b"\x89PNG and a lot of bytes")
    table = Table(tmp_path, Agent(ToolMode.NATIVE, "5"), SumWorld(images=(image,)))
    played = await table.play()
    assert table.agent.asked[0].messages[-1].content == (TextPart("Add 2 and 3."), image)
    assert played.messages[0].content == (TextPart("Add 2 and 3."), ImagePart("image/png", b""))
    await table.store.aclose()
    assert b"a lot of bytes" not in (tmp_path / "run.db").read_bytes()


def messages_of(policy: Policy, brief: Brief, tools: Sequence[ToolSpec]) -> bytes:
    rendered = render(policy, brief, tools)
    return msgspec.msgpack.encode((rendered.head, rendered.opening, rendered.tools))


@BOTH
async def test_what_the_agent_is_told_comes_from_the_renderer_alone(tmp_path: Path, mode: ToolMode) -> None:
    table = Table(tmp_path, Agent(mode, "5"))
    await table.play()
    (request,) = table.agent.asked
    rendered = render(table.policy, Brief("Add 2 and 3."), TOOLS)
    assert request.messages == (*rendered.head, *rendered.opening)
    assert request.tools == rendered.tools
    assert messages_of(table.policy, Brief("Add 2 and 3."), TOOLS) == messages_of(
        msgspec.structs.replace(table.policy), Brief("Add 2 and 3."), list(TOOLS)
    )
    await table.store.aclose()


@pytest.mark.parametrize(
    ("skill", "head"),
    [
        ("", ()),
        ("Be exact.\n", ("Be exact.",)),
        ("---\nname: exact\ndescription: d\n---\n\nBe exact.\n", ("Be exact.",)),
        ("---\nname: exact\n---\n", ()),
        ("Not front matter\n---\nname: x\n---\n", ("Not front matter\n---\nname: x\n---",)),
    ],
)
def test_front_matter_is_for_catalogues_and_not_for_agents(skill: str, head: tuple[str, ...]) -> None:
    policy = Policy(REF, skill=Skill.from_text(skill))
    assert tuple(message.text for message in render(policy, Brief("b"), ()).head) == head


def test_written_tools_stand_in_the_head_and_native_ones_do_not() -> None:
    written = render(Policy(REF, harness=Harness(tool_mode=ToolMode.TEXT)), Brief("b"), TOOLS)
    assert written.tools == ()
    assert all(f'"name":"{tool.name}"' in written.head[0].text for tool in TOOLS)
    native = render(Policy(REF), Brief("b"), TOOLS)
    assert (native.tools, native.head) == (TOOLS, ())
