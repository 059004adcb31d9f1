"""What a score is: one number from passes and partial credit."""

from __future__ import annotations

from collections.abc import Iterable
from enum import StrEnum

from whet.core import ConfigError, Score


class Metric(StrEnum):
    HARD = "hard"
    SOFT = "soft"
    MIXED = "mixed"


def select_gate_score(hard: float, soft: float, metric: str = Metric.HARD, w: float = 0.5) -> float:
    """The number that gates compare: passes, partial credit, or (1 - w) of the one and w of the other."""
    if not 0.0 <= w <= 1.0:
        raise ConfigError(f"gate.mix is {w}, but a share lies between 0 and 1")
    match metric:
        case Metric.HARD:
            return hard
        case Metric.SOFT:
            return soft
        case Metric.MIXED:
            return (1.0 - w) * hard + w * soft
        case _:
            raise ConfigError(f"gate.metric is {metric!r}", hint=f"It is one of: {', '.join(Metric)}.")


def mean_score(outcomes: Iterable[tuple[float, float]]) -> Score:
    """Means of (hard, soft) pairs. Sums of whole passes are exact; partial credit is added in the order given."""
    hard = soft = 0.0
    count = 0
    for passed, credit in outcomes:
        hard += passed
        soft += credit
        count += 1
    return Score(hard / count, soft / count, count) if count else Score(0.0, 0.0, 0)
