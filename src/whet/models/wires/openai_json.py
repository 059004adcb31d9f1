"""The JSON of OpenAI chat completions, as far as whet writes and reads it.

Everything that is read may be missing or null: servers differ.
"""

from __future__ import annotations

from typing import Any

import msgspec
from msgspec import UNSET, UnsetType

from whet.core import Effort
from whet.models.wires.base import ErrorDetail


class ImageUrl(msgspec.Struct):
    url: str


class Text(msgspec.Struct, tag="text"):
    text: str


class Image(msgspec.Struct, tag="image_url"):
    image_url: ImageUrl


class CalledFunction(msgspec.Struct):
    name: str
    arguments: str


class Call(msgspec.Struct, tag="function"):
    id: str
    function: CalledFunction


class Message(msgspec.Struct, omit_defaults=True):
    role: str
    content: str | list[Text | Image]
    tool_calls: list[Call] | UnsetType = UNSET
    tool_call_id: str | UnsetType = UNSET


class Function(msgspec.Struct):
    name: str
    description: str
    parameters: dict[str, Any]


class Tool(msgspec.Struct, tag="function"):
    function: Function


class Schema(msgspec.Struct):
    name: str
    schema: dict[str, Any]
    strict: bool


class ResponseFormat(msgspec.Struct, tag="json_schema"):
    json_schema: Schema


class StreamOptions(msgspec.Struct):
    include_usage: bool


class ThinkingMode(msgspec.Struct):
    type: str


class TemplateSettings(msgspec.Struct):
    enable_thinking: bool


class Body(msgspec.Struct, omit_defaults=True):
    model: str
    messages: list[Message]
    max_tokens: int | UnsetType = UNSET
    max_completion_tokens: int | UnsetType = UNSET
    temperature: float | UnsetType = UNSET
    top_p: float | UnsetType = UNSET
    stop: tuple[str, ...] | UnsetType = UNSET
    seed: int | UnsetType = UNSET
    reasoning_effort: Effort | UnsetType = UNSET
    enable_thinking: bool | UnsetType = UNSET
    chat_template_kwargs: TemplateSettings | UnsetType = UNSET
    thinking: ThinkingMode | UnsetType = UNSET
    reasoning_split: bool | UnsetType = UNSET
    tools: list[Tool] | UnsetType = UNSET
    response_format: ResponseFormat | UnsetType = UNSET
    stream: bool | UnsetType = UNSET
    stream_options: StreamOptions | UnsetType = UNSET


class TokenDetails(msgspec.Struct):
    cached_tokens: int | None = None
    reasoning_tokens: int | None = None


class Usage(msgspec.Struct):
    prompt_tokens: int | None = None
    completion_tokens: int | None = None
    prompt_tokens_details: TokenDetails | None = None
    completion_tokens_details: TokenDetails | None = None


class ReplyPart(msgspec.Struct):
    text: str | None = None


class ReplyFunction(msgspec.Struct):
    name: str | None = None
    arguments: msgspec.Raw = msgspec.Raw()


class ReplyCall(msgspec.Struct):
    id: str | None = None
    index: int | None = None
    function: ReplyFunction | None = None


class ReplyMessage(msgspec.Struct):
    """A whole message or a piece of a streamed one: the fields are the same."""

    content: str | list[ReplyPart] | None = None
    refusal: str | None = None
    reasoning_content: str | None = None
    reasoning: str | None = None
    reasoning_details: list[ReplyPart] | None = None
    tool_calls: list[ReplyCall] | None = None


class Choice(msgspec.Struct):
    message: ReplyMessage | None = None
    delta: ReplyMessage | None = None
    finish_reason: str | None = None
    error: ErrorDetail | None = None


class MiniMaxStatus(msgspec.Struct):
    status_code: int = 0
    status_msg: str | None = None


class Reply(msgspec.Struct):
    model: str | None = None
    choices: list[Choice] | None = None
    usage: Usage | None = None
    error: ErrorDetail | str | None = None
    base_resp: MiniMaxStatus | None = None


reply_decoder = msgspec.json.Decoder(Reply)
encoder = msgspec.json.Encoder()
string_decoder = msgspec.json.Decoder(str)
