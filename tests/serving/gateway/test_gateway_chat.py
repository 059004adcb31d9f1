"""What the gateway says to a caller, by OpenAI's official client and by hand."""

from __future__ import annotations

from pathlib import Path

import msgspec
import openai
import pytest
from gateway_house import BASE, WORLD, Told, house, skilled

from whet.core import Finish, Harness, ModelReply, ModelRequest, Sampling, ToolCall, ToolMode, Usage

TOOLS = [{"type": "function", "function": {"name": "look", "description": "Look.", "parameters": {"type": "object"}}}]
QUESTION = [{"role": "user", "content": "Where?"}]


async def test_a_world_is_answered_by_its_active_policy_and_says_which(tmp_path: Path) -> None:
    async with house(tmp_path) as gateway:
        record = gateway.publish(skilled("Be brief."), channel="stable")
        await gateway.switchboard.start()
        answer = await gateway.openai.chat.completions.with_raw_response.create(model=WORLD, messages=QUESTION)
        said = answer.parse()
    assert said.choices[0].message.content == "Be brief. | Where?"
    assert said.system_fingerprint == answer.headers["x-whet-policy"] == record.id
    assert said.usage is not None
    assert (said.usage.prompt_tokens, said.usage.completion_tokens) == (7, 3)


async def test_names_lead_to_champion_base_record_and_channel(tmp_path: Path) -> None:
    async with house(tmp_path) as gateway:
        first = gateway.publish(skilled("First."), channel="stable")
        second = gateway.publish(skilled("Second."))
        trial = gateway.publish(skilled("Trial."), channel="trial")
        await gateway.switchboard.start()
        expected = {
            WORLD: ("First.", first.id),
            f"{WORLD}@champion": ("First.", first.id),
            f"{WORLD}@trial": ("Trial.", trial.id),
            f"{WORLD}@{second.id}": ("Second.", second.id),
            f"{WORLD}@{second.id[:6]}": ("Second.", second.id),
            f"{WORLD}@base": ("no skill", "base"),
            BASE.name: ("no skill", "base"),
        }
        for name, (skill, record) in expected.items():
            answer = await gateway.ask("Where?", name)
            assert answer.json()["choices"][0]["message"]["content"] == f"{skill} | Where?"
            assert answer.headers["x-whet-policy"] == record
        listed = [model.id async for model in gateway.openai.models.list()]
        assert listed == [WORLD, f"{WORLD}@trial", BASE.name]
        assert (await gateway.openai.models.retrieve(WORLD)).id == WORLD


async def test_what_is_not_there_is_said_and_nothing_answers_in_its_place(tmp_path: Path) -> None:
    async with house(tmp_path) as gateway:
        other = gateway.publish(skilled("Elsewhere."), world="othello")
        rejected = gateway.publish(skilled("Bad."))
        gateway.registry.reject(rejected.id, "it leaks names")
        await gateway.switchboard.start()
        names = ("nowhere", "nowhere@base", WORLD, f"{WORLD}@ffff", f"{WORLD}@{other.id}", f"{WORLD}@{rejected.id}")
        for name in names:
            with pytest.raises(openai.NotFoundError):
                await gateway.openai.chat.completions.create(model=name, messages=QUESTION)
        said = (await gateway.ask("Where?", WORLD)).json()["error"]["message"]
    assert "whet registry activate" in said
    assert gateway.model.requests == []


async def test_a_stream_says_the_same_piece_by_piece(tmp_path: Path) -> None:
    async with house(tmp_path) as gateway:
        record = gateway.publish(skilled("Be brief."), channel="stable")
        await gateway.switchboard.start()
        stream = await gateway.openai.chat.completions.create(
            model=WORLD, messages=QUESTION, stream=True, stream_options={"include_usage": True}
        )
        chunks = [chunk async for chunk in stream]
    text = "".join(chunk.choices[0].delta.content or "" for chunk in chunks if chunk.choices)
    assert text == "Be brief. | Where?"
    assert {chunk.system_fingerprint for chunk in chunks} == {record.id}
    assert [chunk.choices[0].finish_reason for chunk in chunks if chunk.choices][-1] == "stop"
    assert chunks[-1].usage is not None
    assert chunks[-1].usage.total_tokens == 10


