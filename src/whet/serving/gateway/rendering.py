"""From a policy and what a caller says to the call that an evaluation would make. Pure.

The renderer of rollouts does it, with the first message of the user as the task: whatever else is here only puts the
caller's own messages where an episode's would stand.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import msgspec

from whet.core import (
    Brief,
    ImagePart,
    Message,
    ModelReply,
    ModelRequest,
    Policy,
    Speaker,
    ToolCall,
    ToolMode,
    ToolResult,
    ToolSpec,
    assistant,
    system,
)
from whet.rollout.calling import answer_to, calls_in
from whet.rollout.render import Rendered, render, request_for
from whet.serving.gateway.asked import Asked
from whet.serving.gateway.refusal import Refusal

Render = Callable[[Policy, Brief, Sequence[ToolSpec]], Rendered]


def request_of(
    policy: Policy, asked: Asked, schema: dict[str, Any] | None = None, renderer: Render = render
) -> ModelRequest:
    """`schema` is the world's for its answers, where the caller says none and the policy is held to it."""
    instructions, conversation = _apart(asked.messages)
    place = next((place for place, said in enumerate(conversation) if said.speaker is Speaker.USER), None)
    if place is None:
        raise Refusal(400, "there is no message of the user", param="messages")
    rendered = renderer(policy, _brief(conversation[place], asked.schema or schema), asked.tools)
    said = (*conversation[:place], *rendered.opening, *conversation[place + 1 :])
    if written_tools(policy, asked):
        said = tuple(_written(message) for message in said)
    own = msgspec.structs.replace(policy, sampling=asked.sampling(policy.sampling))
    request = request_for(own, _with_instructions(rendered, instructions), said, asked.settings.seed)
    return request if request.schema or not asked.schema else msgspec.structs.replace(request, schema=asked.schema)


def written_tools(policy: Policy, asked: Asked) -> bool:
    """Whether this model calls its tools in its text."""
    return bool(asked.tools) and policy.harness.tool_mode is ToolMode.TEXT


def with_calls(reply: ModelReply) -> ModelReply:
    """An answer with the calls that stand in its text. The text stays, for the model to see again as it wrote it."""
    calls = calls_in(reply, ToolMode.TEXT)
    return msgspec.structs.replace(reply, tool_calls=calls) if calls else reply


def _apart(messages: tuple[Message, ...]) -> tuple[tuple[Message, ...], tuple[Message, ...]]:
    """What the caller's system messages say at the beginning, and the conversation."""
    count = next((place for place, said in enumerate(messages) if said.speaker is not Speaker.SYSTEM), len(messages))
    return messages[:count], messages[count:]


def _with_instructions(rendered: Rendered, instructions: tuple[Message, ...]) -> Rendered:
    """One system message: templates take no second one."""
    if not instructions:
        return rendered
    texts = [message.text for message in (*rendered.head, *instructions)]
    return msgspec.structs.replace(rendered, head=(system("\n\n".join(text for text in texts if text)),))


def _brief(message: Message, schema: dict[str, Any] | None) -> Brief:
    images = () if isinstance(message.content, str) else message.content
    return Brief(message.text, tuple(part for part in images if isinstance(part, ImagePart)), schema)


def _written(message: Message) -> Message:
    """As the messages of an episode in which tools are called in text."""
    match message.speaker:
        case Speaker.TOOL:
            call = ToolCall(message.tool_call_id, "", "")
            return answer_to(call, ToolResult(message.text), ToolMode.TEXT)
        case Speaker.ASSISTANT if message.tool_calls:
            return assistant(message.text if "<tool_call>" in message.text else _calls_written(message))
        case _:
            return message


def _calls_written(message: Message) -> str:
    blocks = [
        f'<tool_call>\n{{"name": "{c.name}", "arguments": {c.arguments or "{}"}}}\n</tool_call>'
        for c in message.tool_calls
    ]
    return "\n".join([*([message.text] if message.text else []), *blocks])
