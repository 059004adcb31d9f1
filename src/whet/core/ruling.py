"""What learners hand to the gate, and what the gate says."""

from __future__ import annotations

import msgspec

from whet.core.policy import Policy
from whet.core.skill import EditResult, FailurePattern


class Proposal(msgspec.Struct, frozen=True):
    """A candidate and its reasons. No candidate: there was nothing to propose, and `skipped` says why."""

    candidate: Policy | None
    edits: tuple[EditResult, ...] = ()
    reasoning: str = ""
    patterns: tuple[FailurePattern, ...] = ()
    skipped: str = ""
    fallbacks: tuple[str, ...] = ()
    """Optimizer answers that could not be used, and what was done instead."""
    notes: tuple[str, ...] = ()
    """Reminders for an agent that did not follow a rule it has."""
    budget: int | None = None
    """How many edits the step could make; None is no limit."""


class Score(msgspec.Struct, frozen=True):
    """Means over the tasks of a split."""

    hard: float
    soft: float
    count: int


class Ruling(msgspec.Struct, frozen=True):
    accepted: bool
    new_best: bool
    candidate: float
    incumbent: float
    best: float
    reason: str
    """One plain sentence."""
    fixed: int = 0
    broke: int = 0
    fixed_tasks: tuple[str, ...] = ()
    """Which ones `fixed` counts."""
    broke_tasks: tuple[str, ...] = ()
    """Which ones `broke` counts."""
    both: int = 0
    neither: int = 0
    rollouts: int = 0
    """Plays that the ruling rests on, remembered ones included: a resumed run counts the same."""
    saved: int = 0
    """Plays of the whole plan that the ruling did without."""
    gain: float = 0.0
    """What to expect of the candidate over the incumbent; drawn towards nothing where the evidence is weak."""
    p: float | None = None
    """How often a candidate that changes nothing would have looked at least this good. None: the rule does not test."""
    level: float = 0.0
    """The share of useless candidates that the rule lets through at most; 0 where it promises nothing."""
