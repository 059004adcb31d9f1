"""What a training decided, in words: steps, ends of epochs, and the last policy's late competition. Pure."""

from __future__ import annotations

from collections.abc import Sequence

from whet.cli.numbers import share
from whet.core import Ruling
from whet.training import StepRecord
from whet.training.records import RecordKind
from whet.training.telling import SKIPPED, generation_of


def is_step(record: StepRecord) -> bool:
    return record.kind is RecordKind.STEP


def count_steps(records: Sequence[StepRecord]) -> int:
    return sum(is_step(record) for record in records)


def label(record: StepRecord) -> str:
    """For a narrow column."""
    match record.kind:
        case RecordKind.STEP:
            return str(record.number)
        case RecordKind.SLOW_UPDATE:
            return f"epoch {record.epoch}"
        case RecordKind.TIDY:
            return f"tidy {record.epoch}"
        case RecordKind.JOIN:
            return f"join {record.epoch}"
        case RecordKind.ADAPTER:
            return f"adapter {generation_of(record)}"
        case RecordKind.LAST:
            return "last"


def heading(record: StepRecord) -> str:
    match record.kind:
        case RecordKind.STEP:
            return f"step {record.number}, epoch {record.epoch}"
        case RecordKind.SLOW_UPDATE:
            return f"end of epoch {record.epoch}: guidance from comparing with the epoch before"
        case RecordKind.TIDY:
            return f"end of epoch {record.epoch}: what could go"
        case RecordKind.JOIN:
            return f"end of epoch {record.epoch}: what two policies are best at, in one"
        case RecordKind.ADAPTER:
            return f"generation {generation_of(record)}: weights that learned from what the agent did"
        case RecordKind.LAST:
            return "end of the run: the last policy, which no ruling had seen"


def why_skipped(record: StepRecord) -> str:
    """Why there was no ruling."""
    if record.candidate and not record.skipped:
        return "put in without a gate"
    return SKIPPED.get(record.skipped, record.skipped or "nothing to rule on")


def given_up(ruling: Ruling) -> bool:
    """Whether the candidate was not played to the end, because it could no longer win: its score is then a bound."""
    return not ruling.accepted and ruling.p is None and ruling.saved > 0


def difference(ruling: Ruling) -> str:
    """What the candidate changed on the selection tasks that it was played on."""
    played = ruling.fixed + ruling.broke + ruling.both + ruling.neither
    changed = f"{ruling.fixed} fixed, {ruling.broke} broken" if ruling.fixed or ruling.broke else "no task changed"
    if not given_up(ruling):
        return changed
    return f"{changed} in {played}, could not win" if played else "could not win: nothing is left to fix"


def in_one_line(record: StepRecord) -> str:
    head = f"step {record.number}: played {share(record.played.hard)}" if is_step(record) else heading(record)
    ruling = record.ruling
    if ruling is None:
        return f"{head}, {why_skipped(record)}"
    return f"{head}, {'accepted' if ruling.accepted else 'rejected'}: {ruling.reason}"
