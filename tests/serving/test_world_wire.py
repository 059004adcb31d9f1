"""The control plane without sockets: each frame is answered, and what one world breaks stays its own."""

from __future__ import annotations

import asyncio
from typing import Any

import msgspec
import pytest
from served_worlds import SECRET, Table

from whet.core import Verdict
from whet.serving.worlds import Limits
from whet.serving.worlds.control import answer_frame, answer_request
from whet.serving.worlds.rpc import agent_call, control_call
from whet.serving.worlds.wire import Code, Refusal, Reset
from whet.testing import FakeClock


async def test_an_episode_from_its_reset_to_its_verdict() -> None:
    table = Table()
    seat = table.hub.sit()
    begun = (await table.say(seat, "reset", {"task_id": "goal-2", "seed": 7}))["data"]
    assert begun["observation"]["brief"] == "Count to 2."
    assert (begun["reward"], begun["done"]) == (None, False)
    assert begun["metadata"] == begun["observation"]["metadata"]
    assert begun["metadata"]["task_id"] == "goal-2"
    called = (await table.call(seat, "add", by=2))["data"]
    assert called["observation"]["result"] == "2"
    ended = (await table.say(seat, "step", {"answer": "done"}))["data"]
    assert (ended["reward"], ended["done"]) == (0.25, True)
    assert ended["metadata"]["verdict"]["hard"] is True
    assert table.author.judged == ["done"]
    assert table.author.open_sessions == 0
    state = (await table.say(seat, "state"))["data"]
    assert (state["step_count"], state["done"]) == (1, True)


async def test_before_the_verdict_nothing_tells_it() -> None:
    table = Table()
    seat = await table.begun()
    told = [await table.call(seat, "add"), await table.say(seat, "state"), await table.call(seat, "refuse")]
    said = msgspec.json.encode(told).decode()
    assert all(message["data"].get("reward") is None for message in told)
    assert SECRET not in said


@pytest.mark.parametrize(
    ("reset", "task"),
    [
        ({"task_id": "goal-3"}, "goal-3"),
        ({"split": "train", "index": 4}, "goal-4"),
        ({"seed": 8}, "goal-2"),
        ({"split": "train", "seed": 5}, "goal-5"),
    ],
)
async def test_a_reset_names_its_task(reset: dict[str, Any], task: str) -> None:
    table = Table()
    seat = table.hub.sit()
    assert (await table.say(seat, "reset", reset))["data"]["metadata"]["task_id"] == task


async def test_resets_that_name_nothing_take_the_tasks_in_turn() -> None:
    table = Table()
    seat = table.hub.sit()
    seen = [(await table.say(seat, "reset"))["data"]["metadata"]["task_id"] for _ in range(7)]
    assert seen == [f"goal-{number % 6}" for number in range(7)]
    assert table.author.open_sessions == 1


@pytest.mark.parametrize(
    ("frame", "code"),
    [
        ("", "INVALID_JSON"),
        ("{", "INVALID_JSON"),
        (b"\xff\xfe", "INVALID_JSON"),
        ('{"type": "step", "data": ' + "[" * 100_000, "INVALID_JSON"),
        ('{"type": "step", "data": NaN}', "INVALID_JSON"),
        ("9" * 10_000, "VALIDATION_ERROR"),
        ("[]", "VALIDATION_ERROR"),
        ('[{"type": "state"}]', "VALIDATION_ERROR"),
        ("null", "VALIDATION_ERROR"),
        ('"state"', "VALIDATION_ERROR"),
        ("{}", "VALIDATION_ERROR"),
        ('{"type": 3}', "VALIDATION_ERROR"),
        ('{"type": "state", "more": 1}', "VALIDATION_ERROR"),
        ('{"type": "judge"}', "UNKNOWN_TYPE"),
        ('{"type": ""}', "UNKNOWN_TYPE"),
        ('{"type": "step"}', "VALIDATION_ERROR"),
        ('{"type": "step", "data": []}', "VALIDATION_ERROR"),
        ('{"type": "step", "data": {"tool_name": "add", "arguments": [1]}}', "VALIDATION_ERROR"),
        ('{"type": "step", "data": {"message": "hi"}}', "VALIDATION_ERROR"),
        ('{"type": "reset", "data": {"seed": "x"}}', "VALIDATION_ERROR"),
        ('{"type": "reset", "data": {"seed": -1}}', "VALIDATION_ERROR"),
        ('{"type": "reset", "data": {"task_id": "goal-9"}}', "VALIDATION_ERROR"),
        ('{"type": "reset", "data": {"split": "train", "index": 6}}', "VALIDATION_ERROR"),
        ('{"type": "reset", "data": {"split": "test"}}', "VALIDATION_ERROR"),
        ('{"type": "reset", "data": {"index": 0}}', "VALIDATION_ERROR"),
    ],
)
async def test_a_frame_that_is_wrong_is_told_so_and_the_session_lives(frame: bytes | str, code: str) -> None:
    table = Table()
    seat = await table.begun(task_id="goal-1")
    await table.call(seat, "add")
    answer = await table.raw(seat, frame)
    assert (answer["type"], answer["data"]["code"]) == ("error", code)
    assert (await table.call(seat, "add"))["data"]["observation"]["result"] == "2"


