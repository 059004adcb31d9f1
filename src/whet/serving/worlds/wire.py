"""The OpenEnv wire as types: what a frame may say, what it is answered with, and what is refused.

Pure. What is read here was written by somebody else, so every way in which it can be wrong ends in a `Refusal`, and
whatever a world says can be written: nothing that is sent out of here breaks a connection.
"""

from __future__ import annotations

import math
from enum import StrEnum
from typing import Any, TypeVar, cast

import msgspec

from whet.core import Json, Split, ToolSpec, WhetError

T = TypeVar("T")


class Code(StrEnum):
    """The codes of the wire's errors."""

    INVALID_JSON = "INVALID_JSON"
    UNKNOWN_TYPE = "UNKNOWN_TYPE"
    VALIDATION_ERROR = "VALIDATION_ERROR"
    EXECUTION_ERROR = "EXECUTION_ERROR"
    CAPACITY_REACHED = "CAPACITY_REACHED"
    FACTORY_ERROR = "FACTORY_ERROR"
    SESSION_ERROR = "SESSION_ERROR"


class Refusal(WhetError):
    """What whoever called is told. Its text holds nothing of a world's insides: no paths, no traces."""

    def __init__(self, code: Code, message: str) -> None:
        super().__init__(message)
        self.code = code


class Frame(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    type: str
    data: msgspec.Raw = msgspec.Raw(b"{}")


class Reset(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Which task is begun. Without a name it follows from the seed; without a seed, the next task in order."""

    seed: int | None = None
    episode_id: str | None = None
    task_id: str | None = None
    split: Split | None = None
    index: int | None = None
    deferred: bool = False
    """The caller judges by an answer also where the world ends the episode itself."""


class Action(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One step: a call of a tool, a look at the list of tools, or the answer that ends the episode."""

    type: str = ""
    tool_name: str = ""
    arguments: dict[str, Any] = {}
    answer: str | None = None
    metadata: dict[str, Any] = {}


class HttpStep(msgspec.Struct, frozen=True):
    """The body of POST /step. The original takes further fields, and so does this."""

    action: Action
    session_id: str = ""


class Call(msgspec.Struct, frozen=True):
    """A JSON-RPC request; one without an id is a notification."""

    jsonrpc: str
    method: str
    id: str | int | None = None
    params: dict[str, Any] = {}


class RpcError(WhetError):
    def __init__(self, code: int, message: str, about: dict[str, Json] | None = None) -> None:
        super().__init__(message)
        self.code = code
        self.about = about


PARSE_ERROR = -32700
INVALID_REQUEST = -32600
METHOD_NOT_FOUND = -32601
INVALID_PARAMS = -32602
INTERNAL_ERROR = -32603
SERVER_ERROR = -32000

_encode = msgspec.json.Encoder().encode


def decode(raw: bytes | str | msgspec.Raw, kind: type[T], what: str) -> T:
    """`raw` as a `kind`, or a Refusal that says what is wrong with it."""
    try:
        return msgspec.json.decode(raw, type=kind)
    except msgspec.ValidationError as error:
        raise Refusal(Code.VALIDATION_ERROR, f"this is not {what}: {error}") from error
    except (ValueError, RecursionError) as error:
        raise Refusal(Code.INVALID_JSON, f"this is not JSON: {error}") from error


def encode(value: object) -> bytes:
    """JSON of anything that a world may have said; what has no JSON form is told as text."""
    try:
        return _encode(value)
    except (TypeError, ValueError, RecursionError, OverflowError):
        return _encode(tame(value))


def tame(value: object, depth: int = 32) -> Json:
    """The same with whatever JSON cannot say as text: NaN is "nan", never null."""
    if value is None or isinstance(value, bool | int):
        return value
    if isinstance(value, float):
        return value if math.isfinite(value) else str(value)
    if isinstance(value, str):
        return value.encode("utf-8", "replace").decode()
    if depth == 0:
        return "…"
    if isinstance(value, dict):
        members = cast("dict[object, object]", value)
        return {str(tame(str(key))): tame(member, depth - 1) for key, member in members.items()}
    if isinstance(value, list | tuple):
        return [tame(item, depth - 1) for item in cast("list[object]", value)]
    if isinstance(value, msgspec.Struct):
        return tame(msgspec.structs.asdict(value), depth - 1)
    return str(tame(str(value)))


def observation(
    seen: dict[str, Any], *, reward: float | None = None, done: bool = False, metadata: dict[str, Any] | None = None
) -> dict[str, Any]:
    """What reset and step are answered with. Clients of either generation look for `metadata` in another place."""
    about = metadata or {}
    return {"observation": {**seen, "metadata": about}, "reward": reward, "done": done, "metadata": about}


def reply(kind: str, data: object) -> bytes:
    return encode({"type": kind, "data": data})


def error_reply(refusal: Refusal) -> bytes:
    return reply("error", {"message": refusal.message, "code": refusal.code})


def rpc_reply(call_id: str | int | None, result: object) -> bytes:
    return encode({"jsonrpc": "2.0", "id": call_id, "result": result})


def rpc_error(call_id: str | int | None, error: RpcError) -> bytes:
    told: dict[str, Any] = {"code": error.code, "message": error.message}
    if error.about is not None:
        told["data"] = error.about
    return encode({"jsonrpc": "2.0", "id": call_id, "error": told})


def listed(tools: tuple[ToolSpec, ...], schema_name: str) -> list[dict[str, Any]]:
    """Tools as a list on the wire: MCP says `inputSchema`, an observation `input_schema`."""
    return [{"name": tool.name, "description": tool.description, schema_name: tool.parameters} for tool in tools]
