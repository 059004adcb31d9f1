"""Reading a reply: which tools it calls, in either of the two ways of calling them. Pure."""

from __future__ import annotations

import re
from typing import Any

import msgspec

from whet.core import Message, ModelReply, ToolCall, ToolFault, ToolMode, ToolResult, tool_answer, user

_BLOCK = re.compile(r"<tool_call>\s*(.*?)\s*(?:</tool_call>|\Z)", re.DOTALL)


class _Written(msgspec.Struct):
    name: str
    arguments: msgspec.Raw = msgspec.Raw(b"{}")


def calls_in(reply: ModelReply, mode: ToolMode) -> tuple[ToolCall, ...]:
    if mode is ToolMode.NATIVE:
        return reply.tool_calls
    blocks = enumerate(_BLOCK.findall(reply.text), start=1)
    return tuple(_written_call(f"call_{number}", block) for number, block in blocks)


def _written_call(call_id: str, block: str) -> ToolCall:
    try:
        written = msgspec.json.decode(block, type=_Written)
    except (msgspec.DecodeError, UnicodeEncodeError, RecursionError):
        # No name can be read, so the block itself stands in for the arguments that are wrong.
        return ToolCall(call_id, "", block)
    return ToolCall(call_id, written.name, bytes(written.arguments).decode())


def arguments_of(call: ToolCall) -> dict[str, Any] | ToolResult:
    """The arguments as an object, or what to tell the agent is wrong with them."""
    if not call.name:
        return ToolResult(
            'A tool call must be one JSON object like {"name": "...", "arguments": {...}}.', ToolFault.INVALID_ARGUMENTS
        )
    try:
        return msgspec.json.decode(call.arguments or "{}", type=dict[str, Any])
    except (msgspec.DecodeError, UnicodeEncodeError, RecursionError) as error:
        return ToolResult(f"The arguments of {call.name} are not a JSON object: {error}.", ToolFault.INVALID_ARGUMENTS)


def answer_to(call: ToolCall, result: ToolResult, mode: ToolMode) -> Message:
    if mode is ToolMode.NATIVE:
        return tool_answer(call.id, result.text, error=result.fault is not None)
    return user(f"<tool_result>\n{result.text}\n</tool_result>")
