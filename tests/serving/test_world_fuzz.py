"""A hundred thousand malformed messages: each is answered clearly, and a session beside them is never disturbed."""

from __future__ import annotations

import asyncio
import json
import random
from collections.abc import Callable
from typing import Any

import msgspec
import pytest
from aiohttp import ClientSession, WSMsgType
from served_worlds import SECRET, Table, workshop

from whet.serving.worlds import Hub, Limits, Place, Seat, serving
from whet.serving.worlds.control import answer_frame, answer_request
from whet.serving.worlds.rpc import agent_call, control_call
from whet.serving.worlds.wire import Code, Reset

pytestmark = [pytest.mark.slow, pytest.mark.timeout(180)]

FRAMES = 60_000
CALLS = 100_000
REQUESTS = 20_000
OVER_A_SOCKET = 10_000
STEADY = 500
"""After so many messages, the session beside them is used."""

TYPES = ("reset", "step", "state", "mcp", "close ", "judge", "", "STEP", "__init__", "\x00", "é")
METHODS = ("tools/list", "tools/call", "initialize", "openenv/session/create", "openenv/session/close", "ping", "judge")
NAMES = ("add", "finish", "refuse", "odd", "burn", "judge", "_judge", "", "add ", "\ufeffadd", "__class__", "a" * 5000)
PATHS = (
    "/reset",
    "/step",
    "/mcp",
    "/state",
    "/schema",
    "/workshop/tasks",
    "/workshop/task",
    "/workshop/x",
    "//",
    "/%00",
)


class Noise:
    """Values of every kind, from a seed."""

    def __init__(self, seed: int) -> None:
        self.rng = random.Random(seed)

    def scalar(self) -> Any:
        rng = self.rng
        return rng.choice(
            [None, True, False, 0, -1, 2**63, 2**70, 1e308, -0.0, "", "x", "\x00", "é" * 9, rng.random(), *NAMES]
        )

    def value(self, depth: int = 3) -> Any:
        kind = self.rng.random()
        if depth == 0 or kind < 0.5:
            return self.scalar()
        if kind < 0.75:
            return [self.value(depth - 1) for _ in range(self.rng.randrange(4))]
        return {str(self.scalar()): self.value(depth - 1) for _ in range(self.rng.randrange(4))}

    def frame(self) -> bytes:
        rng = self.rng
        data: Any = self.value()
        if rng.random() < 0.6:
            keys = [
                "type",
                "tool_name",
                "arguments",
                "answer",
                "seed",
                "task_id",
                "split",
                "index",
                "episode_id",
                "jsonrpc",
            ]
            data = {key: self.value(2) for key in rng.sample(keys, rng.randrange(5))}
        message = {"type": rng.choice(TYPES) if rng.random() < 0.9 else self.value(1), "data": data}
        return self.mangled(message if rng.random() < 0.9 else self.value())

    def call(self) -> bytes:
        rng = self.rng
        params: Any = {"name": rng.choice(NAMES), "arguments": self.value(2), "session_id": self.scalar()}
        call = {"jsonrpc": "2.0", "id": rng.choice([1, "a", None, 1.5, [], {}]), "method": rng.choice(METHODS)}
        if rng.random() < 0.3:
            call[rng.choice(list(call))] = self.value(1)
        call["params"] = params if rng.random() < 0.8 else self.value(2)
        return self.mangled(call)

    def mangled(self, message: Any) -> bytes:
        rng = self.rng
        raw = json.dumps(message).encode()
        match rng.randrange(8):
            case 0:
                cut = rng.randrange(len(raw) + 1)
                return raw[:cut]
            case 1:
                place = rng.randrange(len(raw))
                return raw[:place] + bytes([rng.randrange(256)]) + raw[place + 1 :]
            case 2:
                return raw + rng.choice([b"{", b"]", b"\x00", b" null", raw])
            case 3:
                return raw.replace(b'"', rng.choice([b"'", b"", b'\\"', b"\xff"]), 2)
            case 4:
                return rng.choice([b"NaN", b"[" * 3000, b'{"type":' * 500, b"1" * 5000, b'"\\ud800"', b"-Infinity"])
            case _:
                return raw


class Beside:
    """A session that goes on counting while others talk nonsense."""

    def __init__(self, add: Callable[[], Any]) -> None:
        self._add = add
        self._count = 0

    async def goes_on(self) -> None:
        self._count += 1
        assert await self._add() == str(self._count)


async def beside(table: Table) -> Beside:
    seat = await table.begun(task_id="goal-1")

    async def add() -> str:
        return (await table.call(seat, "add"))["data"]["observation"]["result"]

    return Beside(add)


