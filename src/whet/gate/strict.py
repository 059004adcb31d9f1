"""The rules without a test: accept if the mean went up, and accept always."""

from __future__ import annotations

from collections.abc import Sequence

from whet.core import Ruling
from whet.gate.evidence import Arm, Ask, Evidence, PlannedPlay
from whet.gate.metrics import Metric, mean_score, select_gate_score

_SLACK = 1e-9
"""More than sums of partial credit can differ by the order in which they are added."""


class StrictRule:
    """Accept if the mean went up. One play a task; ties are rejected; it is the new best if it beats the best too.

    Curtailed: it stops as soon as the candidate can no longer reach more than the incumbent, whatever the tasks left
    would say. A candidate that is accepted is played on all of them, for its score is what the next one is held to.
    Where the incumbent scores least goes first: there most is lost against a perfect rest, so the end is reached soonest.
    """

    def __init__(self, tasks: Sequence[str], metric: str, mix: float, best: float | None, chunk: int) -> None:
        self._tasks = tuple(tasks)
        self._metric = metric
        self._mix = mix
        self._best = best
        self._chunk = chunk or max(8, len(tasks) // 8)
        self._played = 0
        self._order: tuple[str, ...] = ()

    def next(self, evidence: Evidence) -> Ask | Ruling:
        missing = evidence.missing(PlannedPlay(task, Arm.INCUMBENT, 0) for task in self._tasks)
        if missing:
            return Ask(missing)
        incumbents = evidence.of(Arm.INCUMBENT, self._tasks)
        if not self._order:
            scores = [self._one(outcome) for outcome in incumbents]
            self._order = tuple(task for _, task in sorted(zip(scores, self._tasks, strict=True), key=lambda each: each[0]))
        while self._played < len(self._tasks):
            ...
        return self._rule(evidence)