async def test_what_has_no_json_form_is_told_and_kills_no_session() -> None:
    table = Table()
    seat = await table.begun()
    assert (await table.call(seat, "odd"))["data"]["observation"]["result"] == "half a pair: ?"
    assert (await table.call(seat, "add"))["data"]["observation"]["result"] == "1"


async def test_a_number_that_is_none_is_told_and_never_null() -> None:
    table = Table()
    seat = await table.begun()
    ended = (await table.say(seat, "step", {"answer": ""}))["data"]
    assert ended["metadata"]["verdict"]["facts"] == {"ratio": "nan", "best": "inf"}


@pytest.mark.parametrize("verdict", [float("nan"), Verdict(False, 0.0, "we broke", scored=False), "yes"])
async def test_a_verdict_that_is_none_is_an_error_and_no_reward(verdict: Any) -> None:
    table = Table()
    table.author.verdict = verdict
    seat = await table.begun()
    answer = await table.say(seat, "step", {"answer": ""})
    assert answer["data"]["code"] == "EXECUTION_ERROR"
    assert (await table.say(seat, "state"))["data"]["lost"]
    assert (await table.say(seat, "reset"))["type"] == "observation"
    assert table.author.open_sessions == 1


async def test_a_fault_is_told_in_full_to_the_server_and_in_short_to_the_caller() -> None:
    table = Table()
    seat = await table.begun()
    answer = await table.call(seat, "burn")
    assert answer["data"]["code"] == "EXECUTION_ERROR"
    assert "/srv" not in answer["data"]["message"]
    assert SECRET not in answer["data"]["message"]
    (told,) = table.told
    assert "/srv/worlds/keys.txt" in told
    assert told.split(":")[0] in answer["data"]["message"]
    lost = await table.call(seat, "add")
    assert "the episode is lost" in lost["data"]["message"]


async def test_a_world_that_never_answers_costs_its_episode_and_nothing_else() -> None:
    table = Table(Limits(call_seconds=0.01))
    seat, other = await table.begun(), await table.begun()
    answer = await table.call(seat, "wait", name="x")
    assert "took longer than 0.01 s" in answer["data"]["message"]
    assert (await table.call(other, "add"))["type"] == "observation"
    assert (await table.say(seat, "reset"))["type"] == "observation"


async def test_calls_at_the_same_time_are_answered_each_with_its_own() -> None:
    table = Table()
    seat = await table.begun()
    table.author.gate.set()
    names = [str(number) for number in range(10)]
    answers = await asyncio.gather(*(table.call(seat, "wait", name=name) for name in names))
    assert [answer["data"]["observation"]["result"] for answer in answers] == names


async def test_too_many_calls_that_wait_are_refused_and_the_rest_answered() -> None:
    table = Table(Limits(waiting=3))
    seat = await table.begun()
    async with asyncio.TaskGroup() as group:
        calls = [group.create_task(table.call(seat, "wait", name=str(number))) for number in range(6)]
        await asyncio.sleep(0)
        table.author.gate.set()
    kinds = [call.result()["type"] for call in calls]
    assert kinds == ["observation"] * 4 + ["error"] * 2


async def test_a_full_server_says_so_and_has_room_again() -> None:
    table = Table(Limits(sessions=2))
    one, _two = table.hub.sit(), table.hub.sit()
    with pytest.raises(Refusal) as caught:
        table.hub.sit()
    assert caught.value.code is Code.CAPACITY_REACHED
    await table.hub.leave(one, "done")
    await table.hub.leave(one, "done twice")
    table.hub.sit()
    assert len(table.hub) == 2


async def test_a_session_that_was_ended_plays_no_further() -> None:
    clock = FakeClock()
    table = Table(Limits(idle_seconds=100), clock)
    idle, used = await table.begun(), await table.begun()
    ending = asyncio.create_task(table.hub.end_idle())
    gone: list[str] = []
    idle.on_gone = lambda: gone.append("closed")
    for _ in range(8):
        await clock.advance(20)
        assert (await table.call(used, "add"))["type"] == "observation"
    assert gone == ["closed"]
    assert table.author.open_sessions == 1
    before = table.author.calls
    for again in (table.call(idle, "add"), table.say(idle, "reset"), table.say(idle, "step", {"answer": "x"})):
        assert (await again)["data"]["code"] == "SESSION_ERROR"
    assert table.author.calls == before
    ending.cancel()