async def test_frames() -> None:
    table = Table(Limits(call_seconds=5))
    steady, noise = await beside(table), Noise(1)
    seat = await table.begun()
    codes: dict[str, int] = {}
    for number in range(FRAMES):
        said = await answer_frame(table.hub, seat, noise.frame())
        if said is None:
            continue
        answer = msgspec.json.decode(said)
        assert answer["type"] in ("observation", "state", "error", "mcp")
        if answer["type"] == "error":
            codes[answer["data"]["code"]] = codes.get(answer["data"]["code"], 0) + 1
            assert answer["data"]["message"]
            assert "Traceback" not in answer["data"]["message"]
        if number % STEADY == 0:
            await steady.goes_on()
            await end_what_was_made(table, seat)
    assert {Code.INVALID_JSON, Code.VALIDATION_ERROR, Code.UNKNOWN_TYPE} <= set(codes)
    await table.hub.leave(seat, "done")
    await leaves_nothing(table)


async def test_calls_on_both_planes() -> None:
    table = Table(Limits(call_seconds=5))
    steady, noise = await beside(table), Noise(2)
    table.hub.agent_base = "http://agents"
    seat = table.hub.sit()
    await table.hub.reset(seat, Reset(deferred=True))
    told: set[int] = set()
    good = 0
    for number in range(CALLS):
        token = seat.episode.token if seat.episode is not None else ""
        on_agents = number % 2 == 0
        raw = noise.call()
        said = await (agent_call(table.hub, token, raw) if on_agents else control_call(table.hub, raw))
        if said is None:
            continue
        answer = msgspec.json.decode(said)
        assert answer["jsonrpc"] == "2.0"
        assert ("result" in answer) != ("error" in answer)
        good += "result" in answer
        if "error" in answer:
            told.add(answer["error"]["code"])
            assert answer["error"]["message"]
        if on_agents:
            assert SECRET not in said.decode()
            assert b"verdict" not in said
        if number % STEADY == 0:
            await steady.goes_on()
            await end_what_was_made(table, seat)
        if seat.episode is None or seat.episode.ended or seat.episode.done:
            await table.hub.reset(seat, Reset(deferred=True))
    assert good > CALLS / 50, "the noise never gets through to a tool"
    assert told >= {-32700, -32600, -32601, -32602}
    assert table.author.judged == []
    await table.hub.leave(seat, "done")
    await leaves_nothing(table)


async def test_requests() -> None:
    table = Table(Limits(call_seconds=5))
    steady, noise = await beside(table), Noise(3)
    for number in range(REQUESTS):
        method = noise.rng.choice(["GET", "POST", "POST", "POST", "PUT", ""])
        query = {"session_id": str(noise.scalar())} if noise.rng.random() < 0.2 else {}
        body = noise.rng.choice([noise.frame, noise.call])()
        reply = await answer_request(table.hub, method, noise.rng.choice(PATHS), query, body)
        assert reply.status in (200, 404, 405, 422, 500, 503)
        msgspec.json.decode(reply.body)
        if number % STEADY == 0:
            await steady.goes_on()
            await end_what_was_made(table)
    await leaves_nothing(table)


async def end_what_was_made(table: Table, *kept: Seat) -> None:
    """Sessions that the noise made by asking for them."""
    for seat in list(table.hub.seats):
        if seat not in kept and seat.episode is None:
            await table.hub.leave(seat, "noise")


async def leaves_nothing(table: Table) -> None:
    await end_what_was_made(table)
    assert len(table.hub) == 1
    await table.hub.close()
    assert table.author.open_sessions == 0
    assert len(table.hub) == 0


async def test_frames_over_a_socket() -> None:
    author, world = workshop()
    hub = Hub(world, Limits(call_seconds=5, frame_bytes=8000))
    noise = Noise(4)
    async with serving(hub, Place()) as running, ClientSession() as http:
        good = await http.ws_connect(running.url + "/ws")
        await good.send_json({"type": "reset", "data": {}})
        await good.receive(timeout=10)
        bad = await http.ws_connect(running.url + "/ws")
        for number in range(OVER_A_SOCKET):
            if bad.closed:
                bad = await http.ws_connect(running.url + "/ws")
            frame = noise.frame()
            await (bad.send_bytes(frame) if number % 3 else bad.send_str(frame.decode("latin-1")))
            answer = await bad.receive(timeout=10)
            assert answer.type in (WSMsgType.TEXT, WSMsgType.CLOSE, WSMsgType.CLOSED), answer
            if answer.type is WSMsgType.TEXT:
                assert msgspec.json.decode(answer.data)["type"] in ("observation", "state", "error", "mcp")
            if number % STEADY == 0:
                await good.send_json({"type": "step", "data": {"tool_name": "add", "arguments": {}}})
                told = msgspec.json.decode((await good.receive(timeout=10)).data)
                assert told["data"]["observation"]["result"] == str(number // STEADY + 1)
        await bad.close()
        await good.close()
        async with asyncio.timeout(10):
            while author.open_sessions:
                await asyncio.sleep(0)
