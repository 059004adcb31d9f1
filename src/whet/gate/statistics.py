"""Intervals and exact tests in closed form, for numbers that people are to believe."""

from __future__ import annotations

import math

import msgspec

_Z95 = 1.959963984540054


class Interval(msgspec.Struct, frozen=True):
    low: float
    high: float


def wilson(passed: int, count: int, z: float = _Z95) -> Interval:
    """Where the true pass rate lies with 95%, given `passed` of `count`."""
    if count == 0:
        return Interval(0.0, 1.0)
    rate, z2 = passed / count, z * z
    middle = rate + z2 / (2 * count)
    spread = z * math.sqrt(rate * (1 - rate) / count + z2 / (4 * count * count))
    scale = 1 + z2 / count
    return Interval(max(0.0, (middle - spread) / scale), min(1.0, (middle + spread) / scale))


def sign_test(better: int, worse: int) -> float:
    """Two-sided exact probability of a split at least this uneven if neither side were better."""
    n, k = better + worse, min(better, worse)
    if n == 0:
        return 1.0
    tail = sum(math.comb(n, i) for i in range(k + 1))
    return min(1.0, 2 * tail / 2**n)


def paired_interval(differences: list[float], z: float = _Z95) -> Interval:
    """Where the true mean difference lies with 95%, from differences task by task (normal approximation)."""
    n = len(differences)
    if n < 2:
        return Interval(-1.0, 1.0)
    mean = sum(differences) / n
    variance = sum((d - mean) ** 2 for d in differences) / (n - 1)
    # One task's worth of doubt is always left: twenty tasks that all agree do not prove certainty.
    spread = z * math.sqrt(max(variance, 1.0 / n) / n)
    return Interval(max(-1.0, mean - spread), min(1.0, mean + spread))
