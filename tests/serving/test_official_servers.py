"""Our world `openenv` against servers made with both OpenEnv packages, and against our own."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from official_peers import PEERS, Talk, talking
from served_worlds import SECRET, workshop

from whet.core import Session, Split, ToolFault, World, WorldFault
from whet.serving.worlds import Hub, Place, serving
from whet.worlds import load_world

pytestmark = [pytest.mark.slow, pytest.mark.timeout(300)]


async def load(url: str, **settings: Any) -> World:
    return await asyncio.to_thread(load_world, "openenv", {"url": url, **settings}, base_dir=Path())


@asynccontextmanager
async def environment(peer: str, kind: str) -> AsyncGenerator[tuple[str, Talk]]:
    async with talking(peer, "official_server.py", kind) as server:
        yield (await server.read())["url"], server


@asynccontextmanager
async def opened(world: World, task: int = 0, split: Split = Split.TRAIN, seed: int = 1) -> AsyncGenerator[Session]:
    session = await world.open(world.tasks(split)[task], seed)
    try:
        yield session
    finally:
        await session.close()


@pytest.mark.parametrize("peer", PEERS)
async def test_a_plain_environment_is_played_and_what_breaks_is_no_score(peer: str) -> None:
    async with environment(peer, "echo") as (url, server):
        world = await load(url, seeds={"train": 5, "selection": 0, "test": 0}, step_seconds=0.3)
        assert [task.id for task in world.tasks(Split.TRAIN)] == [f"seed-{seed}" for seed in range(5)]
        async with opened(world, 3) as session:
            assert session.brief.text == "Say the number 3."
            assert (await session.call("act", {})).fault is ToolFault.INVALID_ARGUMENTS
            assert (await session.call("act", {"message": "2"})).text == "2"
            assert (await session.call("act", {"message": "3"})).ends
            assert (await session.judge("")).hard
        async with opened(world) as session:
            for _ in range(3):
                answer = await session.call("act", {"message": "9"})
            assert answer.ends
            verdict = await session.judge("")
            assert (verdict.hard, verdict.soft) == (False, 0.25)
        for message, says in (("nan", "without a reward"), ("silent", "without a reward"), ("boom", "on fire")):
            async with opened(world) as session:
                with pytest.raises(WorldFault, match=says):
                    await session.call("act", {"message": message})
                with pytest.raises(WorldFault, match="the episode is lost"):
                    await session.judge("")
        async with opened(world) as late, opened(world) as other:
            with pytest.raises(WorldFault, match="the episode is lost"):
                await late.call("act", {"message": "wait"})
            await server.ask(open="gate")
            with pytest.raises(WorldFault, match="the episode is lost"):
                await late.call("act", {"message": "0"})
            assert (await other.call("act", {"message": "0"})).ends


@pytest.mark.parametrize("peer", PEERS)
async def test_sessions_of_one_server_share_nothing(peer: str) -> None:
    async with environment(peer, "echo") as (url, _):
        world = await load(url, seeds={"train": 30, "selection": 0, "test": 0}, sessions=10)

        async def play(task: int) -> float:
            async with opened(world, task) as session:
                await session.call("act", {"message": "no"})
                await session.call("act", {"message": str(task)})
                return (await session.judge("")).soft

        assert await asyncio.gather(*(play(task) for task in range(30))) == [1.0] * 30


@pytest.mark.parametrize("peer", PEERS)
async def test_an_environment_of_tools_is_played(peer: str) -> None:
    async with environment(peer, "tools") as (url, _):
        world = await load(url, seeds={"train": 2, "selection": 0, "test": 0})
        async with opened(world) as session:
            # openenv-core sends nothing of an observation's metadata; then there is what the server says of itself.
            said = {"openenv": "Bring the total to ten.", "openenv-core": "Tools environment"}
            assert session.brief.text == said[peer]
            assert [tool.name for tool in session.tools] == ["add"]
            assert (await session.call("add", {"number": "x"})).fault is ToolFault.INVALID_ARGUMENTS
            first = await session.call("add", {"number": 4})
            assert (first.text, first.fault, first.ends) == ("4", None, False)
            assert (await session.call("add", {"number": 6})).ends
            assert (await session.judge("")).hard
        async with opened(world, 1) as session:
            await session.call("add", {"number": 11})
            verdict = await session.judge("")
            assert (verdict.hard, verdict.soft) == (False, 0.0)


async def test_tasks_are_asked_for_where_the_server_lists_them() -> None:
    async with environment("openenv", "echo") as (url, _):
        world = await load(url)
        assert [len(world.tasks(split)) for split in Split] == [3, 2, 1, 0]
        async with opened(world, 2) as session:
            assert session.brief.text.startswith("Say the number")
        assert world.tasks(Split.SELECTION)[1].inputs == {"task": {"say": 101}}


async def test_our_own_server_is_played_like_the_world_itself() -> None:
    author, inner = workshop()
    hub = Hub(inner)
    async with serving(hub, Place()) as running:
        world = await load(running.url)
        assert world.name == "workshop"
        assert [task.id for task in world.tasks(Split.TRAIN)] == [task.id for task in inner.tasks(Split.TRAIN)]
        async with opened(world, 2) as session:
            assert session.brief.text == "Count to 2."
            assert [tool.name for tool in session.tools] == ["add", "wait", "burn", "refuse", "odd", "finish"]
            assert (await session.call("add", {"by": 2})).text == "2"
            refused = await session.call("refuse", {})
            assert (refused.text, refused.fault) == ("not today", ToolFault.REFUSED)
            assert (await session.call("finish", {})).ends
            verdict = await session.judge("the last words")
        assert (verdict.hard, verdict.soft, verdict.feedback) == (True, 0.25, "counted: as told")
        assert verdict.reference == SECRET
        assert author.judged == ["the last words"]
        async with opened(world) as session:
            with pytest.raises(WorldFault, match="the world broke"):
                await session.call("burn", {})
            with pytest.raises(WorldFault, match="the episode is lost"):
                await session.judge("")
    assert (author.open_sessions, len(hub)) == (0, 0)


async def test_a_token_from_the_environment_opens_our_own_server(monkeypatch: pytest.MonkeyPatch) -> None:
    _, inner = workshop()
    async with serving(Hub(inner), Place(token="s3cret")) as running:
        url = running.url.removesuffix("/s3cret")
        with pytest.raises(Exception, match="answers 403"):
            await load(url)
        monkeypatch.setenv("WHET_TEST_TOKEN", "s3cret")
        async with opened(await load(url, token_env="WHET_TEST_TOKEN")) as session:
            assert session.brief.text == "Count to 0."
