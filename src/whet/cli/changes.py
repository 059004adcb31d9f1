"""What changed from one skill of a run to another, with who brought each change, from what, and what it did."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import click
import msgspec

from whet.cli.numbers import plural
from whet.cli.output import paragraph
from whet.cli.steps import heading, why_skipped
from whet.core import Skill, Source
from whet.training import Report, StepRecord
from whet.web import Facts, Origin, Row, RowKind, Version, changed_files, edits_behind, grouped, way_between

_AROUND = 2
"""Unchanged lines that are shown beside a change."""
_FEW = 8
"""Tasks that are named before the rest are counted; --json has them all."""
_INDENT = "      "


class Change(msgspec.Struct, frozen=True):
    """Neighbouring lines that one record of the run changed."""

    file: str
    removed: tuple[str, ...]
    added: tuple[str, ...]
    brought_by: str
    """Empty where the one skill did not come of the other."""
    outcome: str = ""
    reasoning: str = ""
    learned_from: tuple[str, ...] = ()
    """Train tasks whose tries stood behind it."""
    source: Source | None = None
    """Whether those tries failed."""
    fixed: tuple[str, ...] = ()
    """Selection tasks that the candidate with this change did better than the policy before it."""
    broke: tuple[str, ...] = ()


class ChangedFile(msgspec.Struct, frozen=True):
    """In order: runs of unchanged lines, and changes."""

    path: str
    parts: tuple[tuple[str, ...] | Change, ...]


def changes_between(report: Report, facts: Facts, before: Skill, after: Skill, policy: str) -> list[ChangedFile]:
    """`policy` is the one that `after` is the skill of."""
    way = way_between(report, facts, Version(before.files, None), Version(after.files, None), policy)
    return [ChangedFile(found.path, tuple(_parts(report, way, found.path, found.rows))) for found in changed_files(way)]


def _parts(
    report: Report, way: Sequence[Version], path: str, rows: Sequence[Row]
) -> Iterator[tuple[str, ...] | Change]:
    for by, group in grouped(rows):
        if by:
            yield _change(report, way[by].origin, path, group)
        else:
            yield tuple(row.text for row in group)


def _change(report: Report, origin: Origin | None, path: str, rows: Sequence[Row]) -> Change:
    removed, added = (tuple(row.text for row in rows if row.kind is kind) for kind in (RowKind.REMOVED, RowKind.ADDED))
    if origin is None:
        return Change(path, removed, added, "")
    record = report.steps[origin.record]
    if origin.after:
        return Change(path, removed, added, heading(record), "a reminder, kept whatever was ruled")
    edits = edits_behind(record, (*removed, *added))
    return Change(
        path,
        removed,
        added,
        heading(record),
        outcome=_outcome(record),
        reasoning=record.reasoning.strip(),
        learned_from=tuple(dict.fromkeys(task for edit in edits for task in edit.tasks)),
        source=next((edit.source for edit in edits), None),
        fixed=record.ruling.fixed_tasks if record.ruling else (),
        broke=record.ruling.broke_tasks if record.ruling else (),
    )


def _outcome(record: StepRecord) -> str:
    if record.ruling is None:
        return why_skipped(record)
    return f"{'accepted' if record.ruling.accepted else 'rejected'}: {record.ruling.reason}"


def print_changes(files: Sequence[ChangedFile], before: str, after: str) -> None:
    for file in files:
        click.secho(f"--- {before}/{file.path}", bold=True)
        click.secho(f"+++ {after}/{file.path}", bold=True)
        for place, part in enumerate(file.parts):
            if isinstance(part, Change):
                _print_change(part)
            else:
                _print_unchanged(part, first=place == 0, last=place == len(file.parts) - 1)


def _print_unchanged(lines: Sequence[str], *, first: bool, last: bool) -> None:
    head, tail = (0 if first else _AROUND), (0 if last else _AROUND)
    hidden = len(lines) - head - tail
    if hidden < 2:
        _print_lines(" ", lines)
        return
    _print_lines(" ", lines[:head])
    click.secho(f"@@ {plural(hidden, 'unchanged line')} @@", fg="cyan")
    _print_lines(" ", lines[len(lines) - tail :])


def _print_change(change: Change) -> None:
    _print_lines("-", change.removed, fg="red")
    _print_lines("+", change.added, fg="green")
    for line in _told(change):
        paragraph(line, indent=_INDENT)
    if change.brought_by:
        click.echo("")


def _print_lines(mark: str, lines: Sequence[str], fg: str | None = None) -> None:
    for line in lines:
        click.secho(f"{mark}{line}", fg=fg)


def _told(change: Change) -> Iterator[str]:
    if not change.brought_by:
        return
    yield f"by {change.brought_by}; {change.outcome}"
    if change.reasoning:
        yield f"because: {change.reasoning}"
    if change.learned_from:
        kind = "successful" if change.source is Source.SUCCESS else "failed"
        tries = plural(len(change.learned_from), f"{kind} try", f"{kind} tries")
        yield f"learned from {tries}: {_some(change.learned_from)}"
    if change.fixed or change.broke:
        yield f"fixed: {_some(change.fixed)}; broke: {_some(change.broke)}"


def _some(tasks: Sequence[str]) -> str:
    more = f" and {len(tasks) - _FEW} more" if len(tasks) > _FEW else ""
    return f"{', '.join(tasks[:_FEW])}{more}" if tasks else "none"
