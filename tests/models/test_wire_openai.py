"""OpenAI chat completions: what is sent, what is understood, and that the official client agrees."""

import json

import openai
import pytest

from whet.core import (
    BadReply,
    CredentialsError,
    Effort,
    EndpointBusy,
    EndpointTimeout,
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
from whet.models.wires import OpenAIWire, Thinking, TokenLimit
from whet.models.wires.openai import Auth
from whet.testing.endpoint import StandInEndpoint, StandInFault, StandInRequest

WIRE = OpenAIWire(TokenLimit.BY_MODEL)
PARAMETERS = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}
SCHEMA = {
    "type": "object",
    "properties": {"answer": {"type": "integer"}},
    "required": ["answer"],
    "additionalProperties": False,
}
PIXEL = ImagePart("image/png", b"\x89PNG")
CONVERSATION = ModelRequest(
    (
        system("You know the weather."),
        user((TextPart("What is it like here?"), PIXEL)),
        assistant("", (ToolCall("call_1", "weather", '{"city": "Oslo"}'), ToolCall("call_2", "time", "{}"))),
        tool_answer("call_1", "rain"),
        tool_answer("call_2", "noon"),
    ),
    (ToolSpec("weather", "Tells the weather", PARAMETERS), ToolSpec("time", "Tells the time", {"type": "object"})),
    Sampling(max_tokens=64, temperature=0.5, top_p=0.9, stop=("END",), effort=Effort.LOW),
    seed=7,
    schema=SCHEMA,
)
FULL_REPLY = ModelReply(
    "It rains in Tromsø — 雨.",
    (ToolCall("call_3", "weather", '{"city": "Tromsø"}'), ToolCall("call_4", "time", "{}")),
    Finish.TOOL_CALLS,
    Usage(100, 20, 60, 5),
    "gpt-5.5-2026-04-01",
    "Let me see.",
)


def encoded(wire: OpenAIWire = WIRE, model: str = "gpt-5.5", stream: bool = False, **fields: object) -> dict:
    request = ModelRequest((user("hi"),), **fields)  # type: ignore[arg-type]
    return json.loads(wire.encode(model, request, stream=stream))


def body_of(message: dict, finish: str | None = "stop", **rest: object) -> bytes:
    return json.dumps({"choices": [{"message": message, "finish_reason": finish}], **rest}).encode()


async def told(endpoint: StandInEndpoint, wire: OpenAIWire, request: ModelRequest, chunk: int | None = None):
    async with AioTransport() as transport:
        url = wire.url(f"{endpoint.base_url}/v1", "gpt-5.5", stream=chunk is not None)
        headers = wire.headers("sk-test")
        if chunk is None:
            reply = await transport.post(url, headers, wire.encode("gpt-5.5", request, stream=False), 10.0)
            return wire.decode(reply.body), []
        decoder, deltas = wire.stream(), []
        async with transport.stream(url, headers, wire.encode("gpt-5.5", request, stream=True), 10.0) as reply:
            async for data in reply.chunks():
                deltas += decoder.feed(data)
        return decoder.finish(), deltas


async def test_official_client_sends_the_same_conversation() -> None:
    async with (
        StandInEndpoint(lambda request: FULL_REPLY) as endpoint,
        openai.AsyncOpenAI(base_url=f"{endpoint.base_url}/v1", api_key="sk-test", max_retries=0) as client,
    ):
        for stream in (False, True):
            await told(endpoint, WIRE, CONVERSATION, 1 if stream else None)
            answer = await client.chat.completions.create(
                model="gpt-5.5",
                messages=[
                    {"role": "system", "content": "You know the weather."},
                    {
                        "role": "user",
                        "content": [
                            {"type": "text", "text": "What is it like here?"},
                            {"type": "image_url", "image_url": {"url": "data:image/png;base64,iVBORw=="}},
                        ],
                    },
                    {
                        "role": "assistant",
                        "content": "",
                        "tool_calls": [
                            {
                                "id": "call_1",
                                "type": "function",
                                "function": {"name": "weather", "arguments": '{"city": "Oslo"}'},
                            },
                            {"id": "call_2", "type": "function", "function": {"name": "time", "arguments": "{}"}},
                        ],
                    },
                    {"role": "tool", "tool_call_id": "call_1", "content": "rain"},
                    {"role": "tool", "tool_call_id": "call_2", "content": "noon"},
                ],
                tools=[
                    {
                        "type": "function",
                        "function": {"name": name, "description": described, "parameters": parameters},
                    }
                    for name, described, parameters in (
                        ("weather", "Tells the weather", PARAMETERS),
                        ("time", "Tells the time", {"type": "object"}),
                    )
                ],
                response_format={
                    "type": "json_schema",
                    "json_schema": {"name": "answer", "schema": SCHEMA, "strict": True},
                },
                max_completion_tokens=64,
                temperature=0.5,
                top_p=0.9,
                stop=["END"],
                seed=7,
                reasoning_effort="low",
                **({"stream": True, "stream_options": {"include_usage": True}} if stream else {}),
            )
            if stream:
                _ = [chunk async for chunk in answer]
            ours, theirs = endpoint.requests[-2:]
            assert ours.body == theirs.body
            assert ours.path == theirs.path
            assert ours.headers["authorization"] == theirs.headers["authorization"]
            assert ours.headers["content-type"] == theirs.headers["content-type"]


