"""The one place where a policy and a task become messages: training, evaluation and serving all come here."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

import msgspec

from whet.core import (
    Brief,
    ImagePart,
    Message,
    ModelRequest,
    Policy,
    Rendering,
    Skill,
    TextPart,
    ToolMode,
    ToolSpec,
    system,
    user,
)
from whet.core.prompts import fill, load_prompt

_FRONT_MATTER = re.compile(r"\A---[ \t]*\n.*?\n---[ \t]*(?:\n|\Z)", re.DOTALL)


class Rendered(msgspec.Struct, frozen=True):
    """`head` is what the policy says and is not kept with trajectories; `opening` is the task."""

    head: tuple[Message, ...]
    opening: tuple[Message, ...]
    tools: tuple[ToolSpec, ...]
    """Tools to hand to the endpoint; empty where they are written into the head."""
    schema: dict[str, Any] | None = None
    """What the answer is held to."""


def render(policy: Policy, brief: Brief, tools: Sequence[ToolSpec]) -> Rendered:
    text_tools = bool(tools) and policy.harness.tool_mode is ToolMode.TEXT
    sections = [skill_text(policy.skill)]
    if policy.adapter is not None:
        sections.append(policy.adapter.condition)
    if text_tools:
        sections.append(fill(load_prompt("whet.rollout.prompts", "tools"), {"tools": _tool_lines(tools)}))
    head = "\n\n".join(section for section in sections if section)
    return Rendered(
        (system(head),) if head else (),
        (user((TextPart(brief.text), *brief.images) if brief.images else brief.text),),
        () if text_tools else tuple(tools),
        brief.answer_schema if policy.harness.constrained else None,
    )


def request_for(policy: Policy, rendered: Rendered, said: Sequence[Message], seed: int | None) -> ModelRequest:
    """The call by which `policy` goes on after `said`, which begins with the opening."""
    return ModelRequest(
        messages=(*rendered.head, *said),
        tools=rendered.tools,
        sampling=policy.sampling,
        seed=seed,
        schema=rendered.schema,
        plain=policy.harness.rendering is Rendering.PLAIN,
        adapter=policy.adapter,
    )


def skill_text(skill: Skill) -> str:
    """A skill as the agent reads it: its front matter is for catalogues."""
    return _FRONT_MATTER.sub("", skill.text, count=1).strip()


def without_images(message: Message) -> Message:
    """For keeping: a task's images belong to the task and need not be stored with every try at it."""
    if isinstance(message.content, str):
        return message
    parts = tuple(ImagePart(p.media_type, b"") if isinstance(p, ImagePart) else p for p in message.content)
    return msgspec.structs.replace(message, content=parts)


def _tool_lines(tools: Sequence[ToolSpec]) -> str:
    return "\n".join(msgspec.json.encode(tool).decode() for tool in tools)
