"""OpenAI chat completions, as OpenAI, Azure and the many servers that imitate it speak it.

What differs between them is a field of `OpenAIWire`; nothing else in whet asks which server it talks to.
"""

from __future__ import annotations

import re
from base64 import b64encode
from collections.abc import Mapping
from enum import StrEnum
from urllib.parse import quote

import msgspec

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
from whet.models.wires import openai_json as shape
from whet.models.wires.base import ErrorDetail, EventReader, StreamDecoder, decode_json, failure, raw_text, read_error
from whet.models.wires.schema import is_strict
from whet.models.wires.thinking import ThinkFilter, split_thinking


class TokenLimit(StrEnum):
    """The name under which a server takes the bound on the answer's length."""

    MAX_TOKENS = "max_tokens"
    MAX_COMPLETION_TOKENS = "max_completion_tokens"
    BY_MODEL = "by_model"
    """OpenAI's own: its reasoning models refuse the older name."""


class Thinking(StrEnum):
    """How `Sampling.thinking` is said to a server."""

    UNKNOWN = "unknown"
    """It has no such switch; the setting is left out."""
    FLAG = "flag"
    """`enable_thinking` (Qwen)."""
    TEMPLATE = "template"
    """`chat_template_kwargs.enable_thinking` (vLLM, llama.cpp)."""
    MODE = "mode"
    """`thinking.type` (MiniMax)."""
    EFFORT = "effort"
    """`reasoning_effort: none` switches it off (Ollama)."""


class Auth(StrEnum):
    BEARER = "bearer"
    API_KEY = "api-key"
    """Azure's header for keys; its tokens are bearers."""


_REASONING_FAMILY = re.compile(r"(?:.*/)?(?:o\d|gpt-[5-9]|gpt-\d\d|codex-)")


class OpenAIWire(msgspec.Struct, frozen=True):
    token_limit: TokenLimit = TokenLimit.MAX_TOKENS
    thinking: Thinking = Thinking.UNKNOWN
    think_tags: bool = False
    """The server leaves `<think>` blocks in the answer."""
    reasoning_split: bool = False
    """Ask MiniMax to keep the reasoning out of the answer itself."""
    schemas: bool = True
    """The server can hold a model to a JSON schema."""
    auth: Auth = Auth.BEARER
    deployment: str = ""
    """Azure: goes in the place of the model's name."""
    api_version: str = ""
    """Azure's dated interface, which has the deployment in its path. Empty for every other server."""

    def url(self, base_url: str, model: str, *, stream: bool) -> str:
        base = base_url.rstrip("/")
        if not self.api_version:
            return f"{base}/chat/completions"
        deployment = quote(self.deployment or model, safe="")
        version = quote(self.api_version, safe="")
        return f"{base}/openai/deployments/{deployment}/chat/completions?api-version={version}"

    def headers(self, secret: str) -> dict[str, str]:
        headers = {"Content-Type": "application/json"}
        if secret and self.auth is Auth.API_KEY:
            headers["api-key"] = secret
        elif secret:
            headers["Authorization"] = f"Bearer {secret}"
        return headers

    def encode(self, model: str, request: ModelRequest, *, stream: bool) -> bytes:
        body = shape.Body(self.deployment or model, [_message(message) for message in request.messages])
        self._set_sampling(body, model, request.sampling)
        if request.seed is not None:
            body.seed = request.seed
        if request.tools:
            body.tools = [_tool(tool) for tool in request.tools]
        if request.schema is not None and self.schemas:
            strict = is_strict(request.schema)
            body.response_format = shape.ResponseFormat(shape.Schema("answer", request.schema, strict))
        if self.reasoning_split:
            body.reasoning_split = True
        if stream:
            body.stream = True
            body.stream_options = shape.StreamOptions(include_usage=True)
        return shape.encoder.encode(body)

    def _set_sampling(self, body: shape.Body, model: str, sampling: Sampling) -> None:
        if self._limit(model) is TokenLimit.MAX_TOKENS:
            body.max_tokens = sampling.max_tokens
        else:
            body.max_completion_tokens = sampling.max_tokens
        if sampling.temperature is not None:
            body.temperature = sampling.temperature
        if sampling.top_p is not None:
            body.top_p = sampling.top_p
        if sampling.stop:
            body.stop = sampling.stop
        if sampling.effort is not None:
            body.reasoning_effort = sampling.effort
        if sampling.thinking is not None:
            self._set_thinking(body, sampling.thinking)

    def _limit(self, model: str) -> TokenLimit:
        if self.token_limit is not TokenLimit.BY_MODEL:
            return self.token_limit
        return TokenLimit.MAX_COMPLETION_TOKENS if _REASONING_FAMILY.match(model) else TokenLimit.MAX_TOKENS

    def _set_thinking(self, body: shape.Body, on: bool) -> None:
        match self.thinking:
            case Thinking.FLAG:
                body.enable_thinking = on
            case Thinking.TEMPLATE:
                body.chat_template_kwargs = shape.TemplateSettings(on)
            case Thinking.MODE:
                body.thinking = shape.ThinkingMode("adaptive" if on else "disabled")
            case Thinking.EFFORT if not on:
                body.reasoning_effort = Effort.NONE
            case _:
                pass

    def decode(self, body: bytes) -> ModelReply:
        reply = decode_json(shape.reply_decoder, body)
        _raise_reported(reply)
        if not reply.choices:
            raise BadReply("the endpoint's reply has no choices")
        choice = reply.choices[0]
        message = choice.message
        if message is None:
            raise BadReply("the endpoint's reply has no message")
        calls = tuple(_tool_call(call, place) for place, call in enumerate(message.tool_calls or ()))
        text = _text(message.content)
        reasoning = _reasoning(message)
        if self.think_tags:
            thought, text = split_thinking(text)
            reasoning = reasoning or thought
        finish = _finish(choice.finish_reason, bool(calls))
        if message.refusal and not text:
            text, finish = message.refusal, Finish.FILTERED
        return ModelReply(text, calls, finish, _usage(reply.usage), reply.model or "", reasoning)

    def stream(self) -> StreamDecoder:
        return _OpenAIStream(self.think_tags)

    def refusal(
        self, status: int, headers: Mapping[str, str], body: bytes, *, secret: str = "", wall: float | None = None
    ) -> WhetError:
        return failure(status, read_error(body), headers, secret=secret, wall=wall)


