"""What an evaluation says: rates with intervals, and the difference of two policies. Pure.

Tries at one task resemble each other, so the task, and not the try, is what intervals count.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import msgspec

from whet.core import Score, Trajectory
from whet.gate import Interval, mean_score, paired_interval, select_gate_score, sign_test, wilson
from whet.training import GateSettings


class Measured(msgspec.Struct, frozen=True):
    policy: str
    passed: int
    tries: int
    rate: float
    interval: Interval
    soft: float
    score: float
    """By the metric of [gate]."""
    by_kind: dict[str, Score]


class Paired(msgspec.Struct, frozen=True):
    """The second policy against the first."""

    difference: float
    """In the metric of [gate]."""
    interval: Interval
    fixed: tuple[str, ...]
    broke: tuple[str, ...]
    p: float

    def said(self, before: str, after: str) -> str:
        """One sentence that claims no more than was shown."""
        if self.interval.low > 0.0:
            return f"{after} is better than {before}."
        if self.interval.high < 0.0:
            return f"{after} is worse than {before}."
        return "A difference is not shown: the interval includes 0."


def measured(policy: str, played: Sequence[Sequence[Trajectory]], gate: GateSettings) -> Measured:
    """`played` holds one list for each try, in the order of the tasks."""
    every = [one for tries in played for one in tries]
    mean = mean_score((one.hard, one.soft) for one in every)
    kinds = sorted({one.kind for one in every if one.kind})
    passed = sum(one.hard == 1.0 for one in every)
    return Measured(
        policy=policy,
        passed=passed,
        tries=len(every),
        rate=mean.hard,
        interval=wilson(passed, len(every)) if len(played) == 1 else _of_means(played),
        soft=mean.soft,
        score=select_gate_score(mean.hard, mean.soft, gate.metric, gate.mix),
        by_kind={kind: mean_score((one.hard, one.soft) for one in every if one.kind == kind) for kind in kinds},
    )


def paired(before: Sequence[Sequence[Trajectory]], after: Sequence[Sequence[Trajectory]], gate: GateSettings) -> Paired:
    """Both were played on the same tasks in the same order, and as often."""
    firsts, seconds = _by_task(before), _by_task(after)
    differences = [
        _mean(_score(one, gate) for one in second) - _mean(_score(one, gate) for one in first)
        for first, second in zip(firsts, seconds, strict=True)
    ]
    passes = [
        (first[0].task, _mean(one.hard for one in second) - _mean(one.hard for one in first))
        for first, second in zip(firsts, seconds, strict=True)
    ]
    fixed = tuple(task for task, change in passes if change > 0)
    broke = tuple(task for task, change in passes if change < 0)
    return Paired(_mean(differences), paired_interval(differences), fixed, broke, sign_test(len(fixed), len(broke)))


def _of_means(played: Sequence[Sequence[Trajectory]]) -> Interval:
    found = paired_interval([_mean(one.hard for one in tries) for tries in _by_task(played)])
    return Interval(max(0.0, found.low), found.high)


def _by_task(played: Sequence[Sequence[Trajectory]]) -> list[tuple[Trajectory, ...]]:
    return list(zip(*played, strict=True))


def _score(played: Trajectory, gate: GateSettings) -> float:
    return select_gate_score(played.hard, played.soft, gate.metric, gate.mix)


def _mean(values: Iterable[float]) -> float:
    found = list(values)
    return sum(found) / len(found) if found else 0.0
