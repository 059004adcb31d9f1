"""Answers that may call tools, in the form in which llama.cpp tells calls from text."""

from __future__ import annotations

import msgspec

from whet.core import BadReply, Finish, ModelReply, ToolCall, Usage


class Function(msgspec.Struct, frozen=True):
    name: str
    arguments: str


class Call(msgspec.Struct, frozen=True):
    function: Function
    id: str = ""


class Said(msgspec.Struct, frozen=True):
    content: str | None = None
    reasoning_content: str | None = None
    tool_calls: tuple[Call, ...] = ()


class Choice(msgspec.Struct, frozen=True):
    message: Said
    finish_reason: str


class ChatUsage(msgspec.Struct, frozen=True):
    completion_tokens: int


class Chat(msgspec.Struct, frozen=True):
    choices: tuple[Choice, ...]
    usage: ChatUsage

    def reply(self, name: str, prompt: int, cached: int) -> ModelReply:
        if not self.choices:
            raise BadReply("llama.cpp answered without an answer")
        said = self.choices[0].message
        calls = tuple(
            ToolCall(call.id or f"call_{number}", call.function.name, call.function.arguments)
            for number, call in enumerate(said.tool_calls)
        )
        ended = Finish.LENGTH if self.choices[0].finish_reason == "length" else Finish.STOP
        return ModelReply(
            said.content or "",
            calls,
            Finish.TOOL_CALLS if calls else ended,
            Usage(prompt, self.usage.completion_tokens, cached),
            served_by=name,
            reasoning=said.reasoning_content or "",
        )
