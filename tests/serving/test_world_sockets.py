"""The server on real sockets of this machine: who is let in, what is read, and how it ends."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Any

import msgspec
import pytest
from aiohttp import ClientSession, ClientWebSocketResponse, WSMsgType, WSServerHandshakeError
from mcp import Client
from served_worlds import Workshop, workshop

from whet.core import WhetError
from whet.serving.worlds import Hub, Limits, Place, Running, serving
from whet.testing import FakeClock

pytestmark = pytest.mark.slow


class Server:
    def __init__(self, hub: Hub, author: Workshop, running: Running, http: ClientSession) -> None:
        self.hub = hub
        self.author = author
        self.url = running.url
        self.agent_url = running.agent_url
        self.http = http

    @asynccontextmanager
    async def socket(self, path: str = "/ws", **options: Any) -> AsyncGenerator[ClientWebSocketResponse]:
        async with self.http.ws_connect(self.url + path, **options) as socket:
            yield socket


@asynccontextmanager
async def served(limits: Limits | None = None, clock: Any = None) -> AsyncGenerator[Server]:
    author, world = workshop()
    hub = Hub(world, limits, clock)
    async with serving(hub, Place()) as running, ClientSession() as http:
        yield Server(hub, author, running, http)


async def ask(socket: ClientWebSocketResponse, kind: str, **data: Any) -> Any:
    await socket.send_json({"type": kind, "data": data} if data or kind == "reset" else {"type": kind})
    return await told(socket)


async def told(socket: ClientWebSocketResponse) -> Any:
    message = await socket.receive(timeout=10)
    assert message.type is WSMsgType.TEXT, message
    return msgspec.json.decode(message.data)


async def test_many_sessions_at_once_share_nothing() -> None:
    async with served() as server:

        async def play(goal: int) -> list[str]:
            async with server.socket() as socket:
                await ask(socket, "reset", task_id=f"goal-{goal % 6}")
                seen = [await ask(socket, "step", tool_name="add", arguments={"by": goal}) for _ in range(3)]
                return [answer["data"]["observation"]["result"] for answer in seen]

        totals = await asyncio.gather(*(play(goal) for goal in range(40)))
        assert totals == [[str(goal * times) for times in (1, 2, 3)] for goal in range(40)]


async def test_frames_sent_without_waiting_are_answered_in_their_order() -> None:
    async with served() as server, server.socket() as socket:
        await ask(socket, "reset")
        for number in range(200):
            await socket.send_json({"type": "step", "data": {"tool_name": "add", "arguments": {"by": number}}})
        totals = [int((await told(socket))["data"]["observation"]["result"]) for _ in range(200)]
        assert totals == [number * (number + 1) // 2 for number in range(200)]


async def test_a_frame_that_is_too_long_ends_its_own_connection_only() -> None:
    async with served(Limits(frame_bytes=10_000)) as server, server.socket() as good, server.socket() as bad:
        await ask(good, "reset")
        await ask(bad, "reset")
        await bad.send_str("x" * 20_000)
        assert (await bad.receive(timeout=10)).data == 1009
        assert (await ask(good, "step", tool_name="add"))["type"] == "observation"
        async with server.http.post(server.url + "/step", data=b"x" * 20_000) as reply:
            assert reply.status == 413


async def test_who_comes_when_the_server_is_full_is_told_so() -> None:
    async with served(Limits(sessions=1)) as server, server.socket() as first:
        await ask(first, "reset")
        async with server.socket() as second:
            assert (await told(second))["data"]["code"] == "CAPACITY_REACHED"
            assert (await second.receive(timeout=10)).type is WSMsgType.CLOSE
        await first.close()
        async with asyncio.timeout(10):
            while len(server.hub):
                await asyncio.sleep(0)
        async with server.socket() as third:
            assert (await ask(third, "reset"))["type"] == "observation"


async def test_an_idle_connection_is_closed_and_its_place_is_free() -> None:
    clock = FakeClock()
    async with served(Limits(idle_seconds=100), clock) as server, server.socket() as socket:
        await ask(socket, "reset")
        for _ in range(6):
            await clock.advance(25)
        assert (await socket.receive(timeout=10)).type is WSMsgType.CLOSE
        assert (len(server.hub), server.author.open_sessions) == (0, 0)


async def test_a_client_that_leaves_in_the_middle_of_a_call_leaves_nothing_behind() -> None:
    async with served() as server:
        async with server.socket() as socket:
            await ask(socket, "reset")
            await socket.send_json({"type": "step", "data": {"tool_name": "wait", "arguments": {"name": "x"}}})
        server.author.gate.set()
        async with asyncio.timeout(10):
            while server.author.open_sessions:
                await asyncio.sleep(0)
        assert len(server.hub) == 0


async def test_pings_are_answered_while_the_world_is_at_work() -> None:
    async with served() as server, server.socket(autoping=False) as socket:
        await ask(socket, "reset")
        await socket.send_json({"type": "step", "data": {"tool_name": "wait", "arguments": {"name": "x"}}})
        await socket.ping(b"there?")
        assert (await socket.receive(timeout=10)).type is WSMsgType.PONG
        server.author.gate.set()
        assert (await told(socket))["data"]["observation"]["result"] == "x"


async def test_the_server_ends_at_once_though_a_world_never_answers() -> None:
    author, world = workshop()
    async with ClientSession() as http, asyncio.timeout(20):
        async with serving(Hub(world), Place()) as running:
            socket = await http.ws_connect(running.url + "/ws")
            await ask(socket, "reset")
            await socket.send_json({"type": "step", "data": {"tool_name": "wait", "arguments": {"name": "x"}}})
            while not author.open_sessions:
                await asyncio.sleep(0)
        assert author.open_sessions == 0


async def test_one_session_has_one_socket() -> None:
    async with served() as server:
        call = {"jsonrpc": "2.0", "id": 1, "method": "openenv/session/create"}
        async with server.http.post(server.url + "/mcp", json=call) as reply:
            name = (await reply.json())["result"]["session_id"]
        async with server.socket(f"/ws?session_id={name}") as first:
            await ask(first, "reset")
            for other in (name, "no-such-session"):
                async with server.socket(f"/ws?session_id={other}") as second:
                    assert (await told(second))["data"]["code"] == "SESSION_ERROR"
        assert len(server.hub) == 1


async def test_mcp_over_a_socket() -> None:
    async with served() as server, server.socket("/mcp") as socket:
        for number, total in enumerate(("1", "2")):
            params = {"name": "add", "arguments": {}}
            await socket.send_json({"jsonrpc": "2.0", "id": number, "method": "tools/call", "params": params})
            answer = await told(socket)
            assert (answer["id"], answer["result"]["data"]) == (number, total)
        await socket.send_str("[]")
        assert (await told(socket))["error"]["code"] == -32600


@pytest.mark.parametrize(
    "headers",
    [
        {"Origin": "http://evil.example"},
        {"Host": "evil.example"},
        {"Host": "evil.example:80", "Origin": "http://evil.example:80"},
    ],
)
async def test_pages_in_a_browser_cannot_reach_it(headers: dict[str, str]) -> None:
    async with served() as server:
        async with server.http.get(server.url + "/health", headers=headers) as reply:
            assert reply.status == 403
        with pytest.raises(WSServerHandshakeError, match="403"):
            async with server.socket(headers=headers):
                pass
        async with server.http.post(f"{server.agent_url}/x/mcp", headers=headers) as reply:
            assert reply.status == 404


async def test_a_token_is_asked_for_whatever_stands_in_the_header() -> None:
    _, world = workshop()
    async with serving(Hub(world), Place(token="s3cret")) as running, ClientSession() as http:
        base = running.url.removesuffix("/s3cret")
        for sent, status in (("Bearer s3cret", 200), ("Bearer s3cre", 403), ("Bearer \udcff", 403), ("", 403)):
            async with http.get(f"{base}/health", headers={"Authorization": sent} if sent else {}) as reply:
                assert reply.status == status


async def test_a_port_that_is_taken_is_told() -> None:
    async with served() as server:
        port = int(server.url.rpartition(":")[2])
        _, world = workshop()
        with pytest.raises(WhetError, match=f"port {port} of 127.0.0.1 cannot be listened on"):
            async with serving(Hub(world), Place(port=port)):
                pass


async def test_the_agents_listener_has_tools_and_nothing_else() -> None:
    async with served() as server, server.socket() as socket:
        await ask(socket, "reset")
        for path in ("/reset", "/step", "/state", "/ws", "/mcp", "/metadata", "/health", "/workshop/tasks", "/"):
            for method in ("GET", "POST"):
                async with server.http.request(method, server.agent_url + path, json={}) as reply:
                    assert reply.status == 404, path
        with pytest.raises(WSServerHandshakeError):
            async with server.http.ws_connect(server.agent_url + "/ws"):
                pass
        url = (await ask(socket, "reset"))["data"]["metadata"]["agent_url"]
        async with server.http.get(url) as reply:
            assert reply.status == 405


async def test_an_agents_own_mcp_client_plays_with_nothing_but_its_address() -> None:
    async with served() as server, server.socket() as trainer:
        begun = (await ask(trainer, "reset", task_id="goal-2"))["data"]
        async with Client(begun["metadata"]["agent_url"]) as agent:
            assert agent.instructions == "Count to 2."
            tools = (await agent.list_tools()).tools
            assert [tool.name for tool in tools] == ["add", "wait", "burn", "refuse", "odd", "finish"]
            for total in ("1", "2"):
                answer = await agent.call_tool("add", {})
                assert (answer.is_error, answer.content[0].text) == (False, total)
            assert (await agent.call_tool("judge", {})).is_error
        ended = (await ask(trainer, "step", answer="done"))["data"]
        assert ended["metadata"]["verdict"]["hard"] is True
