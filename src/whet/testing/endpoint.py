"""A model server that answers what a function tells it to, in OpenAI's, Azure's and Anthropic's formats.

It listens on a free port of 127.0.0.1, so that what is tested against it goes through a real connection. Its replies
are written here by hand and not by `whet.models.wires`: otherwise a mistake there would agree with itself.
"""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Awaitable, Callable, Iterator, Mapping
from enum import StrEnum
from typing import Any, TypeAlias

import msgspec
from aiohttp import web

from whet.core import Finish, ModelReply, ToolCall, Usage


class Format(StrEnum):
    OPENAI = "openai"
    ANTHROPIC = "anthropic"


class StandInRequest(msgspec.Struct, frozen=True):
    """A request as it came in; header names are in lower case."""

    number: int
    """Counts from 0."""
    format: Format
    path: str
    query: dict[str, str]
    headers: dict[str, str]
    body: dict[str, Any]

    @property
    def stream(self) -> bool:
        return bool(self.body.get("stream"))

    @property
    def last_text(self) -> str:
        """The text of the last message, for answers that depend on it."""
        content = self.body["messages"][-1]["content"]
        if isinstance(content, str):
            return content
        return "".join(part.get("text", "") for part in content)


class StandInFault(msgspec.Struct, frozen=True):
    """An answer that is not a reply."""

    status: int = 503
    headers: Mapping[str, str] = {}
    body: bytes = b'{"error": {"message": "the stand-in fails as told", "type": "server_error"}}'
    drop: bool = False
    """Close the connection without a word."""
    cut_after: int | None = None
    """Begin `reply` with status 200 and close the connection after so many bytes of its body."""
    reply: ModelReply = ModelReply("")


Answer: TypeAlias = ModelReply | StandInFault
Answering: TypeAlias = Callable[[StandInRequest], Answer | Awaitable[Answer]]


class StandInEndpoint:
    """`async with StandInEndpoint(answer) as endpoint:` serves until the block ends.

    `answer` may be a coroutine function, so that a test decides when a reply is given. `latency` is seconds before each
    reply, for measurements. Streams are written `piece` bytes at a time, cut wherever that falls.
    """

    def __init__(self, answer: Answering, *, latency: float = 0.0, piece: int | None = None) -> None:
        self._answer = answer
        self._latency = latency
        self._piece = piece
        self._runner: web.AppRunner | None = None
        self.requests: list[StandInRequest] = []
        self.base_url = ""
        """The server's root: Anthropic's and Azure's base_url; OpenAI's has `/v1` after it."""
        self.in_flight = 0
        self.most_in_flight = 0

    async def __aenter__(self) -> StandInEndpoint:
        app = web.Application(client_max_size=256 * 1024 * 1024)
        app.router.add_post("/{path:.*}", self._handle)
        self._runner = web.AppRunner(app, access_log=None, shutdown_timeout=0.0)
        await self._runner.setup()
        site = web.TCPSite(self._runner, "127.0.0.1", 0, backlog=4096)
        await site.start()
        self.base_url = f"http://127.0.0.1:{self._runner.addresses[0][1]}"
        return self

    async def __aexit__(self, *exc_info: object) -> None:
        if self._runner is not None:
            await self._runner.cleanup()

    async def _handle(self, request: web.Request) -> web.StreamResponse:
        self.in_flight += 1
        self.most_in_flight = max(self.most_in_flight, self.in_flight)
        try:
            return await self._respond(request)
        finally:
            self.in_flight -= 1

    async def _respond(self, http: web.Request) -> web.StreamResponse:
        spoken = _format(http.path)
        if spoken is None:
            return web.json_response({"error": {"message": f"no such path: {http.path}"}}, status=404)
        request = StandInRequest(
            len(self.requests),
            spoken,
            http.path,
            dict(http.query),
            {name.lower(): value for name, value in http.headers.items()},
            msgspec.json.decode(await http.read(), type=dict[str, Any]),
        )
        self.requests.append(request)
        answer = self._answer(request)
        if inspect.isawaitable(answer):
            answer = await answer
        if self._latency:
            await asyncio.sleep(self._latency)
        if isinstance(answer, StandInFault):
            return await self._fail(http, request, answer)
        if request.stream:
            return await self._stream(http, encode_events(request, answer))
        return web.Response(body=encode_whole(request, answer), content_type="application/json")

    async def _fail(self, http: web.Request, request: StandInRequest, fault: StandInFault) -> web.StreamResponse:
        if fault.drop:
            _close(http)
            return web.Response()
        if fault.cut_after is None:
            return web.Response(status=fault.status, headers=fault.headers, body=fault.body)
        body = encode_events(request, fault.reply) if request.stream else encode_whole(request, fault.reply)
        response = web.StreamResponse(headers={"Content-Type": "text/event-stream"})
        response.content_length = len(body)
        await response.prepare(http)
        await response.write(body[: fault.cut_after])
        _close(http)
        return response

    async def _stream(self, http: web.Request, body: bytes) -> web.StreamResponse:
        response = web.StreamResponse(headers={"Content-Type": "text/event-stream"})
        await response.prepare(http)
        piece = self._piece or len(body)
        for start in range(0, len(body), piece):
            await response.write(body[start : start + piece])
        await response.write_eof()
        return response


