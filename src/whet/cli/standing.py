"""Where a run stands: what its store and its report say together, in one struct for every command that shows runs.

Reads only, also while another process writes.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from enum import StrEnum
from pathlib import Path
from typing import Any

import msgspec

from whet.cli.steps import count_steps
from whet.core import InputError, Nanodollars, Skill, Split
from whet.gate import Metric, select_gate_score
from whet.store import RunReader, SplitScore, writer_of
from whet.training import Report, StepRecord, read_report
from whet.training.folder import REPORT_FILE, STORE_FILE
from whet.training.records import RecordKind

LOCK_FILE = "run.lock"


class State(StrEnum):
    RUNNING = "running"
    FINISHED = "finished"
    STOPPED = "stopped early"
    INTERRUPTED = "interrupted"


class Lineage(msgspec.Struct, frozen=True):
    """The policies that have a name, by fingerprint, with their scores on the selection tasks where they are known."""

    start: str = ""
    current: str = ""
    best: str = ""
    start_score: float | None = None
    current_score: float | None = None
    best_score: float | None = None

    def named(self, policy: str) -> str:
        """`start, best`, or the beginning of the fingerprint."""
        names = {"start": self.start, "best": self.best, "last": self.current}
        return ", ".join(name for name, fingerprint in names.items() if fingerprint == policy) or policy[:8]


class Standing(msgspec.Struct, frozen=True):
    run: str
    folder: str
    state: State
    pid: int | None
    """Of the process that writes it."""
    stopped: str
    """Why it stopped early."""
    steps: int
    planned: int | None
    """Steps there will be; not known before a report is written."""
    lineage: Lineage
    rollouts: int
    failures: int
    sent: int
    """Calls, retries included."""
    tokens: int
    nanodollars: Nanodollars
    seconds: float
    at: float
    """When something last happened, in seconds since 1970."""


def standing_of(folder: Path) -> Standing:
    with RunReader(folder / STORE_FILE) as reader:
        return read_standing(folder, reader, report_of(folder))


def read_standing(folder: Path, reader: RunReader, report: Report | None) -> Standing:
    pid = writer_of(folder / LOCK_FILE)
    records = reader.decisions("step", StepRecord)
    spent = reader.spending()
    counts = reader.counts()
    state, stopped = _state(pid, report, len(records))
    return Standing(
        run=folder.name,
        folder=str(folder),
        state=state,
        pid=pid,
        stopped=stopped,
        steps=count_steps(records),
        planned=_planned(reader, report),
        lineage=lineage_of(reader, records, report),
        rollouts=counts["rollouts"],
        failures=counts["failures"],
        sent=sum(line.attempts for line in spent),
        tokens=sum(line.tokens for line in spent),
        nanodollars=sum(line.nanodollars for line in spent),
        seconds=reader.seconds(),
        at=reader.last_activity(),
    )


def _planned(reader: RunReader, report: Report | None) -> int | None:
    steps = reader.meta("steps")
    return int(steps) if steps is not None and steps.isdigit() else (report.steps_planned if report else None)


def report_of(folder: Path) -> Report | None:
    try:
        return read_report(folder)
    except msgspec.DecodeError as error:
        raise InputError(
            f"{folder / REPORT_FILE} cannot be read: {error}", hint="`whet train` writes it anew."
        ) from error


def settings_of(reader: RunReader) -> dict[str, Any]:
    return msgspec.json.decode(reader.meta("settings") or "{}", type=dict[str, Any])


def lineage_of(reader: RunReader, records: Sequence[StepRecord], report: Report | None) -> Lineage:
    """From the report if it is about the whole run; else by following the rulings, as the training did."""
    scores, settings = reader.scores(), settings_of(reader)
    known = {line.policy: _gate_score(line, settings) for line in scores if line.split is Split.SELECTION}
    if report is not None and len(report.steps) >= len(records):
        start, current, best = report.start, report.last, report.best
    else:
        start, current, best = followed(records, _player(scores))
    return Lineage(start, current, best, known.get(start), known.get(current), known.get(best))


def followed(records: Sequence[StepRecord], start: str) -> tuple[str, str, str]:
    """The policies of start, now and best. `start` is what to say before anything was decided."""
    start = current = best = records[0].current if records else start
    for record in records:
        ruling = record.ruling
        if record.kind is RecordKind.LAST:
            current = record.candidate
            won = ruling is not None and ruling.candidate > ruling.incumbent
            best = record.candidate if won else best
            continue
        # What a step played tells of changes between steps, too.
        current = record.current
        put_in = bool(record.candidate) and not record.skipped and ruling is None
        if put_in or (ruling is not None and ruling.accepted):
            current = record.candidate
        if ruling is not None and ruling.new_best:
            best = record.candidate
    return start, current, best


def skill_of(reader: RunReader, policy: str, records: Sequence[StepRecord]) -> Skill | None:
    """The skill of a policy that was played, or only proposed."""
    kept = reader.policy(policy)
    if kept is not None:
        return kept.skill
    return next((Skill(record.candidate_skill) for record in records if record.candidate == policy), None)


def _player(scores: Sequence[SplitScore]) -> str:
    """Before the first step ends, only the starting policy has played train tasks."""
    return next((line.policy for line in scores if line.split is Split.TRAIN), "")


def _gate_score(line: SplitScore, settings: Mapping[str, Any]) -> float:
    metric, mix = settings.get("gate.metric", Metric.HARD), settings.get("gate.mix", 0.5)
    return select_gate_score(line.score.hard, line.score.soft, metric, mix)


def _state(pid: int | None, report: Report | None, records: int) -> tuple[State, str]:
    if pid is not None:
        return State.RUNNING, ""
    if report is None:
        return State.INTERRUPTED, ""
    if not report.stopped:
        return State.FINISHED, ""
    # A report of an early stop is out of date once the run has gone on.
    gone_on = records > len(report.steps)
    return (State.INTERRUPTED, "") if gone_on else (State.STOPPED, report.stopped)
