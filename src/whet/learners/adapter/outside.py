"""Chats from outside to learn from: a JSONL file, one {"messages": [{"role": ..., "content": ...}, ...]} a line."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path

import msgspec

from whet.core import InputError, Message, Speaker


class _Role(StrEnum):
    SYSTEM = "system"
    USER = "user"
    ASSISTANT = "assistant"


class _Said(msgspec.Struct, frozen=True):
    role: _Role
    content: str


class _Line(msgspec.Struct, frozen=True):
    messages: tuple[_Said, ...]


class Chat(msgspec.Struct, frozen=True):
    name: str
    """The file and the line that it is from."""
    messages: tuple[Message, ...]


def read_chats(path: Path) -> tuple[Chat, ...]:
    """Each different chat once, in the order of the file. Errors name the line."""
    try:
        lines = path.read_bytes().splitlines()
    except OSError as error:
        raise InputError(f"{path} cannot be read: {error.strerror}", hint="See `data` in [adapter]") from error
    found: dict[tuple[Message, ...], Chat] = {}
    for number, line in enumerate(lines, start=1):
        if line.strip():
            chat = Chat(f"{path.name}:{number}", _messages(line, f"{path}:{number}"))
            found.setdefault(chat.messages, chat)
    if not found:
        raise InputError(f"{path} holds no chats", hint='A line is like {"messages": [{"role": "user", ...}, ...]}')
    return tuple(found.values())


def _messages(line: bytes, where: str) -> tuple[Message, ...]:
    try:
        told = msgspec.json.decode(line, type=_Line)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise InputError(f"{where}: {error}", hint="Roles are system, user and assistant") from error
    if len(told.messages) < 2 or told.messages[-1].role is not _Role.ASSISTANT:
        raise InputError(f"{where}: a chat ends with what the assistant says to somebody")
    for place, each in enumerate(told.messages):
        if not each.content.strip():
            raise InputError(f"{where}: message {place + 1} is empty")
        if place and each.role is _Role.SYSTEM:
            raise InputError(f"{where}: message {place + 1} is the system's, which only the first can be")
    return tuple(Message(Speaker(each.role.value), each.content) for each in told.messages)