def _close(http: web.Request) -> None:
    if http.transport is not None:
        http.transport.close()


def _format(path: str) -> Format | None:
    if path.endswith("/chat/completions"):
        return Format.OPENAI
    return Format.ANTHROPIC if path.endswith("/v1/messages") else None


def encode_whole(request: StandInRequest, reply: ModelReply) -> bytes:
    body = _openai_whole(request, reply) if request.format is Format.OPENAI else _anthropic_whole(request, reply)
    return msgspec.json.encode(body)


def encode_events(request: StandInRequest, reply: ModelReply) -> bytes:
    if request.format is Format.OPENAI:
        chunks = [b"data: " + msgspec.json.encode(chunk) for chunk in _openai_chunks(request, reply)]
        return b"\n\n".join((*chunks, b"data: [DONE]", b""))
    return b"".join(
        b"event: " + event["type"].encode() + b"\ndata: " + msgspec.json.encode(event) + b"\n\n"
        for event in _anthropic_events(request, reply)
    )


def _pieces(text: str, size: int = 5) -> list[str]:
    return [text[start : start + size] for start in range(0, len(text), size)]


_OPENAI_FINISH = {
    Finish.STOP: "stop",
    Finish.LENGTH: "length",
    Finish.TOOL_CALLS: "tool_calls",
    Finish.FILTERED: "content_filter",
}


def _openai_whole(request: StandInRequest, reply: ModelReply) -> dict[str, Any]:
    message: dict[str, Any] = {"role": "assistant", "content": reply.text or None, "refusal": None}
    if reply.reasoning:
        message["reasoning_content"] = reply.reasoning
    if reply.tool_calls:
        message["tool_calls"] = [_openai_call(call) for call in reply.tool_calls]
    choice = {"index": 0, "message": message, "logprobs": None, "finish_reason": _OPENAI_FINISH[reply.finish]}
    return {**_openai_head(request, reply, "chat.completion"), "choices": [choice], "usage": _openai_usage(reply.usage)}


def _openai_chunks(request: StandInRequest, reply: ModelReply) -> Iterator[dict[str, Any]]:
    head = _openai_head(request, reply, "chat.completion.chunk")

    def chunk(delta: dict[str, Any], finish: str | None = None) -> dict[str, Any]:
        return {**head, "choices": [{"index": 0, "delta": delta, "logprobs": None, "finish_reason": finish}]}

    yield chunk({"role": "assistant", "content": ""})
    for piece in _pieces(reply.reasoning):
        yield chunk({"reasoning_content": piece})
    for piece in _pieces(reply.text):
        yield chunk({"content": piece})
    for index, call in enumerate(reply.tool_calls):
        opening = _openai_call(ToolCall(call.id, call.name, ""))
        yield chunk({"tool_calls": [{"index": index, **opening}]})
        for piece in _pieces(call.arguments):
            yield chunk({"tool_calls": [{"index": index, "function": {"arguments": piece}}]})
    yield chunk({}, _OPENAI_FINISH[reply.finish])
    if request.body.get("stream_options", {}).get("include_usage"):
        yield {**head, "choices": [], "usage": _openai_usage(reply.usage)}


