"""Anthropic messages: what is sent, what is understood, and that the official client agrees."""

import json

import anthropic
import pytest

from whet.core import (
    BadReply,
    CredentialsError,
    Effort,
    EndpointBusy,
    EndpointUnreachable,
    Finish,
    ImagePart,
    ModelReply,
    ModelRequest,
    RequestRefused,
    Sampling,
    TextPart,
    ToolCall,
    ToolSpec,
    Usage,
    assistant,
    system,
    tool_answer,
    user,
)
from whet.models.transport import AioTransport
from whet.models.wires import AnthropicWire
from whet.testing.endpoint import StandInEndpoint

WIRE = AnthropicWire()
PARAMETERS = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}
SCHEMA = {
    "type": "object",
    "properties": {"answer": {"type": "integer"}},
    "required": ["answer"],
    "additionalProperties": False,
}
CONVERSATION = ModelRequest(
    (
        system("You know the weather."),
        user((TextPart("What is it like here?"), ImagePart("image/png", b"\x89PNG"))),
        assistant("Let me look.", (ToolCall("a", "weather", '{"city": "Oslo"}'), ToolCall("b", "time", "{}"))),
        tool_answer("a", "rain"),
        tool_answer("b", "no clock", error=True),
        user("So?"),
    ),
    (ToolSpec("weather", "Tells the weather", PARAMETERS), ToolSpec("time", "Tells the time", {"type": "object"})),
    Sampling(max_tokens=64, temperature=0.5, top_p=0.9, stop=("END",)),
    seed=7,
    schema=SCHEMA,
)
FULL_REPLY = ModelReply(
    "It rains in Tromsø — 雨.",
    (ToolCall("c", "weather", '{"city":"Tromsø"}'), ToolCall("d", "time", "{}")),
    Finish.TOOL_CALLS,
    Usage(100, 20, 60, 5),
    "claude-opus-5",
    "Let me see.",
)


def encoded(request: ModelRequest, model: str = "claude-opus-5") -> dict:
    return json.loads(WIRE.encode(model, request, stream=False))


def sampled(model: str, **settings: object) -> dict:
    return encoded(ModelRequest((user("hi"),), sampling=Sampling(**settings)), model)  # type: ignore[arg-type]


async def told(endpoint: StandInEndpoint, request: ModelRequest, stream: bool) -> tuple[ModelReply, list[str]]:
    async with AioTransport() as transport:
        url = WIRE.url(endpoint.base_url, "claude-opus-5", stream=stream)
        body = WIRE.encode("claude-opus-5", request, stream=stream)
        if not stream:
            return WIRE.decode((await transport.post(url, WIRE.headers("key"), body, 10.0)).body), []
        decoder, deltas = WIRE.stream(), []
        async with transport.stream(url, WIRE.headers("key"), body, 10.0) as reply:
            async for chunk in reply.chunks():
                deltas += decoder.feed(chunk)
        return decoder.finish(), deltas


async def test_official_client_sends_the_same_conversation() -> None:
    async with (
        StandInEndpoint(lambda request: FULL_REPLY) as endpoint,
        anthropic.AsyncAnthropic(base_url=endpoint.base_url, api_key="key", max_retries=0) as client,
    ):
        for stream in (False, True):
            await told(endpoint, CONVERSATION, stream)
            answer = await client.messages.create(
                model="claude-opus-5",
                max_tokens=64,
                system="You know the weather.",
                messages=[
                    {
                        "role": "user",
                        "content": [
                            {"type": "text", "text": "What is it like here?"},
                            {
                                "type": "image",
                                "source": {"type": "base64", "media_type": "image/png", "data": "iVBORw=="},
                            },
                        ],
                    },
                    {
                        "role": "assistant",
                        "content": [
                            {"type": "text", "text": "Let me look."},
                            {"type": "tool_use", "id": "a", "name": "weather", "input": {"city": "Oslo"}},
                            {"type": "tool_use", "id": "b", "name": "time", "input": {}},
                        ],
                    },
                    {
                        "role": "user",
                        "content": [
                            {"type": "tool_result", "tool_use_id": "a", "content": "rain"},
                            {"type": "tool_result", "tool_use_id": "b", "content": "no clock", "is_error": True},
                            {"type": "text", "text": "So?"},
                        ],
                    },
                ],
                tools=[
                    {"name": "weather", "description": "Tells the weather", "input_schema": PARAMETERS},
                    {"name": "time", "description": "Tells the time", "input_schema": {"type": "object"}},
                ],
                output_config={"format": {"type": "json_schema", "schema": SCHEMA}},
                stop_sequences=["END"],
                # The client has no arguments of these names: its version of the interface is the one without them.
                extra_body={"temperature": 0.5, "top_p": 0.9},
                **({"stream": True} if stream else {}),
            )
            if stream:
                _ = [event async for event in answer]
            ours, theirs = endpoint.requests[-2:]
            assert ours.path == theirs.path
            assert {"stream": False, **ours.body} == {"stream": False, **theirs.body}
            assert ours.headers["content-type"] == theirs.headers["content-type"]
            # The endpoint takes a key in either header; servers that imitate it know this one.
            assert ours.headers["x-api-key"] == theirs.headers["authorization"].removeprefix("Bearer ") == "key"


