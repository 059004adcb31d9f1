"""The rules without a test: accept if the mean went up, and accept always."""

from __future__ import annotations

from collections.abc import Sequence
from math import ceil
from typing import TypedDict

from whet.core import Ruling
from whet.gate.evidence import Arm, Ask, Evidence, PlannedPlay
from whet.gate.metrics import mean_score, select_gate_score

_SLACK = 1e-9
"""More than sums of partial credit differ by the order in which they are added."""

Outcome = tuple[float, float]


class _Counts(TypedDict):
    """The part of a Ruling that counts tasks."""

    fixed: int
    broke: int
    both: int
    neither: int
    fixed_tasks: tuple[str, ...]
    broke_tasks: tuple[str, ...]


class StrictRule:
    """Accept if the mean went up. One play a task; ties are rejected; it is the new best if it beats the best too.

    Curtailed: it stops as soon as the candidate can no longer score more than the incumbent, whatever the tasks left
    would say. A candidate that is accepted is played on all of them, for later ones are held to its score. Tasks where
    the incumbent scores least go first: a candidate fails most of those too, so what it may lose is used up soonest.
    """

    def __init__(self, tasks: Sequence[str], metric: str, mix: float, best: float | None, chunk: int) -> None:
        self._tasks = tuple(tasks)
        self._metric = metric
        self._mix = mix
        self._best = best
        self._chunk = chunk or max(8, len(tasks) // 8)
        self._asked = 0
        """Tasks of the order so far that the candidate was to be played on."""

    def next(self, evidence: Evidence) -> Ask | Ruling:
        missing = evidence.missing(_plays(self._tasks, Arm.INCUMBENT))
        if missing:
            return Ask(missing)
        incumbents = evidence.of(Arm.INCUMBENT, self._tasks)
        order = self._ordered(incumbents)
        while True:
            played = order[: self._asked]
            missing = evidence.missing(_plays(played, Arm.CANDIDATE))
            if missing:
                return Ask(missing)
            candidates = evidence.of(Arm.CANDIDATE, played)
            if self._asked == len(order):
                return self._rule(evidence.of(Arm.CANDIDATE, self._tasks), incumbents)
            if self._beaten(candidates, incumbents):
                return self._rule_early(played, evidence, incumbents)
            self._asked = min(len(order), self._asked + self._further(candidates, incumbents))

    def _ordered(self, incumbents: Sequence[Outcome]) -> list[str]:
        scores = dict(zip(self._tasks, (self._score([outcome]) for outcome in incumbents), strict=True))
        return sorted(self._tasks, key=lambda task: scores[task])

    def _beaten(self, candidates: Sequence[Outcome], incumbents: Sequence[Outcome]) -> bool:
        """Whether a perfect rest would not be enough. Whole scores add up exactly; others get the benefit of doubt."""
        whole = all(self._score([outcome]) in (0.0, 1.0) for outcome in (*candidates, *incumbents))
        return self._at_most(candidates) <= self._score(incumbents) - (0.0 if whole else _SLACK)

    def _at_most(self, candidates: Sequence[Outcome]) -> float:
        return self._score([*candidates, *[(1.0, 1.0)] * (len(self._tasks) - len(candidates))])

    def _further(self, candidates: Sequence[Outcome], incumbents: Sequence[Outcome]) -> int:
        """As many as could decide it at the earliest, for fewer cannot; and no fewer than a chunk."""
        to_lose = (self._at_most(candidates) - self._score(incumbents)) * len(self._tasks)
        return max(self._chunk, ceil(to_lose - _SLACK))

    def _rule(self, candidates: Sequence[Outcome], incumbents: Sequence[Outcome]) -> Ruling:
        candidate, incumbent = self._score(candidates), self._score(incumbents)
        best = incumbent if self._best is None else self._best
        accepted = self._accepts(candidate, incumbent)
        return Ruling(
            accepted=accepted,
            new_best=accepted and candidate > best,
            candidate=candidate,
            incumbent=incumbent,
            best=best,
            reason=self._reason(accepted, candidate, incumbent),
            **paired_counts(self._tasks, candidates, incumbents),
            rollouts=2 * len(self._tasks),
            gain=candidate - incumbent,
        )

    def _rule_early(self, played: Sequence[str], evidence: Evidence, incumbents: Sequence[Outcome]) -> Ruling:
        candidates = evidence.of(Arm.CANDIDATE, played)
        candidate, incumbent = self._at_most(candidates), self._score(incumbents)
        left = len(self._tasks) - len(played)
        return Ruling(
            accepted=False,
            new_best=False,
            candidate=candidate,
            incumbent=incumbent,
            best=incumbent if self._best is None else self._best,
            reason=f"it scores {candidate:.4f} at most, whatever the {left} tasks left would say, "
            f"and the current policy {incumbent:.4f}",
            **paired_counts(played, candidates, evidence.of(Arm.INCUMBENT, played)),
            rollouts=len(self._tasks) + len(played),
            saved=left,
            gain=candidate - incumbent,
        )

    def _score(self, outcomes: Sequence[Outcome]) -> float:
        mean = mean_score(outcomes)
        return select_gate_score(mean.hard, mean.soft, self._metric, self._mix)

    def _accepts(self, candidate: float, incumbent: float) -> bool:
        return candidate > incumbent

    def _reason(self, accepted: bool, candidate: float, incumbent: float) -> str:
        if accepted:
            return f"it scores {candidate:.4f}, more than the {incumbent:.4f} of the current policy"
        if candidate == incumbent:
            return f"it scores {candidate:.4f}, the same as the current policy: a tie changes nothing"
        return f"it scores {candidate:.4f}, less than the {incumbent:.4f} of the current policy"


class OffRule(StrictRule):
    """Accept always; measured all the same, on every task, so that the best is still known."""

    def next(self, evidence: Evidence) -> Ask | Ruling:
        missing = evidence.missing((*_plays(self._tasks, Arm.INCUMBENT), *_plays(self._tasks, Arm.CANDIDATE)))
        if missing:
            return Ask(missing)
        return self._rule(evidence.of(Arm.CANDIDATE, self._tasks), evidence.of(Arm.INCUMBENT, self._tasks))

    def _accepts(self, candidate: float, incumbent: float) -> bool:
        return True

    def _reason(self, accepted: bool, candidate: float, incumbent: float) -> str:
        return f"the gate is off; it scores {candidate:.4f}, the policy before it {incumbent:.4f}"


def paired_counts(tasks: Sequence[str], candidates: Sequence[Outcome], incumbents: Sequence[Outcome]) -> _Counts:
    """Tasks fixed, broken, passed with both and with neither."""
    named = [
        (task, candidate, incumbent)
        for task, (candidate, _), (incumbent, _) in zip(tasks, candidates, incumbents, strict=True)
    ]
    fixed = tuple(task for task, candidate, incumbent in named if candidate > incumbent)
    broke = tuple(task for task, candidate, incumbent in named if candidate < incumbent)
    both = sum(candidate == incumbent == 1.0 for _, candidate, incumbent in named)
    return {
        "fixed": len(fixed),
        "broke": len(broke),
        "both": both,
        "neither": len(named) - len(fixed) - len(broke) - both,
        "fixed_tasks": fixed,
        "broke_tasks": broke,
    }


def _plays(tasks: Sequence[str], arm: Arm) -> list[PlannedPlay]:
    return [PlannedPlay(task, arm, 0) for task in tasks]
