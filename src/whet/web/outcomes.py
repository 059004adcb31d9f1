"""What became of a record, in one word and in one line. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from enum import StrEnum

from whet.core import Ruling
from whet.gate import Interval, wilson
from whet.training import StepRecord
from whet.training.records import RecordKind
from whet.training.telling import SKIPPED, generation_of

_SAME = 1e-9


class Outcome(StrEnum):
    ACCEPTED = "accepted"
    REJECTED = "rejected"
    PUT_IN = "put in"
    """Without a gate."""
    SKIPPED = "skipped"

    @property
    def kept(self) -> bool:
        return self in (Outcome.ACCEPTED, Outcome.PUT_IN)


def outcome_of(record: StepRecord) -> Outcome:
    ruling = record.ruling
    if ruling is None:
        return Outcome.PUT_IN if record.candidate and not record.skipped else Outcome.SKIPPED
    by_score = record.kind is RecordKind.LAST and not tested(ruling)
    kept = ruling.candidate > ruling.incumbent if by_score else ruling.accepted
    return Outcome.ACCEPTED if kept else Outcome.REJECTED


def count(records: Sequence[StepRecord], outcome: Outcome) -> int:
    return sum(outcome_of(record) is outcome for record in records)


def count_steps(records: Sequence[StepRecord]) -> int:
    return sum(record.kind is RecordKind.STEP for record in records)


def label(record: StepRecord) -> str:
    match record.kind:
        case RecordKind.STEP:
            return f"Step {record.number}"
        case RecordKind.SLOW_UPDATE:
            return f"End of epoch {record.epoch}"
        case RecordKind.TIDY:
            return f"Tidying, epoch {record.epoch}"
        case RecordKind.JOIN:
            return f"Joining, epoch {record.epoch}"
        case RecordKind.ADAPTER:
            return f"Adapter {generation_of(record)}"
        case RecordKind.LAST:
            return "Last policy"


def tested(ruling: Ruling) -> bool:
    """Whether what was measured is the difference, on as many tasks as it took: then the scores mean little alone."""
    return ruling.p is not None


def given_up(ruling: Ruling) -> bool:
    """Whether the candidate was not played to the end, because it could no longer win: its score is then a bound."""
    return not ruling.accepted and not tested(ruling) and ruling.saved > 0


def played_on(ruling: Ruling) -> int:
    return ruling.fixed + ruling.broke + ruling.both + ruling.neither


def interval_of(ruling: Ruling) -> Interval | None:
    """Where the candidate's pass rate lies, if its score is one and the counts behind it are known."""
    count, passed = played_on(ruling), ruling.fixed + ruling.both
    if not count or given_up(ruling) or tested(ruling) or abs(passed / count - ruling.candidate) > _SAME:
        return None
    return wilson(passed, count)


def why(record: StepRecord) -> str:
    """Why it was kept or not, in a few words."""
    ruling = record.ruling
    if ruling is None:
        put_in = outcome_of(record) is Outcome.PUT_IN
        return "without a gate" if put_in else SKIPPED.get(record.skipped, record.skipped or "nothing to rule on")
    changed = f"{ruling.fixed} fixed, {ruling.broke} broken" if ruling.fixed or ruling.broke else "no task changed"
    if not given_up(ruling):
        return changed
    played = played_on(ruling)
    return f"{changed} in {played}, could not win" if played else "could not win: nothing was left to fix"
