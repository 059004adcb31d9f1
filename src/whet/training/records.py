"""What a training writes down of itself: steps as they are ruled on, and the report at its end."""

from __future__ import annotations

from enum import StrEnum

import msgspec

from whet.core import EditResult, FailurePattern, Ruling, Score
from whet.gate import Interval
from whet.learners.adapter import Metrics
from whet.store import AnsweredLine


class RecordKind(StrEnum):
    STEP = "step"
    SLOW_UPDATE = "slow_update"
    """The end of an epoch."""
    TIDY = "tidy"
    """The end of an epoch: what could go."""
    JOIN = "join"
    """The end of an epoch: what two policies are best at, in one."""
    ADAPTER = "adapter"
    """After the steps: weights that were trained on what the agent did."""
    LAST = "last"
    """The end of the run: a last policy that had never competed."""


class TrainingRecord(msgspec.Struct, frozen=True):
    """How an adapter came about. What it scores is played, never taken from its training."""

    generation: int
    adapter: str
    """Its fingerprint."""
    data: str
    """The fingerprint of the examples."""
    played: int
    """Tries that examples were picked from."""
    picked: int
    sources: dict[str, int]
    """Examples by who gave them."""
    diversity: float
    """Distinct answers over answers, of what was picked: where it is low, learning from oneself stalls."""
    valid: float
    """Share of tries that had the right form, as far as the world says."""
    mean: float
    """Mean soft score of all tries; what is not valid counts 0."""
    best: float
    interval: Interval
    """Of the mean."""
    assessed: Score | None
    """The adapter's own play on train tasks that it did not learn from."""
    metrics: Metrics
    distilled: bool = False
    """The skill it learned with was taken out of the prompt."""


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
    training: TrainingRecord | None = None
    """Of an adapter."""


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
    adapter: str = ""
    """The best adapter's fingerprint; empty without one."""
    skilled: str = ""
    """The policy that the skill lever alone made, where an adapter followed."""