async def test_official_client_reads_the_stand_in() -> None:
    async with (
        StandInEndpoint(lambda request: FULL_REPLY) as endpoint,
        openai.AsyncOpenAI(base_url=f"{endpoint.base_url}/v1", api_key="sk-test", max_retries=0) as client,
    ):
        whole = await client.chat.completions.create(model="m", messages=[{"role": "user", "content": "hi"}])
        async with client.chat.completions.stream(
            model="m", messages=[{"role": "user", "content": "hi"}], stream_options={"include_usage": True}
        ) as stream:
            streamed = await stream.get_final_completion()
    for completion in (whole, streamed):
        message = completion.choices[0].message
        assert message.content == FULL_REPLY.text
        assert [(call.id, call.function.name, call.function.arguments) for call in message.tool_calls] == [
            (call.id, call.name, call.arguments) for call in FULL_REPLY.tool_calls
        ]
        assert completion.choices[0].finish_reason == "tool_calls"
        assert completion.usage.prompt_tokens_details.cached_tokens == 60


@pytest.mark.parametrize("piece", [None, 1, 7, 100])
async def test_our_wire_reads_the_stand_in(piece: int | None) -> None:
    async with StandInEndpoint(lambda request: FULL_REPLY, piece=piece) as endpoint:
        assert await told(endpoint, WIRE, CONVERSATION) == (FULL_REPLY, [])
        streamed, deltas = await told(endpoint, WIRE, CONVERSATION, 1)
    assert streamed == FULL_REPLY
    assert "".join(deltas) == FULL_REPLY.text
    assert len(deltas) > 1


async def test_azure_paths_and_headers_are_the_official_clients() -> None:
    wire = OpenAIWire(
        TokenLimit.MAX_COMPLETION_TOKENS, auth=Auth.API_KEY, deployment="prod 1", api_version="2025-01-01"
    )
    async with (
        StandInEndpoint(lambda request: FULL_REPLY) as endpoint,
        openai.AsyncAzureOpenAI(
            azure_endpoint=endpoint.base_url, api_key="secret-key", api_version="2025-01-01", max_retries=0
        ) as client,
        AioTransport() as transport,
    ):
        await client.chat.completions.create(
            model="prod-1", messages=[{"role": "user", "content": "hi"}], max_completion_tokens=2048
        )
        request = ModelRequest((user("hi"),))
        url = wire.url(endpoint.base_url, "gpt-5.5", stream=False)
        await transport.post(url, wire.headers("secret-key"), wire.encode("gpt-5.5", request, stream=False), 5.0)
    theirs, ours = endpoint.requests
    assert ours.path == theirs.path.replace("prod-1", "prod 1")
    assert ours.query == theirs.query == {"api-version": "2025-01-01"}
    assert ours.headers["api-key"] == theirs.headers["api-key"] == "secret-key"
    assert "authorization" not in ours.headers
    assert {**theirs.body, "model": "prod 1"} == ours.body


def test_settings_left_to_the_endpoint_are_not_sent() -> None:
    assert encoded() == {
        "model": "gpt-5.5",
        "messages": [{"role": "user", "content": "hi"}],
        "max_completion_tokens": 2048,
    }


@pytest.mark.parametrize(
    ("model", "name"),
    [
        ("gpt-5.5", "max_completion_tokens"),
        ("gpt-6-astra", "max_completion_tokens"),
        ("o4-mini", "max_completion_tokens"),
        ("openai/o3", "max_completion_tokens"),
        ("gpt-4o", "max_tokens"),
        ("ft:gpt-4.1", "max_tokens"),
        ("llama-3", "max_tokens"),
    ],
)
def test_the_token_limit_has_the_name_that_the_model_takes(model: str, name: str) -> None:
    body = encoded(model=model)
    assert body[name] == 2048
    assert len({"max_tokens", "max_completion_tokens"} & body.keys()) == 1


