"""Keeping `<think>` blocks, which some models write into their answer, out of it."""

from __future__ import annotations

_OPEN, _CLOSE = "<think>", "</think>"


def split_thinking(text: str) -> tuple[str, str]:
    """What was thought and what was answered.

    Some chat templates put the opening tag into the prompt, so a text with only a closing tag began inside the block.
    An answer cut off while thinking is empty.
    """
    start = text.lstrip()
    opened = start.startswith(_OPEN)
    if not opened and (_CLOSE not in text or _OPEN in text.partition(_CLOSE)[0]):
        return "", text
    thought, closed, answer = (start[len(_OPEN) :] if opened else start).partition(_CLOSE)
    return thought.strip(), answer.lstrip() if closed else ""


class ThinkFilter:
    """The same for text that arrives in pieces. A block whose opening tag is not shown can only be cut at the end."""

    def __init__(self) -> None:
        self._held = ""
        self._thinking: bool | None = None
        """None until the first characters tell."""
        self._answering = False
        """Whether any of the answer after a block has been given; before it, white space is dropped."""

    def feed(self, text: str) -> str:
        if self._thinking is False:
            return self._after_block(text)
        self._held += text
        if self._thinking is None:
            start = self._held.lstrip()
            if len(start) < len(_OPEN) and _OPEN.startswith(start):
                return ""
            self._thinking = start.startswith(_OPEN)
            if not self._thinking:
                self._answering = True
                return self._held
        before, closed, after = self._held.partition(_CLOSE)
        if not closed:
            self._held = before[-len(_CLOSE) :]
            return ""
        self._thinking = False
        return self._after_block(after)

    def _after_block(self, text: str) -> str:
        if not self._answering:
            text = text.lstrip()
            self._answering = bool(text)
        return text
