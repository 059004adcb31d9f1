"""The world `mcp` against servers on the official library, and against servers that are rude."""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from whet.core import ConfigError, Session, Split, ToolFault, World, WorldFault
from whet.worlds import load_world

pytestmark = pytest.mark.slow

SERVERS = str(Path(__file__).with_name("mcp_servers.py"))
TASKS = [{"question": "Add four and six with your tools.", "answer": "10"}, {"question": "And 1 and 2?", "answer": "3"}]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "tasks.jsonl").write_text("".join(json.dumps(task) + "\n" for task in TASKS), "utf-8")
    return tmp_path


def load(folder: Path, *arguments: str, **settings: Any) -> World:
    served = (
        {"url": arguments[0]} if arguments[0].startswith("http") else {"command": [sys.executable, SERVERS, *arguments]}
    )
    return load_world("mcp", {"train": "tasks.jsonl", **served, **settings}, base_dir=folder)


@asynccontextmanager
async def opened(world: World) -> AsyncGenerator[Session]:
    session = await world.open(world.tasks(Split.TRAIN)[0], 1)
    try:
        yield session
    finally:
        await session.close()


@asynccontextmanager
async def http_server() -> AsyncGenerator[str]:
    process = await asyncio.create_subprocess_exec(sys.executable, SERVERS, "http", stdout=asyncio.subprocess.PIPE)
    try:
        assert process.stdout is not None
        yield json.loads(await process.stdout.readline())["url"]
    finally:
        process.terminate()
        await process.wait()


async def play(world: World) -> None:
    async with opened(world) as session:
        assert session.brief.text == "Add four and six with your tools."
        assert [tool.name for tool in session.tools] == ["add", "refuse", "environment", "leave_behind"]
        assert (await session.call("add", {"number": 4})).text == "4"
        assert (await session.call("add", {"number": "x"})).fault is ToolFault.INVALID_ARGUMENTS
        assert (await session.call("sub", {})).fault is ToolFault.UNKNOWN_TOOL
        refused = await session.call("refuse", {})
        assert refused.fault is ToolFault.REFUSED
        assert "refuse" in refused.text
        assert (await session.judge("Answer: 10")).hard
    async with opened(world) as session:
        assert not (await session.judge("Answer: 11")).hard


async def test_a_server_over_stdio_is_played(folder: Path) -> None:
    await play(load(folder, "stdio"))


async def test_a_server_over_http_is_played(folder: Path) -> None:
    async with http_server() as url:
        await play(load(folder, url))


async def test_each_session_has_a_server_of_its_own(folder: Path) -> None:
    world = load(folder, "stdio")
    async with opened(world) as one, opened(world) as other:
        assert (await one.call("add", {"number": 5})).text == "5"
        assert (await other.call("add", {"number": 1})).text == "1"


