"""The world `openenv` against a scripted server on this machine: whatever it does, no answer is taken for another's."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Awaitable, Callable, Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import msgspec
import pytest
from aiohttp import WSMsgType, web

from whet.core import ConfigError, InputError, Split, ToolFault, World, WorldFault
from whet.worlds import load_world

pytestmark = pytest.mark.slow

ACTION = {"properties": {"message": {"type": "string"}, "metadata": {"type": "object"}}, "required": ["message"]}
TOOLS = {"properties": {"tool_name": {"type": "string"}, "arguments": {"type": "object"}}}

Play = Callable[["Peer", web.WebSocketResponse, dict[str, Any]], Awaitable[None]]


def seen(observation: Any = None, reward: Any = None, done: bool = False) -> dict[str, Any]:
    return {"type": "observation", "data": {"observation": observation or {}, "reward": reward, "done": done}}


class Peer:
    """A server in a thread of its own: worlds are loaded by plain requests, which hold up the test's loop."""

    def __init__(self, play: Play, action: dict[str, Any]) -> None:
        self.play = play
        self.action = action
        self.heard: list[dict[str, Any]] = []
        self.open = 0
        self.most = 0
        self.gate = asyncio.Event()
        self.url = ""
        self.listed: dict[str, Any] | None = None
        self._ready = threading.Event()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._over = asyncio.Event()

    def run(self) -> None:
        asyncio.run(self._main())

    async def _main(self) -> None:
        self._loop = asyncio.get_running_loop()
        app = web.Application()
        app.router.add_get("/metadata", self._metadata)
        app.router.add_get("/schema", self._schema)
        app.router.add_get("/ws", self._socket)
        app.router.add_get("/list_environments", self._environments)
        app.router.add_get("/peer/splits", self._splits)
        app.router.add_post("/peer/tasks", self._tasks)
        runner = web.AppRunner(app, access_log=None, shutdown_timeout=0.1)
        await runner.setup()
        await web.TCPSite(runner, "127.0.0.1", 0).start()
        self.url = f"http://127.0.0.1:{runner.addresses[0][1]}"
        self._ready.set()
        await self._over.wait()
        await runner.cleanup()

    def wait(self) -> None:
        assert self._ready.wait(10)

    def tell(self, event: asyncio.Event) -> None:
        assert self._loop is not None
        self._loop.call_soon_threadsafe(event.set)

    def end(self) -> None:
        self.tell(self._over)

    async def _metadata(self, request: web.Request) -> web.Response:
        return web.json_response({"name": "peer", "description": "A peer.", "version": "1"})

    async def _schema(self, request: web.Request) -> web.Response:
        return web.json_response({"action": {"type": "object", **self.action}, "observation": {}, "state": {}})

    async def _environments(self, request: web.Request) -> web.Response:
        if self.listed is None:
            return web.json_response({"detail": "Not Found"}, status=404)
        return web.json_response(["peer"])

    async def _splits(self, request: web.Request) -> web.Response:
        assert self.listed is not None
        return web.json_response([{"name": name, "type": name} for name in self.listed])

    async def _tasks(self, request: web.Request) -> web.Response:
        assert self.listed is not None
        return web.json_response({"tasks": self.listed[(await request.json())["split"]]})

    async def _socket(self, request: web.Request) -> web.WebSocketResponse:
        socket = web.WebSocketResponse()
        await socket.prepare(request)
        self.open += 1
        self.most = max(self.most, self.open)
        try:
            async for message in socket:
                if message.type is WSMsgType.TEXT:
                    frame = msgspec.json.decode(message.data)
                    self.heard.append(frame)
                    await self.play(self, socket, frame)
        finally:
            self.open -= 1
        return socket


@contextmanager
def peer(play: Play, action: dict[str, Any] = ACTION) -> Generator[Peer]:
    server = Peer(play, action)
    thread = threading.Thread(target=server.run)
    thread.start()
    try:
        server.wait()
        yield server
    finally:
        server.end()
        thread.join()