def _openai_head(request: StandInRequest, reply: ModelReply, kind: str) -> dict[str, Any]:
    model = reply.served_by or request.body.get("model", "")
    return {"id": f"chatcmpl-{request.number}", "object": kind, "created": 1_700_000_000, "model": model}


def _openai_call(call: ToolCall) -> dict[str, Any]:
    return {"id": call.id, "type": "function", "function": {"name": call.name, "arguments": call.arguments}}


def _openai_usage(usage: Usage | None) -> dict[str, Any] | None:
    if usage is None:
        return None
    return {
        "prompt_tokens": usage.input_tokens,
        "completion_tokens": usage.output_tokens,
        "total_tokens": usage.input_tokens + usage.output_tokens,
        "prompt_tokens_details": {"cached_tokens": usage.cached_tokens},
        "completion_tokens_details": {"reasoning_tokens": usage.reasoning_tokens},
    }


_ANTHROPIC_FINISH = {
    Finish.STOP: "end_turn",
    Finish.LENGTH: "max_tokens",
    Finish.TOOL_CALLS: "tool_use",
    Finish.FILTERED: "refusal",
}


def _anthropic_whole(request: StandInRequest, reply: ModelReply) -> dict[str, Any]:
    return {
        **_anthropic_head(request, reply),
        "content": _anthropic_blocks(reply),
        "stop_reason": _ANTHROPIC_FINISH[reply.finish],
        "usage": _anthropic_usage(reply.usage or Usage()),
    }


def _anthropic_head(request: StandInRequest, reply: ModelReply) -> dict[str, Any]:
    model = reply.served_by or request.body.get("model", "")
    head = {"id": f"msg_{request.number}", "type": "message", "role": "assistant", "model": model}
    return {**head, "stop_sequence": None}


def _anthropic_blocks(reply: ModelReply) -> list[dict[str, Any]]:
    blocks: list[dict[str, Any]] = []
    if reply.reasoning:
        blocks.append({"type": "thinking", "thinking": reply.reasoning, "signature": "c2lnbmVk"})
    if reply.text:
        blocks.append({"type": "text", "text": reply.text})
    for call in reply.tool_calls:
        arguments = msgspec.json.decode(call.arguments)
        blocks.append({"type": "tool_use", "id": call.id, "name": call.name, "input": arguments})
    return blocks


def _anthropic_events(request: StandInRequest, reply: ModelReply) -> Iterator[dict[str, Any]]:
    usage = _anthropic_usage(reply.usage or Usage())
    start: dict[str, Any] = {**_anthropic_head(request, reply), "content": [], "stop_reason": None}
    yield {"type": "message_start", "message": {**start, "usage": {**usage, "output_tokens": 1}}}
    yield {"type": "ping"}
    calls = iter(reply.tool_calls)
    for index, block in enumerate(_anthropic_blocks(reply)):
        kind = block["type"]
        opening: dict[str, Any] = dict(block)
        if kind == "tool_use":
            opening["input"] = {}
            deltas = _deltas("input_json_delta", "partial_json", next(calls).arguments)
        else:
            opening[kind] = ""
            deltas = _deltas(f"{kind}_delta", kind, block[kind])
        yield {"type": "content_block_start", "index": index, "content_block": opening}
        for delta in deltas:
            yield {"type": "content_block_delta", "index": index, "delta": delta}
        yield {"type": "content_block_stop", "index": index}
    ended = {"stop_reason": _ANTHROPIC_FINISH[reply.finish], "stop_sequence": None}
    yield {"type": "message_delta", "delta": ended, "usage": {"output_tokens": usage["output_tokens"]}}
    yield {"type": "message_stop"}


def _deltas(kind: str, field: str, text: str) -> list[dict[str, str]]:
    return [{"type": kind, field: piece} for piece in _pieces(text)]


def _anthropic_usage(usage: Usage) -> dict[str, Any]:
    return {
        "input_tokens": usage.input_tokens - usage.cached_tokens,
        "cache_read_input_tokens": usage.cached_tokens,
        "cache_creation_input_tokens": 0,
        "output_tokens": usage.output_tokens,
        "output_tokens_details": {"thinking_tokens": usage.reasoning_tokens},
    }