async def test_a_call_under_way_is_not_idle() -> None:
    clock = FakeClock()
    table = Table(Limits(idle_seconds=100), clock)
    seat = await table.begun()
    ending = asyncio.create_task(table.hub.end_idle())
    calling = asyncio.create_task(table.call(seat, "wait", name="late"))
    for _ in range(10):
        await clock.advance(50)
    table.author.gate.set()
    assert (await calling)["data"]["observation"]["result"] == "late"
    assert (await table.call(seat, "add"))["type"] == "observation"
    ending.cancel()


async def test_sessions_that_are_made_and_left_do_not_fill_the_server() -> None:
    clock = FakeClock()
    table = Table(Limits(sessions=3, idle_seconds=100), clock)
    create = b'{"jsonrpc": "2.0", "id": 1, "method": "openenv/session/create"}'
    for _ in range(3):
        assert "result" in msgspec.json.decode(await control_call(table.hub, create))
    full = msgspec.json.decode(await control_call(table.hub, create))
    assert full["error"]["data"]["code"] == "CAPACITY_REACHED"
    ending = asyncio.create_task(table.hub.end_idle())
    for _ in range(6):
        await clock.advance(25)
    ending.cancel()
    assert "result" in msgspec.json.decode(await control_call(table.hub, create))


async def test_an_ended_world_is_judged_at_once_unless_the_caller_judges_himself() -> None:
    table = Table()
    seat = await table.begun()
    assert (await table.call(seat, "finish"))["data"]["reward"] == 0.25
    await table.say(seat, "reset", {"deferred": True})
    ended = (await table.call(seat, "finish"))["data"]
    assert (ended["reward"], ended["done"]) == (None, True)
    assert (await table.call(seat, "add"))["data"]["message"] == "the episode is over"
    assert (await table.say(seat, "step", {"answer": "mine"}))["data"]["done"]
    assert table.author.judged == ["", "mine"]


async def rpc(table: Table, token: str, method: str, **params: Any) -> Any:
    call = {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}
    said = await agent_call(table.hub, token, msgspec.json.encode(call))
    assert said is not None
    return msgspec.json.decode(said)


async def with_agent(table: Table, **reset: Any) -> Any:
    table.hub.agent_base = "http://agents"
    seat = table.hub.sit()
    _, url = await table.hub.reset(seat, Reset(**reset))
    return seat, url.split("/")[-2]


async def test_an_agent_has_tools_and_no_name_leads_to_anything_else() -> None:
    table = Table()
    _, token = await with_agent(table, task_id="goal-1")
    hello = await rpc(table, token, "initialize", protocolVersion="2025-06-18")
    assert hello["result"]["protocolVersion"] == "2025-06-18"
    assert hello["result"]["instructions"] == "Count to 1."
    tools = (await rpc(table, token, "tools/list"))["result"]["tools"]
    assert [tool["name"] for tool in tools] == ["add", "wait", "burn", "refuse", "odd", "finish"]
    assert (await rpc(table, token, "tools/call", name="add"))["result"]["content"][0]["text"] == "1"
    for method in ("reset", "step", "state", "judge", "openenv/session/create", "openenv/session/close", "tasks/list"):
        assert (await rpc(table, token, method))["error"]["code"] == -32601
    for name in ("judge", "reset", "state", "step", "close", "__init__", "_judge", "answer"):
        answer = (await rpc(table, token, "tools/call", name=name))["result"]
        assert answer["isError"] is True
    assert table.author.judged == []


async def test_the_verdict_never_travels_on_the_agents_channel() -> None:
    table = Table()
    seat, token = await with_agent(table, task_id="goal-0")
    said = [
        await rpc(table, token, "tools/call", name="add"),
        await rpc(table, token, "tools/call", name="finish"),
        await rpc(table, token, "tools/call", name="add"),
        await rpc(table, token, "tools/list"),
    ]
    told = msgspec.json.encode(said).decode()
    for word in (SECRET, "verdict", "reward", "counted", "0.25", "hard", "soft"):
        assert word not in told
    assert (await table.say(seat, "state"))["data"]["verdict"]["soft"] == 0.25


async def test_a_token_is_good_for_one_episode() -> None:
    table = Table()
    seat, token = await with_agent(table)
    await table.hub.reset(seat, Reset())
    assert (await rpc(table, token, "tools/call", name="add"))["error"]["message"] == "the episode is over"
    assert table.author.calls == 0
    with pytest.raises(Refusal):
        table.hub.agent_seat(token)
    fresh = seat.episode
    assert fresh is not None
    assert "result" in await rpc(table, fresh.token, "tools/call", name="add")
    await table.hub.leave(seat, "done")
    for guess in (fresh.token, "", "x", seat.name):
        assert (await rpc(table, guess, "tools/list"))["error"]["data"]["code"] == "SESSION_ERROR"


