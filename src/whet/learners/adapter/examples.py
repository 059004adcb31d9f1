"""From what was said to what is learned: tokens, by whoever serves the model, of requests by the one renderer.

Each turn of the agent is an example of its own: the request as it was sent, and the answer. A chat template may show
earlier turns otherwise than they were said (it leaves thoughts out), so one text with several learned spans would teach
prompts that are never sent. It costs nothing: what examples begin with in common is evaluated once.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

import msgspec

from whet.core import (
    AdapterRef,
    Brief,
    ConfigError,
    Message,
    ModelRequest,
    Policy,
    Rendering,
    Speaker,
    ToolSpec,
    Trajectory,
)
from whet.learners.adapter.orders import Example
from whet.rollout import render
from whet.rollout.render import request_for

_LEVELS = 5


class Tokens(Protocol):
    """The model that serves, as far as it turns requests and texts into tokens."""

    async def prompt_tokens(self, request: ModelRequest) -> tuple[int, ...]:
        """Exactly what is evaluated for this request, template and all."""
        ...

    async def tokens(self, text: str) -> tuple[int, ...]:
        """Of a text that is an answer: nothing is put around it."""
        ...

    @property
    def end_token(self) -> int:
        """With which the model ends an answer."""
        ...


async def examples_of(
    trajectory: Trajectory, policy: Policy, tools: Sequence[ToolSpec], tokens: Tokens, *, conditioned: bool = False
) -> tuple[Example, ...]:
    """`policy` renders: the one that played, or for `distill` the same without (parts of) its skill."""
    condition = quality(trajectory.soft) if conditioned else ""
    # Learned for the base with nothing on it but what this training makes.
    as_served = policy.with_adapter(AdapterRef("", "", condition) if condition else None)
    return await _turns(
        trajectory.messages, as_served, tools, tokens, (trajectory.policy, trajectory.task, trajectory.soft)
    )


async def examples_of_chat(
    messages: Sequence[Message], policy: Policy, tokens: Tokens, *, source: str, name: str
) -> tuple[Example, ...]:
    """Of a chat from outside, which says itself what its prompt is: the policy's skill is not put before it."""
    found: list[Example] = []
    for place in _spoken(messages):
        request = ModelRequest(tuple(messages[:place]), plain=policy.harness.rendering is Rendering.PLAIN)
        found.append(await _example(request, messages[place], policy, tokens, (source, name, 1.0)))
    return tuple(found)


def quality(soft: float) -> str:
    """What a prompt says of an answer that is so good, and serving of the answers it wants."""
    level = 1 + min(_LEVELS - 1, int(soft * _LEVELS))
    return f"Quality of the answer: {level} of {_LEVELS}."


def best_condition(picked: Sequence[Trajectory], *, conditioned: bool) -> str:
    """What serving has to ask for: the best that was there to learn from. Nobody knows what a better one is like."""
    return quality(max(each.soft for each in picked)) if conditioned and picked else ""


async def _turns(
    messages: Sequence[Message],
    policy: Policy,
    tools: Sequence[ToolSpec],
    tokens: Tokens,
    names: tuple[str, str, float],
) -> tuple[Example, ...]:
    rendered = render(policy, Brief(messages[0].text), tools)
    found: list[Example] = []
    for place in _spoken(messages):
        request = msgspec.structs.replace(request_for(policy, rendered, messages[:place], None), adapter=None)
        found.append(await _example(request, messages[place], policy, tokens, names))
    return tuple(found)


def _spoken(messages: Sequence[Message]) -> list[int]:
    """Where the agent says something that follows something."""
    return [place for place, each in enumerate(messages) if place and each.speaker is Speaker.ASSISTANT and each.text]


async def _example(
    request: ModelRequest, answer: Message, policy: Policy, tokens: Tokens, names: tuple[str, str, float]
) -> Example:
    if answer.tool_calls:
        raise ConfigError(
            "answers with native tool calls cannot be learned: how they were written is not kept",
            hint='Set target.tools = "text"',
        )
    source, task, soft = names
    stops = policy.sampling.stop
    if request.plain and stops:
        # A plain text ends where the stop comes, so that is what the model has to say.
        completion = await tokens.tokens(answer.text + stops[0])
    else:
        completion = (*await tokens.tokens(answer.text), tokens.end_token)
    return Example(await tokens.prompt_tokens(request), completion, source, task, soft)
