"""What is said between a model, its agent and its tools.

Structs that exist by the thousand and cannot form cycles are kept from the garbage collector (`gc=False`).
"""

from __future__ import annotations

from enum import StrEnum
from typing import Any, TypeAlias

import msgspec


class Speaker(StrEnum):
    SYSTEM = "system"
    USER = "user"
    ASSISTANT = "assistant"
    TOOL = "tool"


class TextPart(msgspec.Struct, frozen=True, tag="text", gc=False):
    text: str


class ImagePart(msgspec.Struct, frozen=True, tag="image", gc=False):
    """An image by its bytes; whet never asks a model to fetch a URL."""

    media_type: str
    data: bytes


Part: TypeAlias = TextPart | ImagePart


class ToolSpec(msgspec.Struct, frozen=True, gc=False):
    """A tool as the agent sees it; `parameters` is a JSON schema of type object."""

    name: str
    description: str
    parameters: dict[str, Any]


class ToolCall(msgspec.Struct, frozen=True, gc=False):
    """`arguments` as the model wrote them: JSON text that may be wrong."""

    id: str
    name: str
    arguments: str


class Message(msgspec.Struct, frozen=True, omit_defaults=True, gc=False):
    speaker: Speaker
    content: str | tuple[Part, ...] = ""
    tool_calls: tuple[ToolCall, ...] = ()
    """Only the assistant's."""
    tool_call_id: str = ""
    """Only a tool's: which call it answers."""
    tool_error: bool = False

    @property
    def text(self) -> str:
        if isinstance(self.content, str):
            return self.content
        return "\n".join(part.text for part in self.content if isinstance(part, TextPart))


def system(text: str) -> Message:
    return Message(Speaker.SYSTEM, text)


def user(content: str | tuple[Part, ...]) -> Message:
    return Message(Speaker.USER, content)


def assistant(text: str, tool_calls: tuple[ToolCall, ...] = ()) -> Message:
    return Message(Speaker.ASSISTANT, text, tool_calls)


def tool_answer(call_id: str, text: str, *, error: bool = False) -> Message:
    return Message(Speaker.TOOL, text, tool_call_id=call_id, tool_error=error)
