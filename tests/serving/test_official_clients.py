"""The clients of both OpenEnv packages, unchanged, against our server."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

import pytest
from official_peers import PEERS, talking
from served_worlds import SECRET, Workshop, workshop

from whet.serving.worlds import Hub, Place, serving

pytestmark = [pytest.mark.slow, pytest.mark.timeout(300)]


@asynccontextmanager
async def served(place: Place | None = None) -> AsyncGenerator[tuple[str, Workshop, Hub]]:
    author, world = workshop()
    hub = Hub(world)
    async with serving(hub, place or Place()) as running:
        yield running.url, author, hub


@pytest.mark.parametrize("peer", PEERS)
async def test_the_plain_client_plays_an_episode(peer: str) -> None:
    async with served() as (url, author, hub):
        async with talking(peer, "official_client.py", "generic", url) as client:
            begun = (await client.ask(do="reset", task_id="goal-2"))["ok"]
            assert begun["observation"]["brief"] == "Count to 2."
            for total in ("1", "2"):
                told = await client.ask(do="step", type="call_tool", tool_name="add", arguments={})
                assert told["ok"]["observation"]["result"] == total
            assert (await client.ask(do="state"))["ok"]["step_count"] == 2
            assert "broke" in (await client.ask(do="step", tool_name="burn"))["error"]
            assert (await client.ask(do="reset", seed=3, episode_id="mine"))["ok"]["done"] is False
            assert (await client.ask(do="state"))["ok"]["episode_id"] == "mine"
            ended = (await client.ask(do="step", answer="done"))["ok"]
            assert (ended["reward"], ended["done"]) == (0.25, True)
            assert "over" in (await client.ask(do="step", answer="again"))["error"]
            report = (await client.ask(do="validate", url=url))["ok"]
            assert report["passed"], report
        assert author.judged == ["done"]
        assert (author.open_sessions, len(hub)) == (0, 0)


@pytest.mark.parametrize("peer", PEERS)
async def test_the_mcp_client_plays_an_episode(peer: str) -> None:
    async with served() as (url, _, hub):
        async with talking(peer, "official_client.py", "mcp", url) as client:
            begun = (await client.ask(do="reset", task_id="goal-1"))["ok"]
            assert begun["observation"]["metadata"]["brief"] == "Count to 1."
            tools = (await client.ask(do="tools"))["ok"]
            assert [tool["name"] for tool in tools] == ["add", "wait", "burn", "refuse", "odd", "finish"]
            assert (await client.ask(do="call", tool="add", by=1))["ok"] == "1"
            assert (await client.ask(do="call", tool="refuse"))["ok"] == "not today"
            assert "'by' must be" in (await client.ask(do="call", tool="add", by="x"))["error"]
            assert "no tool 'judge'" in (await client.ask(do="call", tool="judge"))["error"]
            assert SECRET not in (await client.ask(do="call", tool="burn"))["error"]
            await client.ask(do="reset", task_id="goal-1")
            assert (await client.ask(do="call", tool="add"))["ok"] == "1"
            assert (await client.ask(do="state"))["ok"]["step_count"] == 1
        assert len(hub) == 0


@pytest.mark.parametrize("peer", PEERS)
async def test_an_address_with_a_secret_is_enough_for_the_clients_and_nothing_works_without(peer: str) -> None:
    async with served(Place(token="s3cret")) as (url, _, _hub):
        assert url.endswith("/s3cret")
        for kind in ("generic", "mcp"):
            async with talking(peer, "official_client.py", kind, url) as client:
                assert (await client.ask(do="reset", task_id="goal-1"))["ok"]["done"] is False
                if kind == "mcp":
                    assert (await client.ask(do="call", tool="add"))["ok"] == "1"
        async with talking(peer, "official_client.py", "generic", url.removesuffix("/s3cret")) as client:
            await client.process.wait()
            assert client.process.returncode != 0


@pytest.mark.parametrize("peer", PEERS)
async def test_tools_work_before_a_reset(peer: str) -> None:
    async with served() as (url, _, _hub), talking(peer, "official_client.py", "mcp", url) as client:
        assert len((await client.ask(do="tools"))["ok"]) == 6
        assert (await client.ask(do="call", tool="add", by=3))["ok"] == "3"
