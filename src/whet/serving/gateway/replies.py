"""Answers in OpenAI's form: ours written, and those of an upstream marked with the policy that gave them. Pure."""

from __future__ import annotations

from collections.abc import Generator
from typing import Any

import msgspec
from msgspec import Raw

from whet.core import BadReply, Finish, ModelReply, Usage
from whet.models.wires.thinking import ThinkFilter

DONE = b"data: [DONE]\n\n"


class Stamp(msgspec.Struct, frozen=True):
    """What an answer says of itself."""

    id: str
    created: int
    model: str
    """As the caller named it."""
    record: str
    """The record of the policy that answers, or "base"."""
    chat: bool = True


_FINISHES = {Finish.FILTERED: "content_filter"}
_fields = msgspec.json.Decoder(dict[str, Raw])
_encoder = msgspec.json.Encoder()


class UsageBody(msgspec.Struct, frozen=True):
    prompt_tokens: int | None = None
    completion_tokens: int | None = None


class DeltaBody(msgspec.Struct, frozen=True):
    content: str | None = None


class PieceChoice(msgspec.Struct, frozen=True):
    delta: DeltaBody = DeltaBody()


class PieceBody(msgspec.Struct, frozen=True):
    choices: tuple[PieceChoice, ...] = ()


_usage = msgspec.json.Decoder(UsageBody | None)
_piece = msgspec.json.Decoder(PieceBody)


def whole(stamp: Stamp, reply: ModelReply) -> bytes:
    choice: dict[str, Any] = {"index": 0, "finish_reason": _finish(reply), "logprobs": None}
    choice |= {"message": _message(reply)} if stamp.chat else {"text": reply.text}
    return _encoder.encode({**_head(stamp), "choices": [choice], "usage": _usage_body(reply.usage)})


def events(stamp: Stamp, pieces: list[str], reply: ModelReply, *, usage: bool) -> Generator[bytes]:
    """A whole answer as a stream of few events."""
    if opening := first_event(stamp):
        yield opening
    for piece in pieces:
        yield piece_event(stamp, piece)
    yield from last_events(stamp, reply, usage=usage)


def first_event(stamp: Stamp) -> bytes:
    return _event(stamp, {"role": "assistant", "content": ""}) if stamp.chat else b""


def piece_event(stamp: Stamp, text: str) -> bytes:
    return _event(stamp, {"content": text} if stamp.chat else text)


def last_events(stamp: Stamp, reply: ModelReply, *, usage: bool) -> Generator[bytes]:
    """Calls, the reason of the end, usage if it is wanted, and the mark of the end."""
    if stamp.chat and reply.tool_calls:
        calls = [{"index": place, **call} for place, call in enumerate(_calls(reply))]
        yield _event(stamp, {"tool_calls": calls})
    yield _event(stamp, {} if stamp.chat else "", _finish(reply))
    if usage:
        yield _data({**_head(stamp, chunk=True), "choices": [], "usage": _usage_body(reply.usage)})
    yield DONE


def error_event(body: bytes) -> bytes:
    """What went wrong after an answer had begun."""
    return b"data: " + body + b"\n\n"


def marked(body: bytes, stamp: Stamp) -> tuple[bytes, Usage | None]:
    """An upstream's own answer with the policy's mark, everything else as it came, and what it used."""
    fields = _read(body)
    return _encoder.encode(fields | _mark(stamp)), _used(fields)


def marked_event(event: bytes, stamp: Stamp, *, usage: bool) -> tuple[bytes, Usage | None]:
    """The same for one event of a stream; empty if it is one that the caller did not ask for."""
    if event == b"[DONE]":
        return DONE, None
    fields = _read(event)
    used = _used(fields)
    if used is not None and not usage:
        if bytes(fields.get("choices", Raw(b"[]"))).replace(b" ", b"") == b"[]":
            return b"", used
        fields["usage"] = Raw(b"null")
    return b"data: " + _encoder.encode(fields | _mark(stamp)) + b"\n\n", used


def without_thoughts(event: bytes, thoughts: ThinkFilter) -> bytes:
    """An event of a chat's stream, without what is in a block of thinking."""
    if b'"content"' not in event:
        return event
    try:
        piece = _piece.decode(event)
    except (msgspec.DecodeError, UnicodeError, RecursionError):
        return event
    text = piece.choices[0].delta.content if piece.choices else None
    if text is None or (shown := thoughts.feed(text)) == text:
        return event
    body = msgspec.json.decode(event)
    body["choices"][0]["delta"]["content"] = shown
    return _encoder.encode(body)


def _mark(stamp: Stamp) -> dict[str, Raw]:
    return {
        "model": Raw(_encoder.encode(stamp.model)),
        "system_fingerprint": Raw(_encoder.encode(stamp.record)),
    }


def _read(body: bytes) -> dict[str, Raw]:
    try:
        return _fields.decode(body)
    except (msgspec.DecodeError, UnicodeError, RecursionError) as error:
        raise BadReply("the upstream's reply cannot be read") from error


def _used(fields: dict[str, Raw]) -> Usage | None:
    raw = fields.get("usage")
    if raw is None:
        return None
    try:
        found = _usage.decode(raw)
    except (msgspec.DecodeError, UnicodeError, RecursionError):
        return None
    return Usage(found.prompt_tokens or 0, found.completion_tokens or 0) if found else None


def _head(stamp: Stamp, *, chunk: bool = False) -> dict[str, Any]:
    kind = ("chat.completion.chunk" if chunk else "chat.completion") if stamp.chat else "text_completion"
    head = {"id": stamp.id, "object": kind, "created": stamp.created, "model": stamp.model}
    return {**head, "system_fingerprint": stamp.record}


def _message(reply: ModelReply) -> dict[str, Any]:
    message: dict[str, Any] = {"role": "assistant", "content": reply.text or None, "refusal": None}
    if not reply.tool_calls:
        message["content"] = reply.text
    else:
        message["tool_calls"] = _calls(reply)
    if reply.reasoning:
        message["reasoning_content"] = reply.reasoning
    return message


def _calls(reply: ModelReply) -> list[dict[str, Any]]:
    return [
        {"id": call.id, "type": "function", "function": {"name": call.name, "arguments": call.arguments}}
        for call in reply.tool_calls
    ]


def _finish(reply: ModelReply) -> str:
    finish = Finish.TOOL_CALLS if reply.tool_calls else reply.finish
    return _FINISHES.get(finish, finish.value)


def _usage_body(usage: Usage | None) -> dict[str, Any] | None:
    if usage is None:
        return None
    return {
        "prompt_tokens": usage.input_tokens,
        "completion_tokens": usage.output_tokens,
        "total_tokens": usage.input_tokens + usage.output_tokens,
        "prompt_tokens_details": {"cached_tokens": usage.cached_tokens},
    }


def _event(stamp: Stamp, delta: dict[str, Any] | str, finish: str | None = None) -> bytes:
    choice: dict[str, Any] = {"index": 0, "finish_reason": finish, "logprobs": None}
    choice["delta" if stamp.chat else "text"] = delta
    return _data({**_head(stamp, chunk=True), "choices": [choice]})


def _data(value: dict[str, Any]) -> bytes:
    return b"data: " + _encoder.encode(value) + b"\n\n"
