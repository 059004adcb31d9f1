"""What a training writes down of itself: steps as they are ruled on, and the report at its end."""

from __future__ import annotations

from enum import StrEnum

import msgspec

from whet.core import EditResult, FailurePattern, Ruling, Score
from whet.gate import Interval
from whet.store import AnsweredLine


class RecordKind(StrEnum):
    STEP = "step"
    SLOW_UPDATE = "slow_update"
    """The end of an epoch."""
    TIDY = "tidy"
    """The end of an epoch: what could go."""
    JOIN = "join"
    """The end of an epoch: what two policies are best at, in one."""
    LAST = "last"
    """The end of the run: a last policy that had never competed."""


class StepRecord(msgspec.Struct, frozen=True):
    """One step, or one end of an epoch: what was played, proposed and ruled."""

    number: int
    epoch: int
    played: Score
    current: str
    """The policy that was played, by fingerprint."""
    candidate: str
    """Empty if nothing was proposed."""
    edits: tuple[EditResult, ...]
    reasoning: str
    patterns: tuple[FailurePattern, ...]
    skipped: str
    fallbacks: tuple[str, ...]
    ruling: Ruling | None
    kind: RecordKind = RecordKind.STEP
    notes: tuple[str, ...] = ()
    """Reminders that were kept, whatever was ruled."""
    budget: int | None = None
    """How many edits it could make; None is no limit."""
    candidate_skill: dict[str, str] = {}
    """The candidate's files, so that a step can be shown without looking further."""


class PolicyScore(msgspec.Struct, frozen=True):
    policy: str
    score: float
    hard: float
    soft: float
    count: int
    passed: int
    interval: Interval
    by_kind: dict[str, Score] = {}


class Comparison(msgspec.Struct, frozen=True):
    """The best policy against the starting one, task by task on the test split."""

    gain: float
    interval: Interval
    fixed: tuple[str, ...]
    broke: tuple[str, ...]
    p: float

    @property
    def shown(self) -> bool:
        return self.interval.low > 0.0


class Report(msgspec.Struct, frozen=True):
    """Everything here follows from what was played, not from when: a resumed run reports the same to the byte."""

    run: str
    world: str
    target: str
    optimizer: str
    seed: int
    metric: str
    rule: str
    steps_planned: int
    stopped: str
    """Why it ended before its end; empty if it did not."""
    steps: tuple[StepRecord, ...]
    start: str
    best: str
    last: str
    selection: tuple[PolicyScore, ...]
    test: tuple[PolicyScore, ...]
    comparison: Comparison | None
    calls: tuple[AnsweredLine, ...]
    skill: dict[str, str]
    """The best skill."""