def world_of(server: Peer, **settings: Any) -> World:
    if server.listed is None and "tasks" not in settings:
        settings = {"seeds": {"train": 3, "selection": 0, "test": 0}, **settings}
    return load_world("openenv", {"url": server.url, **settings}, base_dir=Path())


async def echo(server: Peer, socket: web.WebSocketResponse, frame: dict[str, Any]) -> None:
    match frame["type"], frame.get("data", {}):
        case "reset", data:
            await socket.send_json(seen({"text": f"seed {data['seed']}"}))
        case "step", {"message": "wait"}:
            await server.gate.wait()
            await socket.send_json(seen({"text": "late"}, 1.0))
        case "step", {"message": "list"}:
            await socket.send_str("[1, 2]")
        case "step", {"message": "nan"}:
            await socket.send_str('{"type":"observation","data":{"observation":{},"reward":NaN,"done":true}}')
        case "step", {"message": "null"}:
            await socket.send_json(seen({}, None, done=True))
        case "step", {"message": "gone"}:
            await socket.close()
        case "step", {"message": "error"}:
            await socket.send_json({"type": "error", "data": {"message": "on fire", "code": "EXECUTION_ERROR"}})
        case "step", {"message": "wrong"}:
            errors = [{"loc": ["message"], "msg": "too short"}]
            told = {"message": "Invalid message", "code": "VALIDATION_ERROR", "errors": errors}
            await socket.send_json({"type": "error", "data": told})
        case "step", data:
            number = float(data["message"])
            await socket.send_json(seen({"text": data["message"], "reward": number}, number, done=number >= 1))
        case _:
            pass


async def first(world: World, split: Split = Split.TRAIN) -> Any:
    return await world.open(world.tasks(split)[0], 1)


async def test_an_episode_by_a_form() -> None:
    with peer(echo) as server:
        world = world_of(server, instructions="Say a number.")
        assert (world.name, [task.id for task in world.tasks(Split.TRAIN)]) == ("peer", ["seed-0", "seed-1", "seed-2"])
        session = await world.open(world.tasks(Split.TRAIN)[2], 9)
        assert session.brief.text == "Say a number.\n\nseed 2"
        assert [(tool.name, list(tool.parameters["properties"])) for tool in session.tools] == [("act", ["message"])]
        answer = await session.call("act", {"message": "0.5"})
        assert (answer.text, answer.ends) == ("0.5", False)
        assert (await session.call("act", {"message": "1"})).ends
        verdict = await session.judge("")
        assert (verdict.hard, verdict.soft, verdict.facts["steps"]) == (True, 1.0, 2)
        await session.close()


@pytest.mark.parametrize(
    ("arguments", "fault", "says"),
    [
        ({}, ToolFault.INVALID_ARGUMENTS, "'message' is missing"),
        ({"message": 3}, ToolFault.INVALID_ARGUMENTS, "must be a string"),
        ({"message": "wrong"}, ToolFault.INVALID_ARGUMENTS, "Invalid message; message: too short"),
    ],
)
async def test_an_action_that_is_wrong_is_told_to_the_agent(arguments: Any, fault: ToolFault, says: str) -> None:
    with peer(echo) as server:
        session = await first(world_of(server))
        answer = await session.call("act", arguments)
        assert answer.fault is fault
        assert says in answer.text
        assert not (await session.call("act", {"message": "0.5"})).fault
        await session.close()


async def test_after_a_timeout_the_late_answer_is_taken_for_no_other_and_the_episode_is_lost() -> None:
    with peer(echo) as server:
        world = world_of(server, step_seconds=0.05)
        session, other = await first(world), await first(world)
        with pytest.raises(WorldFault, match=r"not answered within 0\.05 s; the episode is lost"):
            await session.call("act", {"message": "wait"})
        server.tell(server.gate)
        for again in (session.call("act", {"message": "0.25"}), session.judge("x")):
            with pytest.raises(WorldFault, match="the episode is lost"):
                await again
        await session.close()
        assert (await other.call("act", {"message": "0.5"})).text == "0.5"
        await other.close()


