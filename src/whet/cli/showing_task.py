"""Every try at one task: who played, what was said, and the verdict."""

from __future__ import annotations

import click

from whet.cli.numbers import when
from whet.cli.output import paragraph, title
from whet.cli.standing import Lineage
from whet.core import InputError, Message, Speaker, Trajectory
from whet.store import RunReader, StoredRollout

_SPEAKERS = {
    Speaker.SYSTEM: "system",
    Speaker.USER: "task",
    Speaker.ASSISTANT: "agent",
    Speaker.TOOL: "tool",
}


def tries_of(reader: RunReader, run: str, task: str) -> list[StoredRollout]:
    found = list(reader.rollouts(task=task))
    if not found:
        raise InputError(
            f"{run} has not played a task {task!r}", hint="`whet export RUN --what rollouts` lists what it played."
        )
    return found


def print_task(tries: list[StoredRollout], lineage: Lineage) -> None:
    first = tries[0].trajectory
    kind = f" ({first.kind})" if first.kind else ""
    passed = sum(stored.trajectory.hard == 1.0 for stored in tries)
    click.secho(f"{first.task}{kind}, {first.split}: passed {passed} of {len(tries)}", bold=True)
    for stored in tries:
        _print_try(stored, lineage)


def _print_try(stored: StoredRollout, lineage: Lineage) -> None:
    played = stored.trajectory
    sample = f", try {played.sample + 1}" if played.sample else ""
    title(f"{_outcome(played)}: policy {lineage.named(played.policy)}{sample}, {when(stored.at)}")
    for message in played.messages:
        _print_message(message)
    verdict = played.verdict
    if verdict is not None:
        paragraph(f"verdict: {verdict.feedback or _outcome(played)}", indent="  ")
    if verdict is not None and verdict.reference:
        paragraph(f"right answer: {verdict.reference}", indent="  ")


def _outcome(played: Trajectory) -> str:
    verdict = played.verdict
    if verdict is None:
        return "no verdict"
    partial = f" ({verdict.soft:.2f})" if 0.0 < verdict.soft < 1.0 else ""
    return ("passed" if verdict.hard else "failed") + partial


def _print_message(message: Message) -> None:
    said = message.text.strip()
    if said:
        paragraph(f"{_SPEAKERS[message.speaker]}: {said}", indent="  ")
    for call in message.tool_calls:
        paragraph(f"calls {call.name} {call.arguments}", indent="  ")
