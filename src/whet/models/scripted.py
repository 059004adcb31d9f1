"""Models that are Python functions or recorded files: for demonstrations, tests and replay."""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import TypeAlias

import msgspec

from whet.core import BadReply, InputError, ModelReply, ModelRequest, RequestRefused, Usage

Script: TypeAlias = Callable[[ModelRequest], "ModelReply | str | Awaitable[ModelReply | str]"]


class ScriptedSender:
    """Answers by calling a function. A text is a reply whose tokens are counted in words."""

    def __init__(self, script: Script) -> None:
        self._script = script

    async def send(self, request: ModelRequest, timeout: float, headers: dict[str, str]) -> ModelReply:
        answer = self._script(request)
        if inspect.isawaitable(answer):
            answer = await answer
        if isinstance(answer, str):
            return ModelReply(answer, usage=_word_count(request, answer), served_by="scripted")
        if not isinstance(answer, ModelReply):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise BadReply(f"the scripted model returned {type(answer).__name__}, not a text or a ModelReply")
        return answer

    async def aclose(self) -> None:
        pass


def _word_count(request: ModelRequest, answer: str) -> Usage:
    return Usage(sum(len(message.text.split()) for message in request.messages), max(1, len(answer.split())))


class Recorded(msgspec.Struct, frozen=True):
    """One line of a recorded file: a conversation as `[[speaker, text], …]`, and what was answered."""

    messages: tuple[tuple[str, str], ...]
    reply: str


def replay(path: Path) -> Script:
    """A script that answers what the JSON lines of `path` hold, and refuses what they do not."""
    answers: dict[tuple[tuple[str, str], ...], str] = {}
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"{path} cannot be read as recorded answers: {error}") from error
    for number, line in enumerate(lines, start=1):
        if line.strip():
            try:
                recorded = msgspec.json.decode(line, type=Recorded)
            except (msgspec.DecodeError, UnicodeError) as error:
                raise InputError(f"{path.name}:{number}: not a recorded answer: {error}") from error
            answers[recorded.messages] = recorded.reply

    def answer(request: ModelRequest) -> str:
        asked = tuple((message.speaker.value, message.text) for message in request.messages)
        if asked not in answers:
            told = asked[-1][1][:80] if asked else ""
            raise RequestRefused(f"{path.name} holds no answer to {told!r}", hint="Record it, or use a function.")
        return answers[asked]

    return answer
