"""The control plane: everything that a trainer may say, over a socket or by single requests.

It maps messages to what a seat does, and knows nothing of how they travel.
"""

from __future__ import annotations

from typing import Any

import msgspec

from whet.core import Json, ToolFault, ToolResult
from whet.serving.worlds.hub import Hub
from whet.serving.worlds.rpc import control_call
from whet.serving.worlds.schemas import openapi, schemas
from whet.serving.worlds.seat import Episode, Seat, as_facts, begun
from whet.serving.worlds.tasks import as_listed
from whet.serving.worlds.wire import (
    Action,
    Code,
    Frame,
    HttpStep,
    Refusal,
    Reset,
    decode,
    encode,
    error_reply,
    listed,
    observation,
    reply,
)

_ERROR_TYPES = {ToolFault.UNKNOWN_TOOL: "tool_not_found", ToolFault.INVALID_ARGUMENTS: "invalid_args"}
_STATUS = {Code.CAPACITY_REACHED: 503, Code.EXECUTION_ERROR: 500, Code.SESSION_ERROR: 404, Code.FACTORY_ERROR: 500}


class Reply(msgspec.Struct, frozen=True):
    """The answer to a single request."""

    body: bytes
    status: int = 200


class _TasksAsked(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    split: str
    index: int | None = None
    start: int | None = None
    stop: int | None = None


class _InSession(msgspec.Struct, frozen=True):
    session_id: str = ""


async def answer_frame(hub: Hub, seat: Seat, raw: bytes | str) -> bytes | None:
    """The answer to one frame of a socket; None if it says goodbye. Whatever is in it, there is an answer."""
    try:
        frame = decode(raw, Frame, "a message of this wire")
        match frame.type:
            case "step":
                return reply("observation", await _step(seat, decode(frame.data, Action, "an action")))
            case "reset":
                return reply("observation", await _reset(hub, seat, decode(frame.data, Reset, "a reset")))
            case "state":
                return reply("state", seat.state())
            case "mcp":
                return b'{"type":"mcp","data":' + await control_call(hub, bytes(frame.data), seat) + b"}"
            case "close":
                return None
            case _:
                raise Refusal(Code.UNKNOWN_TYPE, f"there is no message type '{frame.type[:100]}'")
    except Refusal as refusal:
        return error_reply(refusal)


async def answer_request(hub: Hub, method: str, path: str, query: dict[str, str], body: bytes) -> Reply:
    try:
        if method == "GET":
            return _got(hub, path, query)
        if method == "POST":
            return await _posted(hub, path, body)
        return Reply(encode({"detail": f"{method} is not allowed"}), 405)
    except Refusal as refusal:
        told = {"detail": refusal.message, "code": refusal.code}
        return Reply(encode(told), _STATUS.get(refusal.code, 422))


def _got(hub: Hub, path: str, query: dict[str, str]) -> Reply:
    match path.strip("/").split("/"):
        case ["health"]:
            return Reply(b'{"status":"healthy"}')
        case ["metadata"]:
            return Reply(encode(_metadata(hub)))
        case ["schema"]:
            return Reply(encode(schemas()))
        case ["openapi.json"]:
            return Reply(encode(openapi(hub.world.name)))
        case ["state"]:
            named = query.get("session_id")
            return Reply(encode(hub.seat(named).state() if named else {"episode_id": None, "step_count": 0}))
        case ["list_environments"]:
            return Reply(encode([hub.world.name]))
        case [environment, "splits"]:
            _check_environment(hub, environment)
            return Reply(encode(hub.book.splits()))
        case _:
            return _nothing_there(path)


async def _posted(hub: Hub, path: str, body: bytes) -> Reply:
    match path.strip("/").split("/"):
        case ["mcp"]:
            return Reply(await control_call(hub, body))
        case ["reset"]:
            return Reply(await _single_reset(hub, body or b"{}"))
        case ["step"]:
            return Reply(await _single_step(hub, body))
        case [environment, ("tasks" | "num_tasks" | "task" | "task_range") as asked]:
            _check_environment(hub, environment)
            return Reply(encode(_tasks(hub, asked, decode(body, _TasksAsked, "a question for tasks"))))
        case _:
            return _nothing_there(path)


async def _reset(hub: Hub, seat: Seat, reset: Reset) -> dict[str, Any]:
    episode, agent_url = await hub.reset(seat, reset)
    seen, about = begun(episode, agent_url)
    return observation(seen, metadata=about)


async def _step(seat: Seat, action: Action) -> dict[str, Any]:
    if action.answer is not None:
        episode = await seat.judge(action.answer)
        return _judged({}, {}, episode)
    if action.type == "list_tools":
        return observation({"tools": listed(await seat.tools(), "input_schema")})
    if not action.tool_name:
        raise Refusal(Code.VALIDATION_ERROR, "an action has a tool_name and arguments, or an answer")
    answer = await seat.call(action.tool_name, action.arguments)
    return _called(action.tool_name, answer, seat.episode)


def _called(tool: str, answer: ToolResult, episode: Episode | None) -> dict[str, Any]:
    """A refusal is the tool's own answer; a call that never reached it is an error."""
    failed = _ERROR_TYPES.get(answer.fault) if answer.fault is not None else None
    seen = {
        "tool_name": tool,
        "result": None if failed else answer.text,
        "error": {"error_type": failed, "message": answer.text} if failed else None,
    }
    about: dict[str, Json] = {} if answer.fault is None else {"fault": answer.fault.value}
    if episode is not None and episode.verdict is not None:
        return _judged(seen, about, episode)
    return observation(seen, done=answer.ends, metadata=about)


def _judged(seen: dict[str, Any], about: dict[str, Json], episode: Episode) -> dict[str, Any]:
    assert episode.verdict is not None
    metadata = {**about, "verdict": as_facts(episode.verdict)}
    return observation(seen, reward=episode.verdict.soft, done=True, metadata=metadata)


async def _single_reset(hub: Hub, body: bytes) -> bytes:
    """In the session that the body names; else in one for this request alone, as the original does."""
    named = decode(body, _InSession, "a reset").session_id
    fields = decode(body, dict[str, Any], "a reset")
    reset = decode(encode({key: value for key, value in fields.items() if key != "session_id"}), Reset, "a reset")
    if named:
        return encode(await _reset(hub, hub.seat(named), reset))
    seat = hub.sit()
    try:
        return encode(await _reset(hub, seat, reset))
    finally:
        await hub.leave(seat, "it was for one request")


async def _single_step(hub: Hub, body: bytes) -> bytes:
    step = decode(body, HttpStep, "a step")
    if step.session_id:
        return encode(await _step(hub.seat(step.session_id), step.action))
    seat = hub.sit()
    try:
        return encode(await _step(seat, step.action))
    finally:
        await hub.leave(seat, "it was for one request")


def _tasks(hub: Hub, asked: str, wanted: _TasksAsked) -> dict[str, Json]:
    tasks = hub.book.of(wanted.split)
    match asked:
        case "num_tasks":
            return {"num_tasks": len(tasks)}
        case "task":
            if wanted.index is None or not 0 <= wanted.index < len(tasks):
                raise Refusal(Code.VALIDATION_ERROR, f"index is from 0 to {len(tasks) - 1}")
            return {"task": as_listed(tasks[wanted.index])}
        case "task_range":
            return {"tasks": [as_listed(task) for task in tasks[wanted.start : wanted.stop]]}
        case _:
            return {"tasks": [as_listed(task) for task in tasks], "env_name": hub.world.name}


def _metadata(hub: Hub) -> dict[str, Json]:
    counts = ", ".join(f"{len(tasks)} {split}" for split, tasks in hub.book.tasks.items())
    return {
        "name": hub.world.name,
        "description": f"The world {hub.world.name} of whet, tasks: {counts}",
        "version": hub.world.fingerprint,
    }


def _check_environment(hub: Hub, named: str) -> None:
    if named.lower() != hub.world.name.lower():
        raise Refusal(Code.SESSION_ERROR, f"there is no environment '{named[:100]}'")


def _nothing_there(path: str) -> Reply:
    return Reply(encode({"detail": f"there is nothing at {path[:100]}"}), 404)
