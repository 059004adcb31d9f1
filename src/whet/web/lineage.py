"""The way from one skill to a later one: every version on it, and what brought it. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby

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
    """One file of the last version against the first. A row's `by` is the place of its version."""

    path: str
    rows: tuple[Row, ...]


def way_to_best(report: Report, facts: Facts) -> list[Version]:
    """Each version once, the start first and the best skill last."""
    way = [Version(facts.start_skill, None), *reversed(list(_ancestors(report, facts, report.best)))]
    if way[-1].files != report.skill:
        way.append(Version(report.skill, Origin(len(report.steps) - 1, after=True) if report.steps else None))
    return _without_repeats(way)


def way_between(report: Report, facts: Facts, first: Version, last: Version, policy: str) -> list[Version]:
    """From `first` to `last`, which is the skill of `policy`; those two alone where the one did not come of the other.

    `policy` may be a candidate that was not kept.
    """
    tried = next((place for place, record in enumerate(report.steps) if record.candidate == policy), None)
    if tried is not None and _maker(report.steps, policy) is None:
        back = [Version(last.files, Origin(tried)), *_ancestors(report, facts, report.steps[tried].current, tried)]
    else:
        back = list(_ancestors(report, facts, policy))
    back.append(Version(facts.start_skill, None))
    met = next((place for place, version in enumerate(back) if version.files == first.files), None)
    if met is None or back[0].files != last.files:
        return [first, last]
    return _without_repeats([first, *reversed(back[:met])])


def _without_repeats(way: Sequence[Version]) -> list[Version]:
    return [version for place, version in enumerate(way) if not place or version.files != way[place - 1].files]


def _ancestors(report: Report, facts: Facts, policy: str, before: int | None = None) -> Iterator[Version]:
    """From a policy back to the start: what a candidate was made from is what its record began with."""
    before = len(report.steps) if before is None else before
    while policy != report.start:
        maker = _maker(report.steps[:before], policy)
        if maker is not None:
            record = report.steps[maker]
            yield Version(record.candidate_skill, Origin(maker))
            policy, before = record.current, maker
            continue
        first = _first_use(report.steps[: before + 1], policy)
        if not first:
            return
        user, record = report.steps[first], report.steps[first - 1]
        files = user.candidate_skill if user.candidate == policy else facts.skills.get(policy)
        if files is not None:
            yield Version(files, Origin(first - 1, after=True))
        kept = outcome_of(record).kept
        policy, before = (record.candidate, first) if kept else (record.current, first - 1)


def _maker(records: Sequence[StepRecord], policy: str) -> int | None:
    """The latest record that put this candidate in; one that only lets it compete has not made it."""
    made = (place for place, record in enumerate(records) if record.candidate == policy and _makes(record))
    return max(made, default=None)


def _makes(record: StepRecord) -> bool:
    return record.kind is not RecordKind.LAST and outcome_of(record).kept


def _first_use(records: Sequence[StepRecord], policy: str) -> int:
    """The first record that began with a policy which none made: reminders came before it. 0: there is none."""
    used = (place for place, record in enumerate(records) if policy in (record.current, record.candidate))
    return min(used, default=0)


def changed_files(way: Sequence[Version]) -> list[FileRows]:
    """The files in which the last version differs from the first."""
    paths = sorted({path for version in (way[0], way[-1]) for path in version.files})
    annotated = (FileRows(path, tuple(annotate([_lines(version.files, path) for version in way]))) for path in paths)
    return [found for found in annotated if any(row.by for row in found.rows)]


def grouped(rows: Sequence[Row]) -> list[tuple[int, list[Row]]]:
    """Neighbouring rows of one version. Empty lines alone are no change to tell of: they go with what is above them."""
    groups: list[tuple[int, list[Row]]] = []
    for by, group in groupby(rows, key=lambda row: row.by):
        found = list(group)
        above = groups[-1][0] if groups else -1
        empty = not any(row.text.strip() for row in found)
        if by == above or (by and above > 0 and empty):
            groups[-1][1].extend(found)
        else:
            groups.append((by, found))
    return groups


def edits_behind(record: StepRecord, lines: Sequence[str]) -> list[Edit]:
    """The record's edits that wrote or named one of these lines."""
    wanted = [line.strip() for line in lines if line.strip()]
    applied = [done.edit for done in record.edits if done.status.changed]
    return [edit for edit in applied if any(line in edit.content or line in edit.target for line in wanted)]


def _lines(files: Mapping[str, str], path: str) -> tuple[str, ...]:
    return lines_of(files.get(path, ""))