class _PartialCall:
    def __init__(self, call_id: str) -> None:
        self.id = call_id
        self.name = ""
        self.arguments: list[str] = []


class _OpenAIStream:
    """Puts a streamed reply together. Text in a `<think>` block is held back from the deltas."""

    def __init__(self, think_tags: bool) -> None:
        self._events = EventReader()
        self._filter = ThinkFilter() if think_tags else None
        self._text: list[str] = []
        self._refusal: list[str] = []
        self._reasoning: list[str] = []
        self._calls: dict[int, _PartialCall] = {}
        self._finish_reason: str | None = None
        self._usage: shape.Usage | None = None
        self._model = ""
        self._ended = False

    def feed(self, chunk: bytes) -> list[str]:
        return [delta for event in self._events.feed(chunk) if (delta := self._event(event))]

    def finish(self) -> ModelReply:
        if not self._complete:
            for event in self._events.flush():
                self._event(event)
        if not self._complete:
            raise BadReply("the endpoint's stream broke off before its end")
        calls = tuple(
            ToolCall(call.id or f"call_{place}", call.name, "".join(call.arguments))
            for place, (_, call) in enumerate(sorted(self._calls.items()))
        )
        text, reasoning = "".join(self._text), "".join(self._reasoning)
        if self._filter is not None:
            thought, text = split_thinking(text)
            reasoning = reasoning or thought
        finish = _finish(self._finish_reason, bool(calls))
        if self._refusal and not text:
            text, finish = "".join(self._refusal), Finish.FILTERED
        return ModelReply(text, calls, finish, _usage(self._usage), self._model, reasoning)

    @property
    def _complete(self) -> bool:
        return self._ended or self._finish_reason is not None

    def _event(self, event: bytes) -> str:
        if event.strip() == b"[DONE]":
            self._ended = True
            return ""
        reply = decode_json(shape.reply_decoder, event)
        _raise_reported(reply)
        self._model = reply.model or self._model
        self._usage = reply.usage or self._usage
        if not reply.choices:
            return ""
        choice = reply.choices[0]
        self._finish_reason = choice.finish_reason or self._finish_reason
        delta = choice.delta or choice.message
        return self._delta(delta) if delta is not None else ""

    def _delta(self, delta: shape.ReplyMessage) -> str:
        self._reasoning.append(_reasoning(delta))
        if delta.refusal:
            self._refusal.append(delta.refusal)
        for piece in delta.tool_calls or ():
            self._add_call(piece)
        text = _text(delta.content)
        self._text.append(text)
        return text if self._filter is None else self._filter.feed(text)

    def _add_call(self, piece: shape.ReplyCall) -> None:
        """Pieces belong together by index; a server without indexes starts a new call with each new id."""
        last = max(self._calls, default=-1)
        place = piece.index
        if place is None:
            same = last >= 0 and piece.id in (None, "", self._calls[last].id)
            place = last if same else last + 1
        call = self._calls.setdefault(place, _PartialCall(piece.id or ""))
        call.id = call.id or piece.id or ""
        if piece.function is not None:
            call.name = call.name or piece.function.name or ""
            call.arguments.append(_arguments(piece.function.arguments))


