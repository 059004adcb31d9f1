"""The JSON of Anthropic messages, as far as whet writes and reads it.

Everything that is read may be missing or null, so that servers which imitate the interface are understood.
"""

from __future__ import annotations

from typing import Any, TypeAlias

import msgspec
from msgspec import UNSET, UnsetType

from whet.models.wires.base import ErrorDetail


class Source(msgspec.Struct, tag="base64"):
    media_type: str
    data: str


class Text(msgspec.Struct, tag="text"):
    text: str


class Image(msgspec.Struct, tag="image"):
    source: Source


class ToolUse(msgspec.Struct, tag="tool_use"):
    id: str
    name: str
    input: msgspec.Raw


class ToolResult(msgspec.Struct, tag="tool_result", omit_defaults=True):
    tool_use_id: str
    content: str | list[Text | Image]
    is_error: bool = False


Block: TypeAlias = Text | Image | ToolUse | ToolResult


class Message(msgspec.Struct):
    role: str
    content: str | list[Block]


class Tool(msgspec.Struct):
    name: str
    description: str
    input_schema: dict[str, Any]


class Format(msgspec.Struct, tag="json_schema"):
    schema: dict[str, Any]


class OutputConfig(msgspec.Struct, omit_defaults=True):
    effort: str | UnsetType = UNSET
    format: Format | UnsetType = UNSET


class ThinkingConfig(msgspec.Struct, omit_defaults=True):
    type: str
    budget_tokens: int | UnsetType = UNSET


class Body(msgspec.Struct, omit_defaults=True):
    model: str
    max_tokens: int
    messages: list[Message]
    system: str | UnsetType = UNSET
    temperature: float | UnsetType = UNSET
    top_p: float | UnsetType = UNSET
    stop_sequences: tuple[str, ...] | UnsetType = UNSET
    thinking: ThinkingConfig | UnsetType = UNSET
    output_config: OutputConfig | UnsetType = UNSET
    tools: list[Tool] | UnsetType = UNSET
    stream: bool | UnsetType = UNSET


class OutputDetails(msgspec.Struct):
    thinking_tokens: int | None = None


class Usage(msgspec.Struct):
    input_tokens: int | None = None
    output_tokens: int | None = None
    cache_read_input_tokens: int | None = None
    cache_creation_input_tokens: int | None = None
    output_tokens_details: OutputDetails | None = None


class ReplyBlock(msgspec.Struct):
    """Any block or piece of one: kinds that whet does not use have none of these fields filled."""

    type: str
    text: str | None = None
    thinking: str | None = None
    id: str | None = None
    name: str | None = None
    input: msgspec.Raw = msgspec.Raw()
    partial_json: str | None = None
    stop_reason: str | None = None


class Reply(msgspec.Struct):
    content: list[ReplyBlock] | None = None
    model: str | None = None
    stop_reason: str | None = None
    usage: Usage | None = None
    error: ErrorDetail | None = None


class Delta(msgspec.Struct):
    type: str | None = None
    text: str | None = None
    thinking: str | None = None
    partial_json: str | None = None
    stop_reason: str | None = None


class Event(msgspec.Struct):
    type: str
    index: int | None = None
    message: Reply | None = None
    content_block: ReplyBlock | None = None
    delta: Delta | None = None
    usage: Usage | None = None
    error: ErrorDetail | None = None


encoder = msgspec.json.Encoder()
reply_decoder = msgspec.json.Decoder(Reply)
event_decoder = msgspec.json.Decoder(Event)
object_decoder = msgspec.json.Decoder(dict[str, msgspec.Raw])
