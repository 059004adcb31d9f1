"""Trajectories as the optimizer reads them."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from whet.core import SKILL_FILE, Edit, Message, Patch, Speaker, Trajectory
from whet.learners.skill.answers import REWRITE, SUGGEST

_LONGEST = 6_000
"""Letters of one message; the middle of a longer one is left out, and said to be."""


def show_trajectories(trajectories: Sequence[Trajectory]) -> str:
    return "\n\n".join(_show(number, played) for number, played in enumerate(trajectories, start=1))


def _show(number: int, played: Trajectory) -> str:
    lines = [f"### Trajectory {number}: task {played.task}" + (f" ({played.kind})" if played.kind else "")]
    lines += [_said(message) for message in played.messages]
    verdict = played.verdict
    if verdict is not None:
        outcome = "passed" if verdict.hard else "failed"
        lines.append(f"[verdict] {outcome}, partial credit {verdict.soft:.2f}. {verdict.feedback}".rstrip())
        if verdict.reference:
            lines.append(f"[right answer] {verdict.reference}")
    return "\n".join(lines)


def _said(message: Message) -> str:
    names = {Speaker.USER: "told", Speaker.ASSISTANT: "agent", Speaker.TOOL: "tool", Speaker.SYSTEM: "system"}
    calls = "".join(f"\n[calls] {call.name} {call.arguments}" for call in message.tool_calls)
    return f"[{names[message.speaker]}] {_shortened(message.text)}{calls}"


def _shortened(text: str) -> str:
    if len(text) <= _LONGEST:
        return text
    half = _LONGEST // 2
    return f"{text[:half]}\n… {len(text) - _LONGEST} letters left out …\n{text[-half:]}"


def show_patches(patches: Sequence[Patch]) -> str:
    return "\n\n".join(
        f"### Patch {n}\n{patch.reasoning}\n{show_edits(patch.edits)}" for n, patch in enumerate(patches, 1)
    )


def show_edits(edits: Sequence[Edit]) -> str:
    """One JSON object a line, numbered from 0."""
    return "\n".join(f"[{number}] {show_edit(edit)}" for number, edit in enumerate(edits))


def show_edit(edit: Edit) -> str:
    shown: dict[str, str | int] = {"op": edit.op, "target": edit.target, "content": edit.content}
    if edit.op == SUGGEST:
        shown = {"title": edit.target, "instruction": edit.content}
    elif edit.op == REWRITE:
        shown = {"title": edit.target, "new_skill": edit.content}
    elif edit.file != SKILL_FILE:
        shown["file"] = edit.file
    return msgspec.json.encode({**shown, "support": edit.support}).decode()
