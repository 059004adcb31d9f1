"""Whatever an endpoint sends, a wire answers with a reply or with an error of whet's own."""

import json
from contextlib import suppress
from itertools import pairwise

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from whet.core import BadReply, CredentialsError, EndpointError, Finish, ModelReply, ToolCall, Usage
from whet.models.wires import AnthropicWire, OpenAIWire, Wire
from whet.testing.endpoint import Format, StandInRequest, encode_events, encode_whole

WIRES: list[tuple[Wire, Format]] = [
    (OpenAIWire(), Format.OPENAI),
    (OpenAIWire(think_tags=True), Format.OPENAI),
    (AnthropicWire(), Format.ANTHROPIC),
]
both = pytest.mark.parametrize(("wire", "spoken"), WIRES)

texts = st.text(st.characters(codec="utf-8"), max_size=30)
KEYS = [
    "choices",
    "message",
    "delta",
    "content",
    "text",
    "tool_calls",
    "function",
    "arguments",
    "usage",
    "error",
    "type",
]
KEYS += ["index", "input", "content_block", "prompt_tokens", "finish_reason", "stop_reason", "code", "base_resp"]
KINDS = [
    "text",
    "tool_use",
    "message_start",
    "content_block_start",
    "content_block_delta",
    "message_delta",
    "message_stop",
]
values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | texts | st.sampled_from(KINDS),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(KEYS) | texts, inner, max_size=5),
    max_leaves=20,
)
calls = st.builds(
    ToolCall,
    st.from_regex(r"[a-z0-9]{1,8}", fullmatch=True),
    st.from_regex(r"[a-z_]{1,8}", fullmatch=True),
    st.dictionaries(texts, texts, max_size=2).map(lambda arguments: msgspec.json.encode(arguments).decode()),
)


@st.composite
def replies(draw: st.DrawFn) -> ModelReply:
    made = tuple(draw(st.lists(calls, max_size=3)))
    text = draw(texts.filter(lambda text: "<" not in text))
    finish = draw(st.sampled_from([Finish.LENGTH, Finish.FILTERED, Finish.TOOL_CALLS if made else Finish.STOP]))
    cached, reasoned = draw(st.integers(0, 99)), draw(st.integers(0, 99))
    usage = Usage(cached + draw(st.integers(0, 9999)), reasoned + draw(st.integers(0, 999)), cached, reasoned)
    return ModelReply(text, made, finish, usage, "some-model", draw(texts))


def asked(spoken: Format) -> StandInRequest:
    return StandInRequest(0, spoken, "/", {}, {}, {"model": "m", "stream_options": {"include_usage": True}})


def try_stream(wire: Wire, chunks: list[bytes]) -> ModelReply | None:
    decoder = wire.stream()
    try:
        for chunk in chunks:
            decoder.feed(chunk)
        return decoder.finish()
    except (EndpointError, CredentialsError):
        return None


@both
@given(body=st.binary(max_size=200) | values.map(lambda value: json.dumps(value).encode()))
def test_any_body_is_a_reply_or_an_error_of_ours(wire: Wire, spoken: Format, body: bytes) -> None:
    with suppress(EndpointError, CredentialsError):
        assert isinstance(wire.decode(body), ModelReply)


@both
@given(
    chunks=st.lists(
        st.binary(max_size=60) | values.map(lambda value: f"data: {json.dumps(value)}\n\n".encode()), max_size=6
    )
)
def test_any_stream_is_a_reply_or_an_error_of_ours(wire: Wire, spoken: Format, chunks: list[bytes]) -> None:
    try_stream(wire, chunks)


@both
def test_deep_nesting_is_a_bad_reply(wire: Wire, spoken: Format) -> None:
    for body in (
        b"[" * 100_000,
        b'{"error":{"code":' + b"[" * 100_000,
        b'{"content":[{"type":"text","input":' + b"[" * 99_999,
    ):
        with pytest.raises(BadReply):
            wire.decode(body)


@both
@given(
    status=st.integers(300, 599),
    headers=st.dictionaries(texts, texts, max_size=3),
    body=st.binary(max_size=80),
    said=values,
)
def test_any_refusal_is_an_error_of_ours(
    wire: Wire, spoken: Format, status: int, headers: dict[str, str], body: bytes, said: object
) -> None:
    for content in (body, json.dumps(said).encode(), json.dumps({"error": said}).encode()):
        assert isinstance(wire.refusal(status, headers, content), EndpointError | CredentialsError)


@both
@given(
    retry=st.sampled_from(["retry-after", "retry-after-ms", "x-ratelimit-reset-tokens", "date"]),
    text=texts | st.floats().map(str),
)
def test_any_hint_to_wait_is_seconds_or_nothing(wire: Wire, spoken: Format, retry: str, text: str) -> None:
    refusal = wire.refusal(429, {retry: text, "x-ratelimit-remaining-tokens": "0"}, b"")
    assert isinstance(refusal, EndpointError)
    assert refusal.retry_after is None or refusal.retry_after >= 0


@both
@given(reply=replies())
def test_a_whole_reply_is_read_as_it_was_meant(wire: Wire, spoken: Format, reply: ModelReply) -> None:
    assert wire.decode(encode_whole(asked(spoken), reply)) == reply


@both
@given(reply=replies(), data=st.data())
def test_a_cut_reply_is_a_bad_reply(wire: Wire, spoken: Format, reply: ModelReply, data: st.DataObject) -> None:
    body = encode_whole(asked(spoken), reply)
    with pytest.raises(BadReply):
        wire.decode(body[: data.draw(st.integers(0, len(body) - 1))])


@both
@given(reply=replies(), data=st.data())
def test_a_stream_is_read_the_same_wherever_it_is_cut(
    wire: Wire, spoken: Format, reply: ModelReply, data: st.DataObject
) -> None:
    body = encode_events(asked(spoken), reply)
    cuts = sorted({0, len(body), *data.draw(st.lists(st.integers(0, len(body)), max_size=20))})
    decoder = wire.stream()
    deltas = [delta for start, end in pairwise(cuts) for delta in decoder.feed(body[start:end])]
    assert decoder.finish() == reply
    # White space that may yet turn out to stand before a `<think>` block is not given out.
    assert "".join(deltas) == (reply.text if wire != OpenAIWire(think_tags=True) or reply.text.strip() else "")


@both
@given(reply=replies(), data=st.data())
def test_a_broken_stream_is_never_taken_for_a_whole_one(
    wire: Wire, spoken: Format, reply: ModelReply, data: st.DataObject
) -> None:
    body = encode_events(asked(spoken), reply)
    read = try_stream(wire, [body[: data.draw(st.integers(0, len(body) - 1))]])
    if read is not None:
        # All that may be missing of a reply that is over is the count of its tokens.
        assert (read.text, read.tool_calls, read.finish, read.reasoning) == (
            reply.text,
            reply.tool_calls,
            reply.finish,
            reply.reasoning,
        )
        assert read.usage in (reply.usage, None)