async def test_a_server_sees_of_our_environment_only_what_is_named(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("WHET_TEST_KEY", "secret")
    monkeypatch.setenv("WHET_TEST_OTHER", "secret")
    async with opened(load(folder, "stdio", env=["WHET_TEST_KEY"])) as session:
        seen = set((await session.call("environment", {})).text.split())
    assert "WHET_TEST_KEY" in seen
    assert not seen & {"WHET_TEST_OTHER", "PATH", "HOME", "USER"}


async def test_nothing_of_a_server_is_left_when_its_session_ends(folder: Path) -> None:
    async with opened(load(folder, "stdio")) as session:
        left = int((await session.call("leave_behind", {})).text)
        assert alive(left)
    assert not alive(left)


def alive(number: int) -> bool:
    try:
        stat = Path(f"/proc/{number}/stat").read_text("utf-8")
    except OSError:
        return False
    return stat.rpartition(")")[2].split()[0] != "Z"


async def test_an_agent_can_be_given_some_of_the_tools(folder: Path) -> None:
    async with opened(load(folder, "stdio", tools=["add"])) as session:
        assert [tool.name for tool in session.tools] == ["add"]
        assert (await session.call("refuse", {})).fault is ToolFault.UNKNOWN_TOOL
    with pytest.raises(WorldFault, match=r"has no tool 'ad'\. Did you mean 'add'"):
        async with opened(load(folder, "stdio", tools=["ad"])):
            pass


async def test_a_late_answer_is_taken_for_no_other_and_the_episode_is_lost(folder: Path) -> None:
    async with opened(load(folder, "rude", "slow", call_seconds=0.05)) as session:
        with pytest.raises(WorldFault, match=r"not answered within 0\.05 s; the episode is lost"):
            await session.call("act", {"first": 1})
        for again in (session.call("act", {"second": 2}), session.judge("10")):
            with pytest.raises(WorldFault, match="the episode is lost"):
                await again


async def test_calls_at_the_same_time_each_have_their_own_answer(folder: Path) -> None:
    async with opened(load(folder, "rude", "not at all")) as session:
        answers = await asyncio.gather(*(session.call("act", {"n": number}) for number in range(50)))
        assert [answer.text for answer in answers] == [str({"n": number}) for number in range(50)]


async def test_whatever_a_server_says_beside_the_answer_is_not_the_answer(folder: Path) -> None:
    async with opened(load(folder, "rude", "chatty")) as session:
        assert (await session.call("act", {"n": 1})).text == "{'n': 1}"


@pytest.mark.parametrize(
    ("how", "says"),
    [
        ("dies", "ended with code 3: out of cheese"),
        ("internal error", r"the tool act failed: broken \(-32603\)"),
        ("no object", "answered with no object"),
        ("too long", "a line of its output is too long"),
    ],
)
async def test_a_server_that_breaks_is_a_fault_and_never_a_score(folder: Path, how: str, says: str) -> None:
    async with opened(load(folder, "rude", how, frame_megabytes=1)) as session:
        with pytest.raises(WorldFault, match=says):
            await session.call("act", {})
        with pytest.raises(WorldFault, match="the episode is lost"):
            await session.judge("10")


async def test_arguments_that_the_server_refuses_are_told_to_the_agent(folder: Path) -> None:
    async with opened(load(folder, "rude", "invalid")) as session:
        answer = await session.call("act", {})
        assert (answer.fault, answer.text) == (ToolFault.INVALID_ARGUMENTS, "no such number")


async def test_a_list_of_tools_in_pages_is_read_to_its_end(folder: Path) -> None:
    async with opened(load(folder, "rude", "pages")) as session:
        assert [tool.name for tool in session.tools] == ["act", "more"]


@pytest.mark.parametrize(
    ("how", "settings", "says"),
    [
        ("endless list", {}, "its list of tools has no end"),
        ("twice", {}, "two tools of one name"),
        ("never starts", {"connect_seconds": 0.1}, "initialize was not answered within 0.1 s"),
    ],
)
async def test_a_server_that_cannot_begin_is_a_fault(folder: Path, how: str, settings: Any, says: str) -> None:
    with pytest.raises(WorldFault, match=says):
        async with opened(load(folder, "rude", how, **settings)):
            pass


@pytest.mark.parametrize(
    ("settings", "says"),
    [
        ({}, "give either a command"),
        ({"command": ["x"], "url": "http://x"}, "give either a command"),
        ({"command": ["x"], "env": ["WHET_TEST_NO_SUCH"]}, "world.env: the environment variable WHET_TEST_NO_SUCH"),
        ({"url": "http://x", "token_env": "WHET_TEST_NO_SUCH"}, "WHET_TEST_NO_SUCH is not set"),
    ],
)
def test_what_cannot_be_loaded_is_told(folder: Path, settings: Any, says: str) -> None:
    with pytest.raises(ConfigError, match=says):
        load_world("mcp", {"train": "tasks.jsonl", **settings}, base_dir=folder)


async def test_what_is_not_there_is_a_fault(folder: Path) -> None:
    for settings in ({"command": ["no-such-program"]}, {"url": "http://127.0.0.1:1/mcp"}):
        world = load_world("mcp", {"train": "tasks.jsonl", **settings}, base_dir=folder)
        with pytest.raises(WorldFault, match="cannot be"):
            async with opened(world):
                pass
