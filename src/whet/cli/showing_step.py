"""One step in full: what was played, what was proposed and why, and how it was ruled on."""

from __future__ import annotations

from pathlib import Path

import click

from whet.cli.numbers import share
from whet.cli.output import pairs, paragraph, title
from whet.cli.showing_run import why_skipped
from whet.core import EditResult, InputError, Op
from whet.store import RunReader
from whet.training import StepRecord
from whet.training.folder import STORE_FILE


def step_of(folder: Path, number: int) -> StepRecord:
    with RunReader(folder / STORE_FILE) as reader:
        steps = reader.decisions("step", StepRecord)
    found = next((step for step in steps if step.number == number), None)
    if found is None:
        known = f"It has steps 1 to {len(steps)} so far." if steps else "It has no steps yet."
        raise InputError(f"{folder.name} has no step {number}", hint=known)
    return found


def print_step(step: StepRecord) -> None:
    click.secho(f"step {step.number}, epoch {step.epoch}", bold=True)
    pairs(
        [
            ("played", f"{step.played.count} tasks, {share(step.played.hard)} of them passed"),
            ("policy", step.current[:8]),
            ("candidate", step.candidate[:8] or f"none: {why_skipped(step.skipped)}"),
        ]
    )
    _print_ruling(step)
    if step.reasoning:
        title("Reasoning")
        paragraph(step.reasoning)
    _print_patterns(step)
    _print_edits(step)
    if step.fallbacks:
        title("Answers that could not be used")
        for fallback in step.fallbacks:
            paragraph(fallback)


def _print_ruling(step: StepRecord) -> None:
    ruling = step.ruling
    if ruling is None:
        return
    title("Ruling")
    paragraph(f"{'Accepted' if ruling.accepted else 'Rejected'}: {ruling.reason}.")
    paragraph(
        f"On the selection tasks: {ruling.fixed} fixed, {ruling.broke} broken, {ruling.both} passed with both,"
        f" {ruling.neither} with neither."
    )
    if ruling.new_best:
        paragraph("It is the best so far.")


def _print_patterns(step: StepRecord) -> None:
    if not step.patterns:
        return
    title("Failure patterns")
    for pattern in step.patterns:
        count = f" ({pattern.count})" if pattern.count else ""
        paragraph(f"{pattern.failure_type}{count}: {pattern.description}")


def _print_edits(step: StepRecord) -> None:
    if not step.edits:
        return
    title("Edits")
    for number, outcome in enumerate(step.edits, start=1):
        _print_edit(number, outcome)


def _print_edit(number: int, outcome: EditResult) -> None:
    edit = outcome.edit
    origin = f", from {edit.support} {edit.source} tries" if edit.source else ""
    note = f" ({outcome.note})" if outcome.note else ""
    click.echo(f"{number}. {edit.op} in {edit.file}{origin}: {outcome.status.replace('_', ' ')}{note}")
    removed = edit.target if edit.op in (Op.REPLACE, Op.DELETE) else ""
    if edit.target and not removed:
        paragraph(f"after: {edit.target}", indent="   ")
    for line in removed.splitlines():
        click.secho(f"   - {line}", fg="red")
    for line in edit.content.splitlines():
        click.secho(f"   + {line}", fg="green")
