"""Anthropic messages: the system text apart, tool calls and results as blocks, thinking as blocks of its own."""

from __future__ import annotations

import re
from base64 import b64encode
from collections.abc import Iterable, Mapping

import msgspec
from msgspec import UNSET

from whet.core import (
    BadReply,
    Effort,
    Finish,
    ImagePart,
    Message,
    ModelReply,
    ModelRequest,
    Sampling,
    Speaker,
    TextPart,
    ToolCall,
    ToolSpec,
    Usage,
    WhetError,
)
from whet.models.wires import anthropic_json as shape
from whet.models.wires.base import ErrorDetail, EventReader, StreamDecoder, decode_json, failure, raw_text, read_error
from whet.models.wires.schema import closed

API_VERSION = "2023-06-01"
"""The version after this one has no temperature, which earlier models still take."""


class AnthropicWire(msgspec.Struct, frozen=True):
    def url(self, base_url: str, model: str, *, stream: bool) -> str:
        return f"{base_url.rstrip('/').removesuffix('/v1')}/v1/messages"

    def headers(self, secret: str) -> dict[str, str]:
        headers = {"Content-Type": "application/json", "anthropic-version": API_VERSION}
        if secret:
            headers["x-api-key"] = secret
        return headers

    def encode(self, model: str, request: ModelRequest, *, stream: bool) -> bytes:
        """Seeds are left out: this interface has none."""
        body = shape.Body(model, request.sampling.max_tokens, _messages(request.messages))
        system = "\n\n".join(
            message.text for message in request.messages if message.speaker is Speaker.SYSTEM and message.text
        )
        if system:
            body.system = system
        _set_sampling(body, request)
        if request.tools:
            body.tools = [_tool(tool) for tool in request.tools]
        if request.schema is not None:
            effort = body.output_config.effort if isinstance(body.output_config, shape.OutputConfig) else UNSET
            body.output_config = shape.OutputConfig(effort, shape.Format(closed(request.schema)))
        if stream:
            body.stream = True
        return shape.encoder.encode(body)

    def decode(self, body: bytes) -> ModelReply:
        reply = decode_json(shape.reply_decoder, body)
        if reply.error is not None:
            raise _reported(reply.error)
        if reply.content is None:
            raise BadReply("the endpoint's reply has no content")
        calls = tuple(_tool_call(block) for block in reply.content if block.type == "tool_use")
        return ModelReply(
            "".join(block.text or "" for block in reply.content if block.type == "text"),
            calls,
            _finish(reply.stop_reason, bool(calls)),
            _usage(reply.usage),
            reply.model or "",
            "".join(block.thinking or "" for block in reply.content if block.type == "thinking"),
        )

    def stream(self) -> StreamDecoder:
        return _AnthropicStream()

    def refusal(
        self, status: int, headers: Mapping[str, str], body: bytes, *, secret: str = "", wall: float | None = None
    ) -> WhetError:
        return failure(status, read_error(body), headers, secret=secret, wall=wall)


class _AnthropicStream:
    def __init__(self) -> None:
        self._events = EventReader()
        self._text: list[str] = []
        self._thinking: list[str] = []
        self._calls: dict[int, tuple[str, str, list[str]]] = {}
        self._usage: shape.Usage | None = None
        self._stop_reason: str | None = None
        self._model = ""
        self._ended = False

    def feed(self, chunk: bytes) -> list[str]:
        return [delta for data in self._events.feed(chunk) if (delta := self._take(data))]

    def finish(self) -> ModelReply:
        if not self._ended:
            for data in self._events.flush():
                self._take(data)
        if not self._ended:
            raise BadReply("the endpoint's stream broke off before its end")
        calls = tuple(ToolCall(use_id, name, "".join(pieces) or "{}") for use_id, name, pieces in self._calls.values())
        return ModelReply(
            "".join(self._text),
            calls,
            _finish(self._stop_reason, bool(calls)),
            _usage(self._usage),
            self._model,
            "".join(self._thinking),
        )

    def _take(self, data: bytes) -> str:
        event = decode_json(shape.event_decoder, data)
        if event.error is not None:
            raise _reported(event.error)
        if event.type == "message_start" and event.message is not None:
            self._model = event.message.model or ""
            self._usage = event.message.usage
        elif event.type == "content_block_start" and event.content_block is not None:
            return self._start_block(event.index or 0, event.content_block)
        elif event.type == "content_block_delta" and event.delta is not None:
            return self._add(event.index or 0, event.delta)
        elif event.type == "message_delta":
            self._stop_reason = event.delta.stop_reason if event.delta else None
            self._usage = _later_usage(self._usage, event.usage)
        elif event.type == "message_stop":
            self._ended = True
        return ""

    def _start_block(self, index: int, block: shape.ReplyBlock) -> str:
        if block.type == "tool_use":
            given = raw_text(block.input)
            self._calls[index] = (block.id or f"call_{index}", block.name or "", [] if given in ("", "{}") else [given])
        self._thinking.append(block.thinking or "")
        text = block.text or ""
        self._text.append(text)
        return text

    def _add(self, index: int, delta: shape.Delta) -> str:
        if delta.partial_json and index in self._calls:
            self._calls[index][2].append(delta.partial_json)
        if delta.thinking:
            self._thinking.append(delta.thinking)
        text = delta.text or ""
        self._text.append(text)
        return text