async def test_a_call_that_is_cancelled_loses_its_episode() -> None:
    with peer(echo) as server:
        session = await first(world_of(server))
        calling = asyncio.create_task(session.call("act", {"message": "wait"}))
        while len(server.heard) < 2:
            await asyncio.sleep(0)
        calling.cancel()
        with pytest.raises(asyncio.CancelledError):
            await calling
        server.tell(server.gate)
        with pytest.raises(WorldFault, match="the episode is lost"):
            await session.call("act", {"message": "0.5"})
        await session.close()


async def test_calls_at_the_same_time_each_have_their_own_answer() -> None:
    with peer(echo) as server:
        session = await first(world_of(server))
        numbers = [f"0.{number}" for number in range(1, 40)]
        answers = await asyncio.gather(*(session.call("act", {"message": number}) for number in numbers))
        assert [answer.text for answer in answers] == numbers
        await session.close()


@pytest.mark.parametrize(
    ("message", "says"),
    [
        ("list", "the answer is not one of this wire"),
        ("nan", "the answer is not one of this wire"),
        ("null", "ended without a reward"),
        ("gone", "the server closed the connection"),
        ("error", r"failed: on fire \(EXECUTION_ERROR\)"),
    ],
)
async def test_what_is_no_answer_is_a_fault_and_never_a_score(message: str, says: str) -> None:
    with peer(echo) as server:
        session = await first(world_of(server))
        with pytest.raises(WorldFault, match=says):
            await session.call("act", {"message": message})
        with pytest.raises(WorldFault, match="the episode is lost"):
            await session.judge("")
        await session.close()


@pytest.mark.parametrize(
    ("settings", "messages", "hard", "soft"),
    [
        ({}, ["0.5"], False, 0.5),
        ({"pass_mark": 0.5}, ["0.5"], True, 0.5),
        ({"reward": "sum"}, ["0.5", "0.5"], True, 1.0),
        ({"reward": "best"}, ["0.75", "0.25"], False, 0.75),
        ({"lowest": -1.0}, ["-0.5"], False, 0.25),
        ({"highest": 0.5}, ["0.75"], False, 1.0),
        ({}, [], False, 0.0),
    ],
)
async def test_rewards_become_verdicts_as_the_settings_say(
    settings: Any, messages: list[str], hard: bool, soft: float
) -> None:
    with peer(echo) as server:
        session = await first(world_of(server, **settings))
        for message in messages:
            await session.call("act", {"message": message})
        verdict = await session.judge("")
        assert (verdict.hard, verdict.soft) == (hard, soft)
        await session.close()


async def test_an_agents_last_words_can_be_the_one_action() -> None:
    with peer(echo) as server:
        session = await first(world_of(server, acts="answer"))
        assert session.tools == ()
        assert (await session.judge("1")).hard
        await session.close()
        assert server.heard[1] == {"type": "step", "data": {"message": "1"}}


async def tools(server: Peer, socket: web.WebSocketResponse, frame: dict[str, Any]) -> None:
    schema = {"type": "object", "properties": {"n": {"type": "integer", "format": "int64", "pattern": "(a+)+$"}}}
    match frame["type"], frame.get("data", {}):
        case "reset", _:
            await socket.send_json(seen({"metadata": {"message": "Add.", "secret": 1}}, 0.0))
        case "step", {"type": "list_tools"}:
            await socket.send_json(seen({"tools": [{"name": "add", "description": "Add.", "input_schema": schema}]}))
        case "step", {"tool_name": "add", "arguments": {"n": 1}}:
            content = [{"type": "text", "text": "one"}, {"type": "image", "mimeType": "image/png", "data": "…"}]
            await socket.send_json(seen({"tool_name": "add", "result": {"content": content, "is_error": False}}, 0.5))
        case "step", {"tool_name": "add", "arguments": {"n": 2}}:
            error = {"error_type": "execution_error", "message": "no two"}
            await socket.send_json(seen({"tool_name": "add", "result": None, "error": error}))
        case "step", _:
            error = {"error_type": "timeout", "message": "too slow"}
            await socket.send_json(seen({"tool_name": "add", "result": None, "error": error}))
        case _:
            pass


