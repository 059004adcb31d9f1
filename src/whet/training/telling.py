"""Records and times in words, for logs, terminals and pages."""

from __future__ import annotations

from whet.training.records import RecordKind, StepRecord

SKIPPED = {
    "skip_no_patches": "nothing was proposed",
    "skip_no_help": "each of its edits was tried alone, and none helped",
    "skip_no_change": "it would have changed nothing",
    "skip_no_rewrite": "no rewrite could be used",
    "skip_no_pairs": "there was nothing to compare",
    "skip_off": "it is switched off",
    "skip_no_examples": "no try was good enough to learn from",
}
"""Why a record has no candidate, in words."""


def told(record: StepRecord, total: int) -> str:
    head = _head(record, total)
    if record.ruling is None:
        put_in = record.candidate and not record.skipped
        return f"{head}, put in without a gate" if put_in else f"{head}, {SKIPPED.get(record.skipped, record.skipped)}"
    verb = "accepted" if record.ruling.accepted else "rejected"
    return f"{head}, {_changes(record)} {verb}: {record.ruling.reason}"


def _head(record: StepRecord, total: int) -> str:
    match record.kind:
        case RecordKind.STEP:
            return f"step {record.number}/{total}: played {record.played.hard:.3f}"
        case RecordKind.SLOW_UPDATE:
            return f"end of epoch {record.epoch}: compared with the epoch before"
        case RecordKind.TIDY:
            return f"end of epoch {record.epoch}: tidied"
        case RecordKind.JOIN:
            return f"end of epoch {record.epoch}: two policies joined"
        case RecordKind.ADAPTER:
            return f"generation {generation_of(record)}: {_learned(record)}"
        case RecordKind.LAST:
            return "the last policy, which had never competed"


def _changes(record: StepRecord) -> str:
    changed = sum(edit.status.changed for edit in record.edits)
    match record.kind:
        case RecordKind.STEP:
            return f"{changed} {'edit' if changed == 1 else 'edits'}"
        case RecordKind.SLOW_UPDATE:
            return "guidance"
        case RecordKind.TIDY:
            return f"{changed} {'deletion' if changed == 1 else 'deletions'}"
        case RecordKind.JOIN:
            return f"{changed} {'edit' if changed == 1 else 'edits'}"
        case RecordKind.ADAPTER:
            return "adapter"
        case RecordKind.LAST:
            return "it is"


def generation_of(record: StepRecord) -> int:
    return record.training.generation if record.training else 0


def _learned(record: StepRecord) -> str:
    training = record.training
    if training is None:
        return "nothing to learn from"
    without = ", without the skill in the prompt" if training.distilled else ""
    return f"learned from {training.picked} of {training.played} tries{without}"


def duration(seconds: float) -> str:
    """0.4 s, 12 s, 3 min 05 s, 2 h 07 min."""
    if seconds < 9.95:
        return f"{seconds:.1f} s"
    rest = round(seconds)
    if rest < 60:
        return f"{rest} s"
    minutes, rest = divmod(rest, 60)
    if minutes < 60:
        return f"{minutes} min {rest:02d} s"
    hours, minutes = divmod(minutes, 60)
    return f"{hours} h {minutes:02d} min"