async def test_official_client_reads_the_stand_in() -> None:
    async with (
        StandInEndpoint(lambda request: FULL_REPLY) as endpoint,
        anthropic.AsyncAnthropic(base_url=endpoint.base_url, api_key="key", max_retries=0) as client,
    ):
        asked = {"model": "m", "max_tokens": 9, "messages": [{"role": "user", "content": "hi"}]}
        whole = await client.messages.create(**asked)
        async with client.messages.stream(**asked) as stream:
            streamed = await stream.get_final_message()
    for message in (whole, streamed):
        thinking, text, *calls = message.content
        assert (thinking.thinking, text.text) == (FULL_REPLY.reasoning, FULL_REPLY.text)
        assert [(call.id, call.name, call.input) for call in calls] == [
            ("c", "weather", {"city": "Tromsø"}),
            ("d", "time", {}),
        ]
        assert message.stop_reason == "tool_use"
        assert (message.usage.input_tokens, message.usage.cache_read_input_tokens) == (40, 60)
        assert message.usage.output_tokens == 20


@pytest.mark.parametrize("piece", [None, 1, 7, 100])
async def test_our_wire_reads_the_stand_in(piece: int | None) -> None:
    async with StandInEndpoint(lambda request: FULL_REPLY, piece=piece) as endpoint:
        assert await told(endpoint, CONVERSATION, False) == (FULL_REPLY, [])
        streamed, deltas = await told(endpoint, CONVERSATION, True)
    assert streamed == FULL_REPLY
    assert "".join(deltas) == FULL_REPLY.text
    assert len(deltas) > 1


def test_settings_left_to_the_endpoint_are_not_sent() -> None:
    assert sampled("claude-opus-5") == {
        "model": "claude-opus-5",
        "max_tokens": 2048,
        "messages": [{"role": "user", "content": [{"type": "text", "text": "hi"}]}],
    }


@pytest.mark.parametrize(
    "model", ["claude-opus-4-6", "claude-sonnet-5-5", "claude-fable-5", "claude-haiku-5-5", "claude-next"]
)
def test_later_models_think_by_grade(model: str) -> None:
    body = sampled(model, effort=Effort.HIGH, temperature=0.5, top_p=0.5)
    assert body["thinking"] == {"type": "adaptive"}
    assert body["output_config"] == {"effort": "high"}
    assert "temperature" not in body
    assert "top_p" not in body


@pytest.mark.parametrize(
    "model",
    [
        "claude-sonnet-4-5-20250929",
        "claude-opus-4-20250514",
        "claude-3-7-sonnet-20250219",
        "claude-haiku-4-5",
        "claude-opus-4.5",
    ],
)
def test_earlier_models_think_by_a_budget_within_the_token_limit(model: str) -> None:
    body = sampled(model, effort=Effort.HIGH, max_tokens=8000, temperature=0.5)
    assert body["thinking"] == {"type": "enabled", "budget_tokens": 6000}
    assert "temperature" not in body
    assert sampled(model, effort=Effort.LOW, max_tokens=64_000)["thinking"]["budget_tokens"] == 4096
    assert "thinking" not in sampled(model, effort=Effort.HIGH, max_tokens=1000)


def test_earlier_models_do_not_think_within_a_tool_exchange() -> None:
    asked = (user("hi"), assistant("", (ToolCall("a", "f", "{}"),)), tool_answer("a", "x"))
    body = encoded(ModelRequest(asked, sampling=Sampling(effort=Effort.HIGH, temperature=0.0)), "claude-opus-4-5")
    assert "thinking" not in body
    assert body["temperature"] == 0.0


@pytest.mark.parametrize(
    "settings", [{"effort": Effort.NONE}, {"thinking": False}, {"thinking": False, "effort": Effort.HIGH}]
)
def test_thinking_can_be_switched_off(settings: dict) -> None:
    body = sampled("claude-opus-5", temperature=0.5, **settings)
    assert body["thinking"] == {"type": "disabled"}
    assert body["temperature"] == 0.5
    assert "output_config" not in body


def test_effort_and_schema_share_their_field() -> None:
    request = ModelRequest((user("hi"),), sampling=Sampling(effort=Effort.MINIMAL), schema=SCHEMA)
    assert encoded(request)["output_config"] == {"effort": "low", "format": {"type": "json_schema", "schema": SCHEMA}}