def _messages(messages: Iterable[Message]) -> list[shape.Message]:
    """Speakers must alternate, and all results of one turn's calls belong into one message: neighbours are joined."""
    joined: list[shape.Message] = []
    for message in messages:
        if message.speaker is Speaker.SYSTEM:
            continue
        role = "assistant" if message.speaker is Speaker.ASSISTANT else "user"
        blocks = _blocks(message)
        if not blocks:
            continue
        if joined and joined[-1].role == role and isinstance(joined[-1].content, list):
            joined[-1].content.extend(blocks)
        else:
            joined.append(shape.Message(role, blocks))
    return joined


def _blocks(message: Message) -> list[shape.Block]:
    if message.speaker is Speaker.TOOL:
        content = message.content if isinstance(message.content, str) else _parts(message.content)
        return [shape.ToolResult(_use_id(message.tool_call_id), content, message.tool_error)]
    blocks: list[shape.Block] = [*_parts(message.content)]
    blocks.extend(shape.ToolUse(_use_id(call.id), call.name, _input(call.arguments)) for call in message.tool_calls)
    return blocks


def _parts(content: str | tuple[TextPart | ImagePart, ...]) -> list[shape.Text | shape.Image]:
    """Empty texts are refused by the endpoint, so they are left out."""
    if isinstance(content, str):
        return [shape.Text(content)] if content else []
    return [
        shape.Text(part.text) if isinstance(part, TextPart) else _image(part)
        for part in content
        if not (isinstance(part, TextPart) and not part.text)
    ]


def _image(part: ImagePart) -> shape.Image:
    return shape.Image(shape.Source(part.media_type, b64encode(part.data).decode()))


_ID_CHARACTERS = re.compile(r"[^a-zA-Z0-9_-]")


def _use_id(call_id: str) -> str:
    """Calls made by another provider's model, as in a conversation handed to an expert, may have other characters."""
    return _ID_CHARACTERS.sub("_", call_id) or "call"


def _input(arguments: str) -> msgspec.Raw:
    """The endpoint takes objects only; what a model wrote instead is shown to it as text."""
    try:
        shape.object_decoder.decode(arguments)
    except (msgspec.DecodeError, UnicodeError, RecursionError):
        return msgspec.Raw(shape.encoder.encode({"not_a_json_object": arguments}))
    return msgspec.Raw(arguments.encode())


def _tool(tool: ToolSpec) -> shape.Tool:
    return shape.Tool(tool.name, tool.description, tool.parameters)


_MODEL_VERSION = re.compile(r"claude-(?:[a-z]+-)?(\d+)(?:[-.](\d{1,2})(?!\d))?")


def _takes_budget(model: str) -> bool:
    """Models before 4.6 think by a budget of tokens; later ones by a grade, and most refuse a budget."""
    match = _MODEL_VERSION.search(model)
    return match is not None and (int(match[1]), int(match[2] or 0)) < (4, 6)


