"""Servers behind the gateway: any that speaks OpenAI's wire, and vLLM with adapters."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import httpx
import msgspec
import openai
import pytest
from gateway_house import WORLD, House, house, skilled
from vllm_stand_in import VLLMStandIn, vllm_stand_in

from whet.core import (
    AdapterRef,
    Brief,
    Finish,
    Harness,
    ModelRef,
    ModelReply,
    Policy,
    Rendering,
    Sampling,
    Skill,
    SystemClock,
    ToolCall,
    ToolMode,
    Usage,
    fingerprint,
)
from whet.models import resolve
from whet.models.transport import AioTransport
from whet.registry import Base
from whet.rollout.render import render, request_for
from whet.serving.gateway import VLLM, Passing
from whet.testing.endpoint import Answering, StandInEndpoint, StandInFault

QUESTION = [{"role": "user", "content": "Where?"}]
REMOTE = Base("vllm/small", fingerprint("base", "vllm/small"))


@asynccontextmanager
async def passing(home: Path, url: str, *, kind: type[Passing] = Passing, **kwargs: Any) -> AsyncGenerator[House]:
    provider = resolve("vllm/small", base_url=url, environ={})
    async with AioTransport() as transport:
        upstream = kind(provider, REMOTE, transport, SystemClock(), **kwargs)
        async with house(home, upstream=upstream) as gateway:
            yield gateway


@asynccontextmanager
async def answered_by(home: Path, answer: Answering, **kwargs: Any) -> AsyncGenerator[tuple[House, StandInEndpoint]]:
    async with StandInEndpoint(answer, **kwargs) as endpoint, passing(home, f"{endpoint.base_url}/v1") as gateway:
        yield gateway, endpoint


async def test_the_body_is_the_one_that_an_evaluation_sends(tmp_path: Path) -> None:
    policy = Policy(ModelRef("vllm", "small"), Sampling(temperature=0.2, stop=("END",)), Skill.from_text("Be brief."))
    async with answered_by(tmp_path, lambda request: ModelReply("here", usage=Usage(4, 1))) as (gateway, endpoint):
        record = gateway.publish(policy, base=REMOTE, channel="stable")
        await gateway.switchboard.start()
        answer = (await gateway.ask("Where?", seed=3)).json()
    rendered = render(policy, Brief("Where?"), ())
    evaluated = request_for(policy, rendered, rendered.opening, 3)
    wire = resolve("vllm/small", environ={}).wire
    assert endpoint.requests[0].body == msgspec.json.decode(wire.encode("small", evaluated, stream=False))
    assert answer["choices"][0]["message"]["content"] == "here"
    assert (answer["model"], answer["system_fingerprint"]) == (WORLD, record.id)


async def test_what_only_the_upstream_knows_goes_there_as_it_was_written(tmp_path: Path) -> None:
    tools = [{"type": "function", "function": {"name": "look", "strict": True, "parameters": {"type": "object"}}}]
    form = {"type": "json_schema", "json_schema": {"name": "mine", "strict": True, "schema": {"type": "object"}}}
    more = {"logit_bias": {"7": 3}, "guided_regex": "a+", "metadata": {"a": [1, 2.5, None]}}
    async with answered_by(tmp_path, lambda request: ModelReply("x")) as (gateway, endpoint):
        gateway.publish(skilled("Be brief."), base=REMOTE, channel="stable")
        await gateway.switchboard.start()
        await gateway.ask("Where?", tools=tools, tool_choice="required", response_format=form, **more)
        await gateway.ask("Where?", tools=tools, tool_choice="none")
    first, second = (request.body for request in endpoint.requests)
    assert (first["tools"], first["tool_choice"], first["response_format"]) == (tools, "required", form)
    assert {name: first[name] for name in more} == more
    assert "tools" not in second


async def test_a_stream_is_handed_on_as_it_arrives(tmp_path: Path) -> None:
    calls = (ToolCall("c1", "look", '{"at": "the wall"}'),)
    reply = ModelReply("It is over there.", calls, Finish.TOOL_CALLS, Usage(9, 6))
    async with answered_by(tmp_path, lambda request: reply, piece=7) as (gateway, _):
        record = gateway.publish(skilled("Be brief."), base=REMOTE, channel="stable")
        await gateway.switchboard.start()
        stream = await gateway.openai.chat.completions.create(model=WORLD, messages=QUESTION, stream=True)
        chunks = [chunk async for chunk in stream]
        page = (await gateway.http.get("/metrics")).text
    assert "".join(chunk.choices[0].delta.content or "" for chunk in chunks) == reply.text
    pieces = [call for chunk in chunks for call in chunk.choices[0].delta.tool_calls or ()]
    assert "".join(piece.function.arguments or "" for piece in pieces) == calls[0].arguments
    assert {chunk.system_fingerprint for chunk in chunks} == {record.id}
    assert all(chunk.choices for chunk in chunks), "usage that nobody asked for is kept back"
    assert 'direction="out"} 6' in page


async def test_a_stream_with_usage_ends_with_it(tmp_path: Path) -> None:
    async with answered_by(tmp_path, lambda request: ModelReply("so", usage=Usage(9, 6))) as (gateway, _):
        await gateway.switchboard.start()
        stream = await gateway.openai.chat.completions.create(
            model=REMOTE.name, messages=QUESTION, stream=True, stream_options={"include_usage": True}
        )
        last = [chunk async for chunk in stream][-1]
    assert last.usage is not None
    assert last.usage.completion_tokens == 6


async def test_thoughts_are_kept_out_of_answers_as_in_an_evaluation(tmp_path: Path) -> None:
    thought = ModelReply("<think>left or right?</think>\n\nLeft.", usage=Usage(2, 9))
    async with answered_by(tmp_path, lambda request: thought, piece=11) as (gateway, _):
        await gateway.switchboard.start()
        whole = await gateway.openai.chat.completions.create(model=REMOTE.name, messages=QUESTION)
        stream = await gateway.openai.chat.completions.create(model=REMOTE.name, messages=QUESTION, stream=True)
        streamed = "".join([chunk.choices[0].delta.content or "" async for chunk in stream])
    assert whole.choices[0].message.content == streamed == "Left."


async def test_completions_and_written_tools_are_put_together_from_an_upstream_s_chat(tmp_path: Path) -> None:
    written = ModelReply('<tool_call>{"name": "look", "arguments": {}}</tool_call>')
    tools: Any = [{"type": "function", "function": {"name": "look", "parameters": {"type": "object"}}}]
    async with answered_by(tmp_path, lambda request: written) as (gateway, endpoint):
        policy = skilled("Be brief.", harness=Harness(tool_mode=ToolMode.TEXT))
        gateway.publish(policy, base=REMOTE, channel="stable")
        await gateway.switchboard.start()
        chat = await gateway.openai.chat.completions.create(model=WORLD, messages=QUESTION, tools=tools)
        text = await gateway.openai.completions.create(model=WORLD, prompt="Where?")
        stream = await gateway.openai.completions.create(model=WORLD, prompt="Where?", stream=True)
        streamed = "".join([chunk.choices[0].text async for chunk in stream])
    assert chat.choices[0].message.tool_calls[0].function.name == "look"
    assert "tools" not in endpoint.requests[0].body
    assert "look" in endpoint.requests[0].body["messages"][0]["content"]
    assert text.choices[0].text == streamed == written.text


@pytest.mark.parametrize(
    ("fault", "status", "code"),
    [
        (StandInFault(400), 400, "refused_by_model"),
        (StandInFault(401), 502, "upstream_failed"),
        (StandInFault(429, {"retry-after": "7"}), 429, "upstream_busy"),
        (StandInFault(500), 502, "upstream_failed"),
        (StandInFault(504), 504, "upstream_timeout"),
        (StandInFault(drop=True), 502, "upstream_failed"),
        (StandInFault(200, body=b"<html>"), 502, "upstream_failed"),
    ],
)
async def test_an_upstream_s_failures_are_told_as_whose_fault_they_are(
    fault: StandInFault, status: int, code: str, tmp_path: Path
) -> None:
    async with answered_by(tmp_path, lambda request: fault) as (gateway, _):
        await gateway.switchboard.start()
        for stream in (False, True):
            answer = await gateway.ask("Where?", REMOTE.name, stream=stream)
            if stream and fault.status == 200 and not fault.drop:
                assert b"broke off" in answer.content
                continue
            assert (answer.status_code, answer.json()["error"]["code"]) == (status, code)
            assert answer.headers.get("retry-after") == ("7" if status == 429 else None)


async def test_a_stream_that_breaks_off_ends_with_an_error(tmp_path: Path) -> None:
    fault = StandInFault(cut_after=300, reply=ModelReply("a long answer that never comes to its end"))
    async with answered_by(tmp_path, lambda request: fault) as (gateway, _):
        await gateway.switchboard.start()
        stream = await gateway.openai.chat.completions.create(model=REMOTE.name, messages=QUESTION, stream=True)
        with pytest.raises(openai.APIError):
            [chunk async for chunk in stream]


async def test_what_a_server_cannot_do_for_a_policy_is_told(tmp_path: Path) -> None:
    files = tmp_path / "files"
    files.mkdir()
    (files / "adapter.gguf").write_bytes(b"weights")
    adapted = Policy(ModelRef("vllm", "small"), adapter=AdapterRef("a" * 32, REMOTE.fingerprint))
    async with answered_by(tmp_path / "home", lambda request: ModelReply("x")) as (gateway, endpoint):
        gateway.publish(adapted, base=REMOTE, channel="stable", adapter=files)
        plain = gateway.publish(skilled("a", harness=Harness(rendering=Rendering.PLAIN)), base=REMOTE)
        await gateway.switchboard.start()
        for name, why in ((WORLD, "adapter"), (f"{WORLD}@{plain.id}", "plain")):
            answer = await gateway.ask("Where?", name)
            assert answer.status_code == 503
            assert why in answer.json()["error"]["message"]
    assert endpoint.requests == []


@asynccontextmanager
async def before_vllm(home: Path, **kwargs: Any) -> AsyncGenerator[tuple[House, VLLMStandIn]]:
    async with vllm_stand_in() as server, passing(home, server.url, kind=VLLM, **kwargs) as gateway:
        yield gateway, server


def publish_adapter(gateway: House, folder: Path, letter: str, world: str = WORLD, *, whole: bool = True) -> str:
    folder.mkdir()
    (folder / "adapter.gguf").write_bytes(letter.encode())
    if whole:
        (folder / "adapter_model.safetensors").write_bytes(letter.encode())
    adapted = Policy(ModelRef("vllm", "small"), adapter=AdapterRef(letter * 32, REMOTE.fingerprint))
    return gateway.publish(adapted, world=world, base=REMOTE, channel="stable", adapter=folder).id


async def test_vllm_loads_an_adapter_once_and_is_asked_by_its_name(tmp_path: Path) -> None:
    async with before_vllm(tmp_path / "home") as (gateway, server):
        record = publish_adapter(gateway, tmp_path / "a", "a")
        await gateway.switchboard.start()
        answers = await asyncio.gather(*(gateway.ask("Where?") for _ in range(8)))
        bare = await gateway.ask("Where?", f"{WORLD}@base")
    assert server.loads == ["whet-" + "a" * 24]
    assert {answer.json()["choices"][0]["message"]["content"] for answer in answers} == {"by whet-" + "a" * 24}
    assert {answer.headers["x-whet-policy"] for answer in answers} == {record}
    assert bare.json()["choices"][0]["message"]["content"] == "by small"


async def test_vllm_keeps_a_bounded_number_of_adapters(tmp_path: Path) -> None:
    async with before_vllm(tmp_path / "home", most_adapters=2) as (gateway, server):
        for letter in "abc":
            publish_adapter(gateway, tmp_path / letter, letter, f"world_{letter}")
        await gateway.switchboard.start()
        for letter in "abcabc":
            said = (await gateway.ask("Where?", f"world_{letter}")).json()
            assert said["choices"][0]["message"]["content"] == "by whet-" + letter * 24
            assert len(server.adapters) <= 2
    assert len(server.unloads) >= 4


async def test_an_adapter_that_vllm_does_not_take_is_an_error_and_seen_in_the_health(tmp_path: Path) -> None:
    async with before_vllm(tmp_path / "home") as (gateway, server):
        publish_adapter(gateway, tmp_path / "a", "a", whole=False)
        await gateway.switchboard.start()
        answer = await gateway.ask("Where?")
        health = await gateway.http.get("/healthz")
    assert answer.status_code == 503
    assert "No adapter found" in answer.json()["error"]["message"]
    assert health.status_code == 503
    assert "No adapter found" in health.json()["troubles"][WORLD]
    assert server.asked == []


async def test_a_vllm_that_was_started_anew_gets_its_adapters_again(tmp_path: Path) -> None:
    async with before_vllm(tmp_path / "home") as (gateway, server):
        publish_adapter(gateway, tmp_path / "a", "a")
        await gateway.switchboard.start()
        server.restart()
        first: httpx.Response = await gateway.ask("Where?")
        assert first.status_code == 429
        assert (await gateway.ask("Where?")).status_code == 200
    assert len(server.loads) == 2