def test_a_schema_is_closed_and_loses_the_bounds_that_are_refused() -> None:
    inner = {"type": "object", "properties": {"minimum": {"type": "string", "maxLength": 3}}}
    schema = {
        "type": "object",
        "properties": {"list": {"type": "array", "items": inner, "minItems": 1, "maxItems": 4}},
        "$defs": {"number": {"type": "number", "minimum": 0}},
        "required": ["list"],
    }
    sent = encoded(ModelRequest((user("hi"),), schema=schema))["output_config"]["format"]["schema"]
    assert sent == {
        "type": "object",
        "properties": {
            "list": {
                "type": "array",
                "items": {
                    "type": "object",
                    "properties": {"minimum": {"type": "string"}},
                    "additionalProperties": False,
                },
                "minItems": 1,
            }
        },
        "$defs": {"number": {"type": "number"}},
        "required": ["list"],
        "additionalProperties": False,
    }


def test_neighbours_are_joined_and_empty_texts_left_out() -> None:
    messages = (user("a"), assistant(""), user((TextPart(""), TextPart("b"))), system("late"), assistant("c"))
    body = encoded(ModelRequest(messages))
    assert body["system"] == "late"
    assert body["messages"] == [
        {"role": "user", "content": [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}]},
        {"role": "assistant", "content": [{"type": "text", "text": "c"}]},
    ]


@pytest.mark.parametrize(
    ("arguments", "sent"),
    [
        ('{"x": [1, {"y": null}]}', {"x": [1, {"y": None}]}),
        ("{broken", {"not_a_json_object": "{broken"}),
        ("[1]", {"not_a_json_object": "[1]"}),
        ("", {"not_a_json_object": ""}),
    ],
)
def test_arguments_of_another_models_calls_are_sent_as_an_object(arguments: str, sent: dict) -> None:
    asked = (user("hi"), assistant("", (ToolCall("functions.f:0", "f", arguments),)), tool_answer("functions.f:0", "x"))
    _, call, result = encoded(ModelRequest(asked))["messages"]
    assert call["content"] == [{"type": "tool_use", "id": "functions_f_0", "name": "f", "input": sent}]
    assert result["content"] == [{"type": "tool_result", "tool_use_id": "functions_f_0", "content": "x"}]


def reply_of(*blocks: dict, **rest: object) -> bytes:
    return json.dumps({"content": blocks, **rest}).encode()


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        (reply_of(), ModelReply("")),
        (reply_of({"type": "text", "text": "a"}, {"type": "text", "text": "b"}), ModelReply("ab")),
        (reply_of({"type": "text", "text": "a"}, stop_reason="max_tokens"), ModelReply("a", finish=Finish.LENGTH)),
        (reply_of(stop_reason="refusal"), ModelReply("", finish=Finish.FILTERED)),
        (reply_of(stop_reason="something new"), ModelReply("")),
        (reply_of({"type": "redacted_thinking", "data": "x"}, {"type": "new_block", "text": None}), ModelReply("")),
        (
            reply_of(usage={"input_tokens": 1, "cache_read_input_tokens": 2, "cache_creation_input_tokens": 4}),
            ModelReply("", usage=Usage(7, 0, 2)),
        ),
        (reply_of(usage={"input_tokens": 1, "cache_read_input_tokens": None}), ModelReply("", usage=Usage(1))),
    ],
)
def test_what_real_servers_send_is_understood(body: bytes, expected: ModelReply) -> None:
    assert WIRE.decode(body) == expected


@pytest.mark.parametrize(
    "body", [b"", b"null", b"{}", b"[]", b"<html>", b'{"content":"text"}', b'{"content":[{"text":"a"}]}']
)
def test_what_is_no_reply_is_a_bad_reply(body: bytes) -> None:
    with pytest.raises(BadReply):
        WIRE.decode(body)


@pytest.mark.parametrize(
    ("kind", "expected"),
    [
        ("overloaded_error", EndpointBusy),
        ("rate_limit_error", EndpointBusy),
        ("authentication_error", CredentialsError),
        ("invalid_request_error", RequestRefused),
        ("api_error", EndpointUnreachable),
    ],
)
def test_an_error_within_a_stream_is_that_error(kind: str, expected: type[Exception]) -> None:
    event = {"type": "error", "error": {"type": kind, "message": "no"}}
    with pytest.raises(expected):
        WIRE.stream().feed(b"event: error\ndata: " + json.dumps(event).encode() + b"\n\n")


def test_a_stream_without_its_end_is_a_bad_reply() -> None:
    decoder = WIRE.stream()
    decoder.feed(b'data: {"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"a"}}\n\n')
    decoder.feed(b'data: {"type":"message_delta","delta":{"stop_reason":"end_turn"},"usage":{"output_tokens":1}}\n\n')
    with pytest.raises(BadReply, match="broke off"):
        decoder.finish()


def test_an_account_without_credit_is_not_asked_again() -> None:
    body = b'{"type":"error","error":{"type":"invalid_request_error","message":"Your credit balance is too low"}}'
    refusal = WIRE.refusal(400, {}, body)
    assert isinstance(refusal, RequestRefused)
    assert "credit" in refusal.hint


def test_the_address_may_be_given_with_its_version() -> None:
    assert (
        WIRE.url("https://a/v1/", "m", stream=False)
        == WIRE.url("https://a", "m", stream=True)
        == "https://a/v1/messages"
    )