def _message(message: Message) -> shape.Message:
    wire = shape.Message(str(message.speaker), _content(message.content))
    if message.tool_calls:
        wire.tool_calls = [
            shape.Call(call.id, shape.CalledFunction(call.name, call.arguments)) for call in message.tool_calls
        ]
    if message.speaker is Speaker.TOOL:
        wire.tool_call_id = message.tool_call_id
    return wire


def _content(content: str | tuple[TextPart | ImagePart, ...]) -> str | list[shape.Text | shape.Image]:
    if isinstance(content, str):
        return content
    return [shape.Text(part.text) if isinstance(part, TextPart) else _image(part) for part in content]


def _image(part: ImagePart) -> shape.Image:
    return shape.Image(shape.ImageUrl(f"data:{part.media_type};base64,{b64encode(part.data).decode()}"))


def _tool(tool: ToolSpec) -> shape.Tool:
    return shape.Tool(shape.Function(tool.name, tool.description, tool.parameters))


def _text(content: str | list[shape.ReplyPart] | None) -> str:
    if isinstance(content, str):
        return content
    return "".join(part.text or "" for part in content or ())


def _reasoning(message: shape.ReplyMessage) -> str:
    return message.reasoning_content or message.reasoning or _text(message.reasoning_details)


def _tool_call(call: shape.ReplyCall, place: int) -> ToolCall:
    function = call.function or shape.ReplyFunction()
    return ToolCall(call.id or f"call_{place}", function.name or "", _arguments(function.arguments))


def _arguments(raw: msgspec.Raw) -> str:
    """Arguments are JSON within a string; some servers send the object itself."""
    text = raw_text(raw)
    if text.startswith('"'):
        return decode_json(shape.string_decoder, text)
    return "" if text == "null" else text


_FINISHES = {
    "stop": Finish.STOP,
    "length": Finish.LENGTH,
    "max_tokens": Finish.LENGTH,
    "tool_calls": Finish.TOOL_CALLS,
    "function_call": Finish.TOOL_CALLS,
    "content_filter": Finish.FILTERED,
}


def _finish(reason: str | None, called: bool) -> Finish:
    """Servers stop "normally" after tool calls, or claim calls that are not there; what is there decides."""
    finish = _FINISHES.get(reason or "", Finish.STOP)
    if finish in (Finish.STOP, Finish.TOOL_CALLS):
        return Finish.TOOL_CALLS if called else Finish.STOP
    return finish


def _usage(usage: shape.Usage | None) -> Usage | None:
    if usage is None or (usage.prompt_tokens is None and usage.completion_tokens is None):
        return None
    cached = usage.prompt_tokens_details.cached_tokens if usage.prompt_tokens_details else None
    reasoned = usage.completion_tokens_details.reasoning_tokens if usage.completion_tokens_details else None
    counts = (usage.prompt_tokens, usage.completion_tokens, cached, reasoned)
    return Usage(*(max(0, count or 0) for count in counts))


_MINIMAX_STATUS = {
    1002: 429,
    1039: 429,
    1041: 429,
    1004: 401,
    2049: 401,
    1008: 402,
    1026: 400,
    1027: 400,
    1001: 504,
}
"""MiniMax reports failures in the body of a 200; its own numbers, as the HTTP statuses that mean the same."""


def _raise_reported(reply: shape.Reply) -> None:
    """Gateways send errors with status 200, the more so once a stream has begun."""
    if reply.error is not None:
        detail = ErrorDetail(message=reply.error) if isinstance(reply.error, str) else reply.error
        raise _reported(detail)
    if reply.choices and reply.choices[0].error is not None:
        raise _reported(reply.choices[0].error)
    status = reply.base_resp
    if status is not None and status.status_code != 0 and not reply.choices:
        http = _MINIMAX_STATUS.get(status.status_code, 400 if status.status_code >= 2000 else 500)
        raise failure(http, ErrorDetail(message=status.status_msg, code=status.status_code))


def _reported(detail: ErrorDetail) -> WhetError:
    code = detail.code if isinstance(detail.code, int) else 500
    if isinstance(detail.code, str) and "rate_limit" in detail.code:
        code = 429
    return failure(code if 400 <= code < 600 else 500, detail)