async def test_an_episode_by_tools() -> None:
    with peer(tools, TOOLS) as server:
        session = await first(world_of(server))
        assert session.brief.text == "Add."
        assert [tool.name for tool in session.tools] == ["add"]
        assert (await session.call("add", {"n": 1})).text == "one\n[image image/png]"
        assert (await session.call("add", {"n": 2})).fault is ToolFault.REFUSED
        assert (await session.call("add", {"n": "x"})).fault is ToolFault.INVALID_ARGUMENTS
        assert (await session.call("sub", {})).fault is ToolFault.UNKNOWN_TOOL
        with pytest.raises(WorldFault, match="the tool add failed: too slow"):
            await session.call("add", {"n": 3})
        await session.close()


async def test_no_more_sessions_are_open_than_the_server_takes() -> None:
    with peer(echo) as server:
        world = world_of(server, sessions=2)

        async def play() -> None:
            session = await first(world)
            await session.call("act", {"message": "1"})
            await session.close()

        await asyncio.gather(*(play() for _ in range(10)))
        assert server.most <= 2


async def test_a_server_that_lists_tasks_is_asked_for_them(tmp_path: Any) -> None:
    with peer(echo) as server:
        server.listed = {"train": [{"id": "a", "kind": "easy"}, {"id": "b"}], "validation": ["v"], "test": [1, 2]}
        world = world_of(server)
        ids = {split: [task.id for task in world.tasks(split)] for split in Split}
        assert list(ids.values()) == [["a", "b"], ["validation-0"], ["test-0", "test-1"], []]
        assert world.tasks(Split.TRAIN)[0].kind == "easy"
        await (await world.open(world.tasks(Split.TRAIN)[1], 5)).close()
        assert server.heard[0]["data"] == {"seed": 5, "split": "train", "index": 1}


async def test_tasks_can_be_a_file_of_what_is_sent_with_the_reset(tmp_path: Any) -> None:
    rows = [{"id": "x", "split": "test", "seed": 7, "level": 2}, {"split": "train", "level": 3}]
    (tmp_path / "t.jsonl").write_bytes(b"".join(msgspec.json.encode(row) + b"\n" for row in rows))
    with peer(echo) as server:
        world = load_world("openenv", {"url": server.url, "tasks": "t.jsonl"}, base_dir=tmp_path)
        await (await first(world, Split.TEST)).close()
        assert server.heard[0]["data"] == {"seed": 7, "level": 2}


@pytest.mark.parametrize(
    ("settings", "error", "says"),
    [
        ({"url": "127.0.0.1:8000"}, InputError, "is no address"),
        ({"url": "http://127.0.0.1:1"}, InputError, "cannot be reached"),
        ({"token_env": "WHET_TEST_NO_SUCH"}, ConfigError, "WHET_TEST_NO_SUCH is not set"),
        ({"seeds": None}, ConfigError, "this server lists no tasks"),
        ({"tasks": "x.jsonl", "seeds": {"train": 1}}, ConfigError, "give either a file of tasks or seeds"),
        ({"lowest": 2.0}, ConfigError, "lowest must be less than highest"),
        ({"acts": "typing"}, ConfigError, "acts"),
    ],
)
async def test_what_cannot_be_loaded_is_told(settings: Any, error: type[Exception], says: str) -> None:
    with peer(echo) as server, pytest.raises(error, match=says):
        world_of(server, **settings)


async def test_the_fingerprint_follows_what_decides_a_verdict() -> None:
    with peer(echo) as server:
        same = [world_of(server), world_of(server, step_seconds=1.0, sessions=2, connect_seconds=3.0)]
        other = [world_of(server, pass_mark=0.5), world_of(server, seeds={"train": 2}), world_of(server, reward="sum")]
        assert same[0].fingerprint == same[1].fingerprint
        assert len({world.fingerprint for world in [same[0], *other]}) == 4