@pytest.mark.parametrize(
    ("style", "on", "expected"),
    [
        (Thinking.FLAG, True, {"enable_thinking": True}),
        (Thinking.FLAG, False, {"enable_thinking": False}),
        (Thinking.TEMPLATE, False, {"chat_template_kwargs": {"enable_thinking": False}}),
        (Thinking.MODE, True, {"thinking": {"type": "adaptive"}}),
        (Thinking.MODE, False, {"thinking": {"type": "disabled"}}),
        (Thinking.EFFORT, False, {"reasoning_effort": "none"}),
        (Thinking.EFFORT, True, {}),
        (Thinking.UNKNOWN, True, {}),
        (Thinking.FLAG, None, {}),
    ],
)
def test_thinking_is_switched_as_each_server_wants_it(style: Thinking, on: bool | None, expected: dict) -> None:
    body = encoded(OpenAIWire(thinking=style), sampling=Sampling(thinking=on))
    del body["model"], body["messages"], body["max_tokens"]
    assert body == expected


def test_a_schema_is_strict_only_where_it_can_be() -> None:
    loose = {"type": "object", "properties": {"a": {"type": "array", "items": {"type": "object"}}}}
    assert encoded(schema=SCHEMA)["response_format"]["json_schema"]["strict"] is True
    assert encoded(schema=loose)["response_format"]["json_schema"]["strict"] is False
    nested = {**SCHEMA, "properties": {"answer": {"anyOf": [loose, {"type": "null"}]}}}
    assert encoded(schema=nested)["response_format"]["json_schema"]["strict"] is False
    assert "response_format" not in encoded(OpenAIWire(schemas=False), schema=SCHEMA)


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        (body_of({"content": "a"}), ModelReply("a")),
        (body_of({"content": None}), ModelReply("")),
        (body_of({}, None), ModelReply("")),
        (body_of({"content": "a"}, "eos"), ModelReply("a")),
        (body_of({"content": "a"}, "length"), ModelReply("a", finish=Finish.LENGTH)),
        (body_of({"content": [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}]}), ModelReply("ab")),
        (body_of({"content": "a"}, usage=None, model=None), ModelReply("a")),
        (body_of({"content": "a"}, usage={}), ModelReply("a")),
        (body_of({"content": "a"}, usage={"prompt_tokens": 3}), ModelReply("a", usage=Usage(3))),
        (
            body_of(
                {"content": "a"}, usage={"prompt_tokens": 3, "completion_tokens": -1, "prompt_tokens_details": None}
            ),
            ModelReply("a", usage=Usage(3)),
        ),
        (body_of({"content": None, "refusal": "no"}), ModelReply("no", finish=Finish.FILTERED)),
        (body_of({"content": "a", "reasoning_content": "hm"}), ModelReply("a", reasoning="hm")),
        (body_of({"content": "a", "reasoning": "hm"}), ModelReply("a", reasoning="hm")),
        (
            body_of({"content": "a", "reasoning_details": [{"text": "h"}, {"text": "m"}]}),
            ModelReply("a", reasoning="hm"),
        ),
        (
            body_of({"tool_calls": [{"function": {"name": "f", "arguments": {"x": 1}}}]}),
            ModelReply("", (ToolCall("call_0", "f", '{"x": 1}'),), Finish.TOOL_CALLS),
        ),
        (
            body_of({"tool_calls": [{"id": "", "function": {"name": "f", "arguments": None}}]}, None),
            ModelReply("", (ToolCall("call_0", "f", ""),), Finish.TOOL_CALLS),
        ),
        (
            body_of({"tool_calls": [{"id": "1", "function": {"name": "f", "arguments": '{"x": "é"'}}]}, "length"),
            ModelReply("", (ToolCall("1", "f", '{"x": "é"'),), Finish.LENGTH),
        ),
        (body_of({"content": "a", "tool_calls": []}, "tool_calls"), ModelReply("a")),
    ],
)
def test_what_real_servers_send_is_understood(body: bytes, expected: ModelReply) -> None:
    assert WIRE.decode(body) == expected


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"null",
        b"[]",
        b"<html>",
        b'{"choices":[]}',
        b'{"choices":[{}]}',
        b'{"choices":[{"message":{"content":7}}]}',
    ],
)
def test_what_is_no_reply_is_a_bad_reply(body: bytes) -> None:
    with pytest.raises(BadReply):
        WIRE.decode(body)