async def test_what_breaks_a_world_is_not_told_to_the_agent() -> None:
    table = Table()
    _, token = await with_agent(table)
    said = await rpc(table, token, "tools/call", name="burn")
    assert "/srv" not in str(said)
    assert SECRET not in str(said)
    assert "the world broke" in said["error"]["message"]


async def test_a_notification_is_not_answered() -> None:
    table = Table()
    _, token = await with_agent(table)
    assert await agent_call(table.hub, token, b'{"jsonrpc": "2.0", "method": "notifications/initialized"}') is None


async def control(table: Table, method: str, **params: Any) -> Any:
    call = {"jsonrpc": "2.0", "id": "a", "method": method, "params": params}
    return msgspec.json.decode(await control_call(table.hub, msgspec.json.encode(call)))


async def test_a_request_without_a_session_has_one_of_its_own_and_leaves_nothing() -> None:
    table = Table()
    assert len((await control(table, "tools/list"))["result"]["tools"]) == 6
    assert (await control(table, "tools/call", name="add"))["result"]["data"] == "1"
    assert (await control(table, "tools/call", name="sub"))["error"]["code"] == -32602
    body = b'{"action": {"tool_name": "add", "arguments": {}}, "timeout_s": 3}'
    for method, path, sent in (("POST", "/reset", b""), ("POST", "/step", body), ("GET", "/state", b"")):
        assert (await answer_request(table.hub, method, path, {}, sent)).status == 200
    assert (len(table.hub), table.author.open_sessions) == (0, 0)


async def test_requests_can_share_a_session() -> None:
    table = Table()
    name = (await control(table, "openenv/session/create"))["result"]["session_id"]
    for count in ("1", "2"):
        assert (await control(table, "tools/call", name="add", session_id=name))["result"]["data"] == count
    body = msgspec.json.encode({"action": {"answer": "x"}, "session_id": name})
    assert msgspec.json.decode((await answer_request(table.hub, "POST", "/step", {}, body)).body)["done"] is True
    reply = await answer_request(table.hub, "GET", "/state", {"session_id": name}, b"")
    assert msgspec.json.decode(reply.body)["step_count"] == 2
    assert (await control(table, "openenv/session/close", session_id=name))["result"]["closed"] is True
    assert "error" in await control(table, "openenv/session/close", session_id=name)
    assert "error" in await control(table, "tools/call", name="add", session_id=name)


@pytest.mark.parametrize(
    ("path", "body", "says"),
    [
        ("/workshop/tasks", {"split": "train"}, {"env_name": "workshop"}),
        ("/Workshop/num_tasks", {"split": "train"}, {"num_tasks": 6}),
        ("/workshop/task", {"split": "train", "index": 2}, {"task": {"id": "goal-2", "inputs": {"goal": 2}}}),
        ("/workshop/task_range", {"split": "train", "start": 4}, {"tasks": [{"id": "goal-4"}, {"id": "goal-5"}]}),
    ],
)
async def test_tasks_are_listed_without_their_keys(path: str, body: Any, says: Any) -> None:
    table = Table()
    reply = await answer_request(table.hub, "POST", path, {}, msgspec.json.encode(body))
    assert SECRET not in reply.body.decode()
    assert within(says, msgspec.json.decode(reply.body))


def within(wanted: Any, found: Any) -> bool:
    if isinstance(wanted, dict):
        return all(within(value, found[key]) for key, value in wanted.items())
    if isinstance(wanted, list):
        return len(wanted) == len(found) and all(map(within, wanted, found))
    return wanted == found


@pytest.mark.parametrize(
    ("method", "path", "body", "status"),
    [
        ("GET", "/nothing", b"", 404),
        ("GET", "/", b"", 404),
        ("POST", "/other/tasks", b'{"split": "train"}', 404),
        ("POST", "/workshop/tasks", b'{"split": "tain"}', 422),
        ("POST", "/workshop/task", b'{"split": "train", "index": 6}', 422),
        ("POST", "/workshop/tasks", b"[]", 422),
        ("POST", "/step", b"{}", 422),
        ("POST", "/step", b'{"action": {"tool_name": "burn"}}', 500),
        ("POST", "/reset", b'{"seed": {}}', 422),
        ("POST", "/reset", b'{"session_id": "x"}', 404),
        ("DELETE", "/reset", b"", 405),
    ],
)
async def test_requests_that_cannot_be_are_refused(method: str, path: str, body: bytes, status: int) -> None:
    table = Table()
    reply = await answer_request(table.hub, method, path, {}, body)
    assert reply.status == status
    assert msgspec.json.decode(reply.body)["detail"]
    assert len(table.hub) == 0


async def test_goodbye_is_not_answered() -> None:
    table = Table()
    assert await answer_frame(table.hub, await table.begun(), b'{"type": "close"}') is None
