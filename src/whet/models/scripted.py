"""Models that are Python functions: for demonstrations, tests and replay."""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable
from typing import TypeAlias

from whet.core import BadReply, ModelReply, ModelRequest, Usage

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
