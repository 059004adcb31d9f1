"""The way from the skill of the start to the best one: every version on it, and what brought it. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import msgspec

from whet.core import Edit
from whet.training import Report, StepRecord
from whet.training.records import RecordKind
from whet.web.attribution import Row, annotate, lines_of
from whet.web.facts import Facts
from whet.web.outcomes import outcome_of


class Origin(msgspec.Struct, frozen=True):
    """Who brought a version: a record, by its place in the report; or what was put in after it without a candidate."""

    record: int
    after: bool = False
    """Reminders, which are kept whatever was ruled."""


class Version(msgspec.Struct, frozen=True):
    files: dict[str, str]
    origin: Origin | None
    """None for the start."""


class FileRows(msgspec.Struct, frozen=True):
    """One file of the best skill against the start. A row's `by` is the place of its version."""

    path: str
    rows: tuple[Row, ...]


def way_to_best(report: Report, facts: Facts) -> list[Version]:
    """Each version once, the start first and the best skill last."""
    way = [Version(facts.start_skill, None)]
    if report.best != report.start:
        for place, record in enumerate(report.steps):
            way += _versions_of(place, record, facts)
            if record.candidate == report.best and outcome_of(record).kept:
                break
    if way[-1].files != report.skill:
        way.append(Version(report.skill, Origin(len(report.steps) - 1, after=True) if report.steps else None))
    return [version for place, version in enumerate(way) if not place or version.files != way[place - 1].files]


def _versions_of(place: int, record: StepRecord, facts: Facts) -> list[Version]:
    """What the record began with, if that is known, and what it put in its place."""
    began = facts.skills.get(record.current)
    if record.kind is RecordKind.LAST:
        return [Version(record.candidate_skill, Origin(place - 1, after=True))] if outcome_of(record).kept else []
    found = [Version(began, Origin(place - 1, after=True))] if began is not None and place else []
    return [*found, Version(record.candidate_skill, Origin(place))] if outcome_of(record).kept else found


def changed_files(way: Sequence[Version]) -> list[FileRows]:
    """The files in which the last version differs from the first."""
    paths = sorted({path for version in (way[0], way[-1]) for path in version.files})
    annotated = (FileRows(path, tuple(annotate([_lines(version.files, path) for version in way]))) for path in paths)
    return [found for found in annotated if any(row.by for row in found.rows)]


def edits_behind(record: StepRecord, lines: Sequence[str]) -> list[Edit]:
    """The record's edits that wrote or named one of these lines."""
    wanted = [line.strip() for line in lines if line.strip()]
    applied = [done.edit for done in record.edits if done.status.changed]
    return [edit for edit in applied if any(line in edit.content or line in edit.target for line in wanted)]


def _lines(files: Mapping[str, str], path: str) -> tuple[str, ...]:
    return lines_of(files.get(path, ""))