@pytest.mark.parametrize(
    ("content", "answer", "thought"),
    [
        ("<think>\nhm\n</think>\n\nyes", "yes", "hm"),
        ("  <think>hm</think>yes", "yes", "hm"),
        ("hm</think>\nyes", "yes", "hm"),
        ("<think>cut off", "", "cut off"),
        ("yes", "yes", ""),
        ("the tag <think> is", "the tag <think> is", ""),
        ("use <think>x</think> tags", "use <think>x</think> tags", ""),
        ("", "", ""),
    ],
)
def test_think_blocks_are_kept_out_of_the_answer(content: str, answer: str, thought: str) -> None:
    wire = OpenAIWire(think_tags=True)
    assert wire.decode(body_of({"content": content})) == ModelReply(answer, reasoning=thought)
    assert WIRE.decode(body_of({"content": content})) == ModelReply(content)
    for size in range(1, 12):
        decoder = wire.stream()
        deltas = []
        for start in range(0, len(content), size):
            delta = {"choices": [{"delta": {"content": content[start : start + size]}}]}
            deltas += decoder.feed(b"data: " + json.dumps(delta).encode() + b"\n\n")
        decoder.feed(b"data: [DONE]\n\n")
        assert decoder.finish() == ModelReply(answer, reasoning=thought)
        if not content.startswith("hm"):
            assert "".join(deltas) == answer


def streamed(*chunks: dict | str, end: bytes = b"data: [DONE]\n\n") -> ModelReply:
    decoder = WIRE.stream()
    for chunk in chunks:
        decoder.feed(b"data: " + json.dumps(chunk).encode() + b"\r\n\r\n")
    decoder.feed(end)
    return decoder.finish()


def test_streamed_tool_calls_without_indexes_are_told_apart_by_id() -> None:
    def piece(**call: object) -> dict:
        return {"choices": [{"delta": {"tool_calls": [call]}}]}

    reply = streamed(
        piece(id="a", function={"name": "f", "arguments": '{"x"'}),
        piece(function={"arguments": ":1}"}),
        piece(id="b", function={"name": "g", "arguments": "{}"}),
    )
    assert reply.tool_calls == (ToolCall("a", "f", '{"x":1}'), ToolCall("b", "g", "{}"))
    assert reply.finish is Finish.TOOL_CALLS


def test_a_stream_without_its_end_is_a_bad_reply() -> None:
    with pytest.raises(BadReply, match="broke off"):
        streamed({"choices": [{"delta": {"content": "a"}}]}, end=b"")


@pytest.mark.parametrize(
    "end", [b"data: [DONE]", b"data:[DONE]\n", b": ping\n\ndata: [DONE]\n\n", b"event: x\ndata: [DONE]\r\n\r\n"]
)
def test_the_end_of_a_stream_is_seen_however_it_is_written(end: bytes) -> None:
    assert streamed({"choices": [{"delta": {"content": "a"}}]}, end=end) == ModelReply("a")


def test_a_finish_reason_ends_a_stream_of_a_server_that_never_says_done() -> None:
    assert streamed({"choices": [{"delta": {"content": "a"}, "finish_reason": "stop"}]}, end=b"") == ModelReply("a")


@pytest.mark.parametrize(
    ("body", "kind"),
    [
        (b'{"error": {"message": "slow down", "code": 429}}', EndpointBusy),
        (b'{"error": {"message": "slow down", "code": "rate_limit_exceeded"}}', EndpointBusy),
        (b'{"error": {"message": "oops", "code": "server_error"}}', EndpointUnreachable),
        (b'{"error": "oops"}', EndpointUnreachable),
        (b'{"choices": [{"error": {"message": "m", "code": 502}, "message": {}}]}', EndpointUnreachable),
        (b'{"choices": null, "base_resp": {"status_code": 1002, "status_msg": "rate limit"}}', EndpointBusy),
        (b'{"choices": null, "base_resp": {"status_code": 1004, "status_msg": "no"}}', CredentialsError),
        (b'{"choices": null, "base_resp": {"status_code": 1008, "status_msg": "no"}}', RequestRefused),
        (b'{"choices": null, "base_resp": {"status_code": 2013, "status_msg": "no"}}', RequestRefused),
        (b'{"choices": null, "base_resp": {"status_code": 1000, "status_msg": "no"}}', EndpointUnreachable),
    ],
)
def test_an_error_with_status_200_is_an_error(body: bytes, kind: type[Exception]) -> None:
    with pytest.raises(kind):
        WIRE.decode(body)
    decoder = WIRE.stream()
    with pytest.raises(kind):
        decoder.feed(b"data: " + body + b"\n\n")