async def test_the_callers_settings_go_before_the_policys_own(tmp_path: Path) -> None:
    own = Sampling(max_tokens=50, temperature=0.3, top_p=0.9, stop=("END",))
    async with house(tmp_path) as gateway:
        gateway.publish(skilled("Be brief.", sampling=own), channel="stable")
        await gateway.switchboard.start()
        await gateway.ask("a")
        await gateway.ask("b", temperature=0, max_completion_tokens=9, stop="x", seed=4, top_p=None)
    silent, outspoken = gateway.model.requests
    assert silent.sampling == own
    assert outspoken.sampling == Sampling(max_tokens=9, temperature=0.0, top_p=0.9, stop=("x",))
    assert (silent.seed, outspoken.seed) == (None, 4)


async def test_tools_are_called_in_both_ways(tmp_path: Path) -> None:
    def native(request: ModelRequest) -> ModelReply:
        return ModelReply("", (ToolCall("c1", "look", '{"at":1}'),), Finish.TOOL_CALLS, Usage(1, 1))

    def written(request: ModelRequest) -> ModelReply:
        return ModelReply('So: <tool_call>{"name": "look", "arguments": {"at":1}}</tool_call>', usage=Usage(1, 1))

    for answer, mode in ((native, ToolMode.NATIVE), (written, ToolMode.TEXT)):
        async with house(tmp_path / mode, model=Told(answer)) as gateway:
            gateway.publish(skilled("Be brief.", harness=Harness(tool_mode=mode)), channel="stable")
            await gateway.switchboard.start()
            whole = await gateway.openai.chat.completions.create(model=WORLD, messages=QUESTION, tools=TOOLS)
            stream = await gateway.openai.chat.completions.create(
                model=WORLD, messages=QUESTION, tools=TOOLS, stream=True
            )
            pieces = [chunk.choices[0] async for chunk in stream]
        call = whole.choices[0].message.tool_calls[0]
        assert (call.function.name, call.function.arguments) == ("look", '{"at":1}')
        assert whole.choices[0].finish_reason == pieces[-1].finish_reason == "tool_calls"
        streamed = [piece.delta.tool_calls[0] for piece in pieces if piece.delta.tool_calls]
        assert [one.function.name for one in streamed] == ["look"]


async def test_a_completion_takes_its_prompt_as_the_task(tmp_path: Path) -> None:
    async with house(tmp_path) as gateway:
        gateway.publish(skilled("Be brief."), channel="stable")
        await gateway.switchboard.start()
        whole = await gateway.openai.completions.create(model=WORLD, prompt="Where?")
        stream = await gateway.openai.completions.create(model=WORLD, prompt="Where?", stream=True)
        streamed = "".join([chunk.choices[0].text async for chunk in stream])
    assert whole.choices[0].text == streamed == "Be brief. | Where?"


async def test_what_would_change_the_answer_and_cannot_be_done_is_refused(tmp_path: Path) -> None:
    async with house(tmp_path) as gateway:
        for field in ({"logprobs": True}, {"logit_bias": {"5": 1}}, {"n": 2}, {"frequency_penalty": 0.5}):
            answer = await gateway.ask("a", BASE.name, **field)
            assert answer.status_code == 400
            assert answer.json()["error"]["param"] == next(iter(field))
        assert (await gateway.ask("a", BASE.name, user="me", presence_penalty=0, logprobs=False)).status_code == 200
        forced = await gateway.ask("a", BASE.name, tools=TOOLS, tool_choice="required")
        assert forced.status_code == 400


async def test_paths_and_methods_that_are_not_there(tmp_path: Path) -> None:
    async with house(tmp_path) as gateway:
        assert (await gateway.http.get("/v1/chat/completions")).status_code == 405
        assert (await gateway.http.get("/v1/else")).status_code == 404
        healthy = await gateway.http.get("/healthz")
    assert healthy.status_code == 200
    assert msgspec.json.decode(healthy.content)["serving"] == {BASE.name: "base"}
