"""What is served is what was evaluated: the same request to the model, and so the same tokens."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from gateway_house import BASE, REF, WORLD, Told, house

from whet.core import (
    AdapterRef,
    Brief,
    Harness,
    ImagePart,
    Message,
    ModelReply,
    ModelRequest,
    Policy,
    Rendering,
    Sampling,
    Skill,
    ToolMode,
    ToolResult,
    ToolSpec,
    Verdict,
    assistant,
    system,
    tool_answer,
    user,
)
from whet.rollout.episode import Episode
from whet.rollout.render import Rendered, render
from whet.serving.gateway.asked import read_chat
from whet.serving.gateway.rendering import request_of

SCHEMA = {"type": "object", "properties": {"aggression": {"type": "number"}}, "required": ["aggression"]}
LOOK = ToolSpec("look", "Look around.", {"type": "object", "properties": {}})
ADAPTER = AdapterRef("a" * 32, BASE.fingerprint)
SKILL = Skill.from_text("---\nname: flags\n---\nAnswer with one JSON object.\n")

POLICIES = {
    "bare": Policy(REF),
    "skill": Policy(REF, Sampling(temperature=0.4, stop=("END",)), SKILL),
    "plain": Policy(REF, skill=SKILL, harness=Harness(rendering=Rendering.PLAIN)),
    "adapter": Policy(REF, skill=SKILL, adapter=ADAPTER),
    "condition": Policy(REF, adapter=AdapterRef("a" * 32, BASE.fingerprint, "Quality: best."), skill=SKILL),
    "constrained": Policy(REF, skill=SKILL, harness=Harness(constrained=True)),
    "plain with condition": Policy(
        REF, adapter=AdapterRef("a" * 32, BASE.fingerprint, "Q: 9"), harness=Harness(rendering=Rendering.PLAIN)
    ),
}


class Session:
    def __init__(self, brief: Brief, tools: Sequence[ToolSpec] = ()) -> None:
        self.brief = brief
        self.tools = tools

    async def call(self, name: str, arguments: dict[str, Any]) -> ToolResult:
        return ToolResult("a wall")

    async def judge(self, answer: str) -> Verdict:
        return Verdict(True, 1.0)

    async def close(self) -> None:
        pass


async def evaluated(policy: Policy, session: Session, *replies: ModelReply) -> list[ModelRequest]:
    """The requests that an episode makes, given what the model answers."""
    asked: list[ModelRequest] = []
    answers = iter([*replies, ModelReply("done")])

    async def ask(request: ModelRequest, salt: bytes) -> ModelReply:
        asked.append(request)
        return next(answers)

    await Episode(policy, session, b"key").play(ask)
    return asked


def with_another_head(policy: Policy, brief: Brief, tools: Sequence[ToolSpec]) -> Rendered:
    rendered = render(policy, brief, tools)
    return Rendered((system("Helpful."), *rendered.head), rendered.opening, rendered.tools, rendered.schema)


def with_another_opening(policy: Policy, brief: Brief, tools: Sequence[ToolSpec]) -> Rendered:
    rendered = render(policy, brief, tools)
    return Rendered(rendered.head, (user(brief.text + "\n"),), rendered.tools, rendered.schema)


def without_schema(policy: Policy, brief: Brief, tools: Sequence[ToolSpec]) -> Rendered:
    rendered = render(policy, brief, tools)
    return Rendered(rendered.head, rendered.opening, rendered.tools)


async def served(home: Path, policy: Policy, text: str, seed: int | None, **kwargs: Any) -> ModelRequest:
    async with house(home, schemas={WORLD: SCHEMA}, **kwargs) as gateway:
        files = None
        if policy.adapter:
            files = home / "files"
            files.mkdir()
            (files / "adapter.gguf").write_bytes(b"weights")
        gateway.publish(policy, channel="stable", adapter=files)
        await gateway.switchboard.start()
        answer = await gateway.ask(text, seed=seed)
        assert answer.status_code == 200
        return gateway.model.requests[-1]


@pytest.mark.parametrize("name", POLICIES)
async def test_a_task_s_brief_is_asked_as_in_an_evaluation(name: str, tmp_path: Path) -> None:
    policy = POLICIES[name]
    (expected,) = await evaluated(policy, Session(Brief("Where is the flag?", answer_schema=SCHEMA)))
    assert await served(tmp_path, policy, "Where is the flag?", expected.seed) == expected


@pytest.mark.parametrize(
    ("name", "broken"),
    [("skill", with_another_head), ("plain", with_another_opening), ("constrained", without_schema)],
)
async def test_another_renderer_would_be_noticed(name: str, broken: Any, tmp_path: Path) -> None:
    policy = POLICIES[name]
    (expected,) = await evaluated(policy, Session(Brief("Where is the flag?", answer_schema=SCHEMA)))
    assert await served(tmp_path, policy, "Where is the flag?", expected.seed, renderer=broken) != expected


@pytest.mark.parametrize("mode", ToolMode)
def test_a_conversation_with_tools_goes_on_as_an_episode_does(mode: ToolMode) -> None:
    policy = Policy(REF, skill=SKILL, harness=Harness(tool_mode=mode))
    written = 'Let me see. <tool_call>{"name": "look", "arguments": {}}</tool_call>'
    body = b"""{"model": "w", "seed": 5, "messages": [{"role": "user", "content": "Where?"},
        {"role": "assistant", "content": %s, "tool_calls":
            [{"id": "call_1", "type": "function", "function": {"name": "look", "arguments": "{}"}}]},
        {"role": "tool", "tool_call_id": "call_1", "content": "a wall"}],
        "tools": [{"type": "function", "function": {"name": "look", "description": "Look around.",
            "parameters": {"type": "object", "properties": {}}}}]}"""
    said = written if mode is ToolMode.TEXT else "Let me see."
    asked = read_chat(
        body
        % f'"{said}"'.replace(
            '{"name": "look", "arguments": {}}', '{\\"name\\": \\"look\\", \\"arguments\\": {}}'
        ).encode()
    )
    conversation: list[Message] = list(request_of(policy, asked).messages)
    rendered = render(policy, Brief("Where?"), [LOOK])
    assert tuple(conversation[:2]) == (*rendered.head, *rendered.opening)
    if mode is ToolMode.TEXT:
        assert conversation[2:] == [assistant(written), user("<tool_result>\na wall\n</tool_result>")]
        assert request_of(policy, asked).tools == ()
    else:
        assert conversation[3] == tool_answer("call_1", "a wall")
        assert request_of(policy, asked).tools == (LOOK,)


def test_the_callers_instructions_follow_the_skill_in_one_message() -> None:
    body = b"""{"model": "w", "messages": [{"role": "system", "content": "Be kind."},
        {"role": "developer", "content": "Be quick."}, {"role": "user", "content": "Where?"}]}"""
    request = request_of(Policy(REF, skill=Skill.from_text("Be brief.")), read_chat(body))
    assert request.messages == (system("Be brief.\n\nBe kind.\n\nBe quick."), user("Where?"))


def test_images_are_the_task_s() -> None:
    body = b"""{"model": "w", "messages": [{"role": "user", "content": [{"type": "text", "text": "What?"},
        {"type": "image_url", "image_url": {"url": "data:image/png;base64,AAAA"}}]}]}"""
    expected = render(Policy(REF), Brief("What?", (ImagePart("image/png", b"\0\0\0"),)), ())
    assert request_of(Policy(REF), read_chat(body)).messages == expected.opening


def test_a_caller_s_own_schema_holds_also_where_the_policy_is_free() -> None:
    body = b"""{"model": "w", "messages": [{"role": "user", "content": "a"}], "response_format":
        {"type": "json_schema", "json_schema": {"name": "x", "schema": {"type": "integer"}}}}"""
    assert request_of(Policy(REF), read_chat(body)).schema == {"type": "integer"}
    assert request_of(Policy(REF), read_chat(body), SCHEMA).schema == {"type": "integer"}
    constrained = Policy(REF, harness=Harness(constrained=True))
    assert request_of(constrained, read_chat(body), SCHEMA).schema == {"type": "integer"}


async def test_an_answer_comes_back_whole_also_where_it_was_rendered_plain(tmp_path: Path) -> None:
    async with house(tmp_path, model=Told(lambda request: ModelReply(request.as_text[::-1]))) as gateway:
        gateway.publish(Policy(REF, harness=Harness(rendering=Rendering.PLAIN)), channel="stable")
        await gateway.switchboard.start()
        chat = (await gateway.ask("abc")).json()
        text = await gateway.openai.completions.create(model=WORLD, prompt="abc")
    assert chat["choices"][0]["message"]["content"] == text.choices[0].text == "cba"