_BUDGETS = {
    Effort.MINIMAL: 1024,
    Effort.LOW: 4096,
    Effort.MEDIUM: 8192,
    Effort.HIGH: 16384,
    Effort.XHIGH: 32768,
}
_SMALLEST_BUDGET = 1024
_GRADES = {
    Effort.MINIMAL: "low",
    Effort.LOW: "low",
    Effort.MEDIUM: "medium",
    Effort.HIGH: "high",
    Effort.XHIGH: "xhigh",
}


def _set_sampling(body: shape.Body, request: ModelRequest) -> None:
    sampling = request.sampling
    if sampling.stop:
        body.stop_sequences = sampling.stop
    if _set_thinking(body, request):
        # A thinking model refuses both.
        return
    if sampling.temperature is not None:
        body.temperature = sampling.temperature
    if sampling.top_p is not None:
        body.top_p = sampling.top_p


def _set_thinking(body: shape.Body, request: ModelRequest) -> bool:
    """Switch thinking as asked; whether it is on."""
    sampling = request.sampling
    effort = None if sampling.thinking is False else sampling.effort
    if sampling.thinking is False or effort is Effort.NONE:
        body.thinking = shape.ThinkingConfig("disabled")
        return False
    if effort is None and sampling.thinking is None:
        return False
    if _takes_budget(body.model):
        return _set_budget(body, effort or Effort.MEDIUM, sampling, request.messages)
    body.thinking = shape.ThinkingConfig("adaptive")
    if effort is not None:
        body.output_config = shape.OutputConfig(_GRADES[effort])
    return True


def _set_budget(body: shape.Body, effort: Effort, sampling: Sampling, messages: tuple[Message, ...]) -> bool:
    """Thinking counts towards `max_tokens`, so it gets at most three quarters of them, and none of too few.

    Within a tool exchange these models demand their own signed thinking back, which a conversation does not carry;
    so they think before the first call of an exchange and not between calls.
    """
    budget = min(_BUDGETS[effort], sampling.max_tokens * 3 // 4)
    if budget < _SMALLEST_BUDGET or (messages and messages[-1].speaker is Speaker.TOOL):
        return False
    body.thinking = shape.ThinkingConfig("enabled", budget)
    return True


def _tool_call(block: shape.ReplyBlock) -> ToolCall:
    return ToolCall(block.id or "call", block.name or "", raw_text(block.input) or "{}")


_FINISHES = {
    "max_tokens": Finish.LENGTH,
    "model_context_window_exceeded": Finish.LENGTH,
    "refusal": Finish.FILTERED,
}


def _finish(reason: str | None, called: bool) -> Finish:
    return _FINISHES.get(reason or "", Finish.TOOL_CALLS if called else Finish.STOP)


def _usage(usage: shape.Usage | None) -> Usage | None:
    """The endpoint counts fresh, cached and newly cached input apart; together they are the input."""
    if usage is None or (usage.input_tokens is None and usage.output_tokens is None):
        return None
    thought = usage.output_tokens_details.thinking_tokens if usage.output_tokens_details else None
    fresh, output, read, written, reasoned = (
        max(0, count or 0)
        for count in (
            usage.input_tokens,
            usage.output_tokens,
            usage.cache_read_input_tokens,
            usage.cache_creation_input_tokens,
            thought,
        )
    )
    return Usage(fresh + read + written, output, read, reasoned)


def _later_usage(first: shape.Usage | None, later: shape.Usage | None) -> shape.Usage | None:
    """Counts at the end of a stream are totals, but only of what they name."""
    if first is None or later is None:
        return later or first
    return shape.Usage(
        first.input_tokens if later.input_tokens is None else later.input_tokens,
        first.output_tokens if later.output_tokens is None else later.output_tokens,
        later.cache_read_input_tokens or first.cache_read_input_tokens,
        later.cache_creation_input_tokens or first.cache_creation_input_tokens,
        later.output_tokens_details or first.output_tokens_details,
    )


_STATUS_OF_TYPE = {
    "invalid_request_error": 400,
    "authentication_error": 401,
    "billing_error": 402,
    "permission_error": 403,
    "not_found_error": 404,
    "request_too_large": 413,
    "rate_limit_error": 429,
    "timeout_error": 504,
    "overloaded_error": 529,
}


def _reported(detail: ErrorDetail) -> WhetError:
    """An error within a reply that began well has no status of its own."""
    return failure(_STATUS_OF_TYPE.get(detail.type or "", 500), detail)
