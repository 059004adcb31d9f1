"""The course of the selection scores over a run: what the learning curve draws. Pure."""

from __future__ import annotations

from collections.abc import Iterator
from math import ceil, floor

import msgspec

from whet.core import Ruling
from whet.gate import Interval
from whet.training import Report, StepRecord
from whet.training.records import RecordKind
from whet.web.outcomes import Outcome, count_steps, given_up, interval_of, label, outcome_of, tested, why

_NARROWEST = 0.2


class Point(msgspec.Struct, frozen=True):
    """One record's place in the curve."""

    record: int
    label: str
    step: int
    """0 where it is not a step."""
    epoch: int
    outcome: Outcome
    score: float | None
    """The candidate's; None if none was ruled on."""
    bound: bool
    """It scores at most so much: it was not played to the end."""
    interval: Interval | None
    current: float | None
    """Scores after the record, as far as they were measured."""
    best: float | None
    played: float | None
    """The share of the step's train tasks that were passed."""
    told: str


class Course(msgspec.Struct, frozen=True):
    start: float | None
    start_interval: Interval | None
    points: tuple[Point, ...]

    @property
    def drawable(self) -> bool:
        return self.start is not None or any(point.score is not None for point in self.points)

    @property
    def range(self) -> tuple[float, float]:
        """Whole tenths that hold every score and interval, and are not so near that noise looks like a gain."""
        values = list(self._values()) or [0.0, 1.0]
        low, high = floor(min(values) * 10 + 1e-9) / 10, ceil(max(values) * 10 - 1e-9) / 10
        while high - low < _NARROWEST - 1e-9:
            low, high = max(0.0, low - 0.1), min(1.0, high + 0.1)
        return max(0.0, low), min(1.0, high)

    def _values(self) -> Iterator[float]:
        intervals = [self.start_interval, *(point.interval for point in self.points)]
        for found in intervals:
            if found is not None:
                yield from (found.low, found.high)
        scores = (score for point in self.points for score in (point.score, point.current, point.best, point.played))
        yield from (score for score in (self.start, *scores) if score is not None)


def course_of(report: Report) -> Course:
    start = next((score for score in report.selection if score.policy == report.start), None)
    first = next((record.ruling.incumbent for record in report.steps if record.ruling is not None), None)
    current = best = start.score if start is not None else first
    points: list[Point] = []
    for place, record in enumerate(report.steps):
        current, best = _scores_after(record, current, best)
        points.append(_point(place, record, current, best))
    # The interval is that of a pass rate: it says nothing of a score that is made otherwise.
    interval = start.interval if start is not None and start.score == start.hard else None
    return Course(start.score if start is not None else first, interval, tuple(points))


def told(course: Course, report: Report) -> str:
    """The curve in words, for those who do not see it."""
    if not course.points:
        return "No step was ruled on."
    last = course.points[-1]
    scores = [value for value in (course.start, last.best) if value is not None]
    way = f" The best selection score went from {scores[0]:.3f} to {scores[-1]:.3f}." if scores else ""
    outcomes = [point.outcome for point in course.points]
    counts = ", ".join(f"{outcomes.count(outcome)} {outcome}" for outcome in Outcome if outcome in outcomes)
    return f"{count_steps(report.steps)} steps.{way} Of what was proposed: {counts}."


def _scores_after(record: StepRecord, current: float | None, best: float | None) -> tuple[float | None, float | None]:
    """A ruling that tests differences measures no score anew, unless it makes another policy the current one."""
    ruling = record.ruling
    if ruling is None:
        return current, best
    kept = outcome_of(record).kept
    if record.kind is RecordKind.LAST:
        return (current if tested(ruling) and not kept else ruling.candidate), (ruling.candidate if kept else best)
    if tested(ruling):
        return (ruling.candidate, ruling.candidate) if kept else (current, best)
    return (ruling.candidate if kept else ruling.incumbent), (ruling.candidate if ruling.new_best else ruling.best)


def _score(ruling: Ruling, current: float | None) -> float:
    """Of a candidate that was rejected for its difference: so far from the current policy."""
    if not tested(ruling) or ruling.accepted or current is None:
        return ruling.candidate
    return min(1.0, max(0.0, current + ruling.candidate - ruling.incumbent))


def _point(place: int, record: StepRecord, current: float | None, best: float | None) -> Point:
    ruling = record.ruling
    return Point(
        record=place,
        label=label(record),
        step=record.number if record.kind is RecordKind.STEP else 0,
        epoch=record.epoch,
        outcome=outcome_of(record),
        score=None if ruling is None else _score(ruling, current),
        bound=ruling is not None and given_up(ruling),
        interval=None if ruling is None else interval_of(ruling),
        current=current,
        best=best,
        played=record.played.hard if record.played.count else None,
        told=_told(record),
    )


def _told(record: StepRecord) -> str:
    outcome, ruling = outcome_of(record), record.ruling
    if ruling is None:
        return f"{label(record)}: {outcome}, {why(record)}"
    if tested(ruling):
        return f"{label(record)}: {outcome} at {ruling.candidate - ruling.incumbent:+.3f}; {why(record)}"
    score = f"{'at most ' if given_up(ruling) else ''}{ruling.candidate:.3f}"
    return f"{label(record)}: {outcome} at {score} against {ruling.incumbent:.3f}; {why(record)}"