@pytest.mark.parametrize(
    ("status", "body", "kind"),
    [
        (400, b'{"error": {"message": "bad"}}', RequestRefused),
        (401, b"", CredentialsError),
        (403, b"", CredentialsError),
        (404, b"<html>", RequestRefused),
        (408, b"", EndpointTimeout),
        (429, b'{"error": {"message": "slow", "type": "requests", "code": "rate_limit_exceeded"}}', EndpointBusy),
        (
            429,
            b'{"error": {"message": "pay", "type": "insufficient_quota", "code": "insufficient_quota"}}',
            RequestRefused,
        ),
        (402, b"", RequestRefused),
        (307, b"", RequestRefused),
        (500, b"\xff\xfe", EndpointUnreachable),
        (502, b"", EndpointUnreachable),
        (503, b"", EndpointBusy),
        (504, b"", EndpointTimeout),
        (529, b"", EndpointBusy),
    ],
)
def test_each_status_is_told_apart(status: int, body: bytes, kind: type[Exception]) -> None:
    refusal = WIRE.refusal(status, {}, body)
    assert type(refusal) is kind
    assert str(status) in str(refusal)


DATE = "Wed, 21 Oct 2026 07:28:00 GMT"
LATER = "Wed, 21 Oct 2026 07:28:30 GMT"


@pytest.mark.parametrize(
    ("headers", "said", "seconds"),
    [
        ({"Retry-After": "7"}, "", 7.0),
        ({"retry-after": "0.5"}, "", 0.5),
        ({"retry-after": "-3"}, "", 0.0),
        ({"retry-after": "nan"}, "", None),
        ({"retry-after": "soon"}, "", None),
        ({"retry-after-ms": "250", "retry-after": "9"}, "", 0.25),
        ({"Retry-After": LATER, "Date": DATE}, "", 30.0),
        ({"Retry-After": DATE, "Date": LATER}, "", 0.0),
        ({"Retry-After": LATER}, "", 20.0),
        ({"x-ratelimit-reset-requests": "1m6.5s", "x-ratelimit-remaining-requests": "0"}, "", 66.5),
        ({"x-ratelimit-reset-tokens": "20ms", "x-ratelimit-remaining-tokens": "0"}, "", 0.02),
        ({"x-ratelimit-reset-tokens": "6m0s", "x-ratelimit-remaining-tokens": "99"}, "", None),
        ({}, "Please try again in 1.5s.", 1.5),
        ({}, "Please retry after 10 seconds.", 10.0),
        ({}, "Try again in 20ms", 0.02),
        ({}, "no hint", None),
    ],
)
def test_the_wait_that_an_endpoint_asks_for_is_kept(headers: dict[str, str], said: str, seconds: float | None) -> None:
    wall = 1792567690.0  # 07:28:10, between the two dates
    body = json.dumps({"error": {"message": said}}).encode()
    refusal = WIRE.refusal(429, headers, body, wall=wall)
    assert isinstance(refusal, EndpointBusy)
    assert refusal.retry_after == (None if seconds is None else pytest.approx(seconds))


@pytest.mark.parametrize("status", [400, 401, 429, 500])
def test_no_error_repeats_the_key_or_a_page_of_text(status: int) -> None:
    key = "abcDEF-0123456789-private"
    body = json.dumps(
        {"error": {"message": f"Bearer {key} and sk-proj-abcdef123456 are wrong. " + "x" * 5000}}
    ).encode()
    refusal = WIRE.refusal(status, {}, body, secret=key)
    assert key not in str(refusal)
    assert key not in repr(refusal)
    assert "abcdef123456" not in str(refusal)
    assert len(str(refusal)) < 500


async def test_a_fault_of_the_stand_in_reaches_the_caller() -> None:
    def answer(request: StandInRequest) -> StandInFault:
        return StandInFault(429, {"retry-after": "3"}, b'{"error": {"message": "slow down"}}')

    async with StandInEndpoint(answer) as endpoint, AioTransport() as transport:
        reply = await transport.post(f"{endpoint.base_url}/v1/chat/completions", {}, b"{}", 5.0)
    refusal = WIRE.refusal(reply.status, reply.headers, reply.body)
    assert isinstance(refusal, EndpointBusy)
    assert refusal.retry_after == 3.0
