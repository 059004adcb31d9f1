"""One step in full: what was played, what was proposed and why, and how it was ruled on."""

from __future__ import annotations

from pathlib import Path

import click

from whet.cli.numbers import plural, share
from whet.cli.output import pairs, paragraph, title
from whet.cli.steps import count_steps, heading, why_skipped
from whet.core import Edit, EditResult, InputError, Op, Source
from whet.store import RunReader
from whet.training import StepRecord
from whet.training.folder import STORE_FILE


def records_of(folder: Path, number: int) -> list[StepRecord]:
    """A step, and the end of the epoch that it ended."""
    with RunReader(folder / STORE_FILE) as reader:
        records = reader.decisions("step", StepRecord)
    found = [record for record in records if record.number == number]
    if not found:
        known = f"It has steps 1 to {count_steps(records)} so far." if records else "It has no steps yet."
        raise InputError(f"{folder.name} has no step {number}", hint=known)
    return found


def print_records(records: list[StepRecord]) -> None:
    for position, record in enumerate(records):
        if position:
            click.echo("")
        _print_record(record)


def _print_record(step: StepRecord) -> None:
    click.secho(heading(step), bold=True)
    played = f"{step.played.count} tasks, {share(step.played.hard)} of them passed"
    pairs(
        [
            *([("played", played)] if step.played.count else []),
            ("policy", step.current[:8]),
            ("candidate", step.candidate[:8] or f"none: {why_skipped(step)}"),
        ]
    )
    _print_ruling(step)
    if step.reasoning:
        title("Reasoning")
        paragraph(step.reasoning)
    _print_patterns(step)
    _print_edits(step)
    if step.notes:
        title("Reminders that were kept")
        for note in step.notes:
            paragraph(note)
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
    if ruling.p is not None:
        paragraph(f"So good by chance: p {ruling.p:.2g}; the rule asks for at most {ruling.level:g}.")
    if ruling.saved:
        paragraph(f"{plural(ruling.saved, 'play')} of the plan {'was' if ruling.saved == 1 else 'were'} not needed.")
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


def _tries(edit: Edit) -> str:
    kind = "failed" if edit.source is Source.FAILURE else "successful"
    return plural(edit.support, f"{kind} try", f"{kind} tries")


def _print_edit(number: int, outcome: EditResult) -> None:
    edit = outcome.edit
    origin = f", learned from {_tries(edit)}" if edit.source else ""
    note = f" ({outcome.note})" if outcome.note else ""
    click.echo(f"{number}. {edit.op} in {edit.file}{origin}: {outcome.status.replace('_', ' ')}{note}")
    removed = edit.target if edit.op in (Op.REPLACE, Op.DELETE) else ""
    if edit.target and not removed:
        paragraph(f"after: {edit.target}", indent="   ")
    for line in removed.splitlines():
        click.secho(f"   - {line}", fg="red")
    for line in edit.content.splitlines():
        click.secho(f"   + {line}", fg="green")
