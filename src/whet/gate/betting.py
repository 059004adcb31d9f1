"""Evidence that may be looked at after every task: capital won by betting that the mean difference is more than it is.

Bets are fair or worse if it is not, so capital of 1/alpha is reached with probability alpha at most, whenever one stops
(Ville's inequality). Several bettors with fixed stakes share the first coin; their joint capital depends on which
differences came, and not on their order.
"""

from __future__ import annotations

import math
from collections.abc import Iterable

import msgspec

from whet.gate.statistics import Interval

STAKES = (0.1, 0.25, 0.5, 0.9)
"""Shares of what may be lost that are bet each time: small ones for noisy differences, large ones for steady ones."""


class Bets(msgspec.Struct, frozen=True):
    """Differences that lie in -1..1 as they came in; all of them are kept, for the interval asks about each."""

    differences: tuple[float, ...] = ()

    def more(self, differences: Iterable[float]) -> Bets:
        added = tuple(differences)
        if not all(-1.0 <= d <= 1.0 for d in added):
            raise ValueError("differences of scores lie between -1 and 1")
        return Bets(self.differences + added)

    def log_capital(self, mean: float = 0.0) -> float:
        """Natural log of what was won against "the true mean is at most `mean`"; never more than 1 by expectation."""
        lost_most = 1.0 + mean
        if lost_most <= 0.0:
            return math.inf
        logs = [
            math.fsum(math.log1p(stake * (d - mean) / lost_most) for d in self.differences) - math.log(len(STAKES))
            for stake in STAKES
        ]
        highest = max(logs)
        return highest + math.log(math.fsum(math.exp(one - highest) for one in logs))

    def against(self, alpha: float, mean: float = 0.0) -> bool:
        """Whether "the true mean is at most `mean`" is refuted at this alpha."""
        return self.log_capital(mean) >= -math.log(alpha)

    def interval(self, alpha: float) -> Interval:
        """Where the true mean lies: each end is wrong with probability alpha at most, whenever one stops."""
        mirrored = Bets(tuple(-d for d in self.differences))
        return Interval(_least_not_refuted(self, alpha), -_least_not_refuted(mirrored, alpha))


def _least_not_refuted(bets: Bets, alpha: float) -> float:
    # The capital falls as the mean that it is bet against rises, so the refuted means are those below one point.
    low, high = -1.0, 1.0
    for _ in range(50):
        middle = (low + high) / 2
        low, high = (middle, high) if bets.against(alpha, middle) else (low, middle)
    return low
