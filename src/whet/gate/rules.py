"""Rules that decide whether a candidate becomes current: pure state machines that ask for plays, then rule."""

from __future__ import annotations

from collections.abc import Sequence
from enum import StrEnum
from typing import NamedTuple, Protocol

import msgspec

from whet.core import ConfigError, Ruling
from whet.gate.metrics import Metric, mean_score, select_gate_score


class Arm(StrEnum):
    CANDIDATE = "candidate"
    INCUMBENT = "incumbent"


class PlannedPlay(NamedTuple):
    task: str
    arm: Arm
    sample: int


class Ask(msgspec.Struct, frozen=True):
    """Plays that the rule needs before it can say more; they may be made all at once."""

    plays: tuple[PlannedPlay, ...]


class Evidence:
    """Outcomes by task, arm and sample. It may hold an incumbent's results from earlier."""

    def __init__(self) -> None:
        self._outcomes: dict[tuple[str, Arm, int], tuple[float, float]] = {}
        self.added = 0

    def add(self, task: str, arm: str, sample: int, *, hard: float, soft: float) -> None:
        self._outcomes[task, Arm(arm), sample] = (float(hard), float(soft))
        self.added += 1

    def get(self, task: str, arm: Arm, sample: int) -> tuple[float, float] | None:
        return self._outcomes.get((task, arm, sample))

    def of(self, arm: Arm, tasks: Sequence[str]) -> list[tuple[float, float]]:
        """First samples in the order of `tasks`; all of them must be there."""
        return [self._outcomes[task, arm, 0] for task in tasks]


class Rule(Protocol):
    def next(self, evidence: Evidence) -> Ask | Ruling: ...


class StrictRule:
    """Accept if the mean went up. One play a task; ties are rejected; it is the new best if it beats the best too."""

    def __init__(self, tasks: Sequence[str], metric: str, mix: float, best: float | None) -> None:
        self._tasks = tuple(tasks)
        self._metric = metric
        self._mix = mix
        self._best = best

    def next(self, evidence: Evidence) -> Ask | Ruling:
        missing = _missing(evidence, self._tasks)
        if missing:
            return Ask(missing)
        return self._rule(evidence)

    def _rule(self, evidence: Evidence) -> Ruling:
        candidates = evidence.of(Arm.CANDIDATE, self._tasks)
        incumbents = evidence.of(Arm.INCUMBENT, self._tasks)
        candidate = self._score(candidates)
        incumbent = self._score(incumbents)
        best = incumbent if self._best is None else self._best
        accepted = self._accepts(candidate, incumbent)
        return Ruling(
            accepted=accepted,
            new_best=accepted and candidate > best,
            candidate=candidate,
            incumbent=incumbent,
            best=best,
            reason=self._reason(accepted, candidate, incumbent),
            **_paired(candidates, incumbents),
            rollouts=evidence.added,
        )

    def _score(self, outcomes: Sequence[tuple[float, float]]) -> float:
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
    """Accept always; measured all the same, so that the best is still known."""

    def _accepts(self, candidate: float, incumbent: float) -> bool:
        return True

    def _reason(self, accepted: bool, candidate: float, incumbent: float) -> str:
        return f"the gate is off; it scores {candidate:.4f}, the policy before it {incumbent:.4f}"


_RULES = {"strict": StrictRule, "off": OffRule}
RULES = tuple(_RULES)


def make_rule(
    name: str, *, tasks: Sequence[str], metric: str = Metric.HARD, mix: float = 0.5, best: float | None = None
) -> Rule:
    """The rule of this name over these tasks. `best` is the best score so far, where that is not the incumbent's."""
    rule = _RULES.get(name)
    if rule is None:
        raise ConfigError(f"gate.rule is {name!r}", hint=f"It is one of: {', '.join(_RULES)}.")
    if not tasks:
        raise ConfigError("the gate has no selection tasks", hint="Give the world a selection split.")
    return rule(tasks, metric, mix, best)


def _missing(evidence: Evidence, tasks: Sequence[str]) -> tuple[PlannedPlay, ...]:
    return tuple(
        PlannedPlay(task, arm, 0)
        for arm in (Arm.INCUMBENT, Arm.CANDIDATE)
        for task in tasks
        if evidence.get(task, arm, 0) is None
    )


def _paired(candidates: Sequence[tuple[float, float]], incumbents: Sequence[tuple[float, float]]) -> dict[str, int]:
    counts = {"fixed": 0, "broke": 0, "both": 0, "neither": 0}
    names = {(1.0, 0.0): "fixed", (0.0, 1.0): "broke", (1.0, 1.0): "both", (0.0, 0.0): "neither"}
    for candidate, incumbent in zip(candidates, incumbents, strict=True):
        counts[names[candidate[0], incumbent[0]]] += 1
    return counts
