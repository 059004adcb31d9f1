"""MCP as JSON-RPC: the two methods of tools, and the little around them that clients ask for.

Two doors with the same tools behind them. The control door is the OpenEnv wire's `/mcp`, where sessions are made and
ended as well. The agent door is one episode's, opened by its token: it has no other method than tools, so there is
nothing in it that leads to a reset, a state or a verdict.
"""

from __future__ import annotations

from typing import Any, cast

from whet.core import Json, ToolFault, ToolResult
from whet.serving.worlds.hub import Hub
from whet.serving.worlds.seat import Seat
from whet.serving.worlds.wire import (
    INVALID_PARAMS,
    INVALID_REQUEST,
    METHOD_NOT_FOUND,
    PARSE_ERROR,
    SERVER_ERROR,
    Call,
    Code,
    Refusal,
    RpcError,
    decode,
    listed,
    rpc_error,
    rpc_reply,
)

PROTOCOLS = ("2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25")
_CODES = {Code.VALIDATION_ERROR: INVALID_PARAMS, Code.INVALID_JSON: PARSE_ERROR}


def read_call(raw: bytes | str) -> Call:
    try:
        call = decode(raw, Call, "a JSON-RPC request")
    except Refusal as refusal:
        code = PARSE_ERROR if refusal.code is Code.INVALID_JSON else INVALID_REQUEST
        raise RpcError(code, refusal.message) from refusal
    if call.jsonrpc != "2.0":
        raise RpcError(INVALID_REQUEST, 'this is not a JSON-RPC request: "jsonrpc" must be "2.0"')
    return call


async def control_call(hub: Hub, raw: bytes | str, seat: Seat | None = None) -> bytes:
    """The answer to one request on the control plane; `seat` is the socket's own, where there is one."""
    call_id = None
    try:
        call = read_call(raw)
        call_id = call.id
        return rpc_reply(call_id, await _controlled(hub, call, seat))
    except RpcError as error:
        return rpc_error(call_id, error)
    except Refusal as refusal:
        return rpc_error(call_id, _as_rpc(refusal))


async def agent_call(hub: Hub, token: str, raw: bytes | str) -> bytes | None:
    """The answer to one request on an agent's plane; None for what asks for none."""
    call_id = None
    try:
        call = read_call(raw)
        call_id = call.id
        if call.id is None:
            return None
        return rpc_reply(call_id, await _for_agent(hub, token, call))
    except RpcError as error:
        return rpc_error(call_id, error)
    except Refusal as refusal:
        return rpc_error(call_id, _as_rpc(refusal))


async def _controlled(hub: Hub, call: Call, seat: Seat | None) -> object:
    match call.method:
        case "openenv/session/create":
            return {"session_id": (seat or hub.sit()).name}
        case "openenv/session/close":
            return await _closed(hub, call, seat)
        case "tools/list" | "tools/call":
            return await _with_tools(hub, call, seat)
        case _:
            raise RpcError(METHOD_NOT_FOUND, f"there is no method '{call.method[:100]}'")


async def _closed(hub: Hub, call: Call, seat: Seat | None) -> object:
    named = hub.seat(_text(call.params, "session_id"))
    if named is seat:
        raise RpcError(INVALID_REQUEST, "a socket's own session ends with the socket")
    await hub.leave(named, "it was closed")
    return {"session_id": named.name, "closed": True}


async def _with_tools(hub: Hub, call: Call, seat: Seat | None) -> object:
    """In the socket's session, in the one that is named, or in one for this request alone."""
    if seat is None and "session_id" in call.params:
        seat = hub.seat(_text(call.params, "session_id"))
    if seat is not None:
        return await _tools(seat, call)
    passing = hub.sit()
    try:
        return await _tools(passing, call)
    finally:
        await hub.leave(passing, "it was for one request")


async def _tools(seat: Seat, call: Call) -> object:
    if call.method == "tools/list":
        return {"tools": listed(await seat.tools(), "inputSchema")}
    answer = await seat.call(*_called(call))
    if answer.fault is not None and answer.fault is not ToolFault.REFUSED:
        raise RpcError(INVALID_PARAMS, answer.text, {"fault": answer.fault.value})
    # `data` is where the clients of OpenEnv look for what a tool returned.
    return {**as_content(answer), "data": answer.text}


async def _for_agent(hub: Hub, token: str, call: Call) -> object:
    seat = hub.agent_seat(token)
    match call.method:
        case "initialize":
            return _hello(seat, token, call)
        case "ping":
            return {}
        case "tools/list":
            return {"tools": listed(tuple(seat.check_token(token).session.tools), "inputSchema")}
        case "tools/call":
            return as_content(await seat.call(*_called(call), token=token))
        case _:
            raise RpcError(METHOD_NOT_FOUND, f"there is no method '{call.method[:100]}'")


def _hello(seat: Seat, token: str, call: Call) -> object:
    asked = call.params.get("protocolVersion")
    episode = seat.check_token(token)
    return {
        "protocolVersion": asked if asked in PROTOCOLS else PROTOCOLS[-1],
        "capabilities": {"tools": {}},
        "serverInfo": {"name": "whet", "version": "1"},
        "instructions": episode.session.brief.text,
    }


def as_content(answer: ToolResult) -> dict[str, Any]:
    return {"content": [{"type": "text", "text": answer.text}], "isError": answer.fault is not None}


def _called(call: Call) -> tuple[str, dict[str, Json]]:
    arguments: object = call.params.get("arguments", {})
    if not isinstance(arguments, dict):
        raise RpcError(INVALID_PARAMS, "'arguments' must be an object")
    return _text(call.params, "name"), cast("dict[str, Json]", arguments)


def _text(params: dict[str, Any], name: str) -> str:
    value = params.get(name)
    if not isinstance(value, str) or not value:
        raise RpcError(INVALID_PARAMS, f"'{name}' must be a text that is not empty")
    return value


def _as_rpc(refusal: Refusal) -> RpcError:
    return RpcError(_CODES.get(refusal.code, SERVER_ERROR), refusal.message, {"code": refusal.code.value})
