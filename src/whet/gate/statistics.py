"""Intervals and exact tests in closed form, for numbers that people are to believe."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from enum import StrEnum
from random import Random
from statistics import NormalDist

import msgspec

_Z95 = 1.959963984540054
_NORMAL = NormalDist()
_GRID = 10_000
"""Differences are tested in ten-thousandths, so that sums are whole numbers and can be counted."""
_COUNTING = 1 << 23
"""Bits that an exact count may take. Beyond them the grid gets coarser, and the test is exact on that."""


class Interval(msgspec.Struct, frozen=True):
    low: float
    high: float


class Side(StrEnum):
    """What would speak against chance."""

    GREATER = "greater"
    LESS = "less"
    BOTH = "both"


def wilson(passed: int, count: int, z: float = _Z95) -> Interval:
    """Where the true pass rate lies with 95%, given `passed` of `count`."""
    if count == 0:
        return Interval(0.0, 1.0)
    rate, z2 = passed / count, z * z
    middle = rate + z2 / (2 * count)
    spread = z * math.sqrt(rate * (1 - rate) / count + z2 / (4 * count * count))
    scale = 1 + z2 / count
    return Interval(max(0.0, (middle - spread) / scale), min(1.0, (middle + spread) / scale))


def clopper_pearson(passed: int, count: int, doubt: float = 0.05) -> Interval:
    """The same without approximation: never narrower than promised, and so wider than Wilson's."""
    low = 0.0 if passed == 0 else _solve(lambda p: binomial_tail(passed, count, p) - doubt / 2)
    high = 1.0 if passed == count else _solve(lambda p: binomial_tail(passed + 1, count, p) - (1 - doubt / 2))
    return Interval(low, high)


def binomial_point(k: int, n: int, p: float) -> float:
    """The chance of exactly `k` of `n`."""
    if p in (0.0, 1.0):
        return float(k == n * p)
    choose = math.lgamma(n + 1) - math.lgamma(k + 1) - math.lgamma(n - k + 1)
    return math.exp(choose + k * math.log(p) + (n - k) * math.log1p(-p))


def binomial_tail(k: int, n: int, p: float) -> float:
    """The chance of `k` or more of `n`."""
    if k <= 0:
        return 1.0
    if k > n:
        return 0.0
    if p in (0.0, 1.0):
        return p
    if k <= n * p:
        # The other tail is the short one.
        return max(0.0, 1.0 - binomial_tail(n - k + 1, n, 1.0 - p))
    term = total = binomial_point(k, n, p)
    odds = p / (1.0 - p)
    for i in range(k, n):
        term *= (n - i) / (i + 1) * odds
        total += term
        if term < total * 1e-17:
            break
    return min(1.0, total)


def binomial_test(k: int, n: int, p: float = 0.5, side: Side = Side.BOTH) -> float:
    """The chance of a count at least as far out as `k`; on both sides, of one at most as likely as `k`."""
    match side:
        case Side.GREATER:
            return binomial_tail(k, n, p)
        case Side.LESS:
            return binomial_tail(n - k, n, 1.0 - p)
        case Side.BOTH:
            # Counts as likely as `k` can differ from it by rounding.
            limit = binomial_point(k, n, p) * (1 + 1e-7)
            points = (binomial_point(i, n, p) for i in range(n + 1))
            return min(1.0, math.fsum(point for point in points if point <= limit))


def sign_test(better: int, worse: int) -> float:
    """Two-sided exact probability of a split at least this uneven if neither side were better.

    Of tasks fixed and broken this is McNemar's exact test.
    """
    n, k = better + worse, min(better, worse)
    if n == 0:
        return 1.0
    tail = sum(math.comb(n, i) for i in range(k + 1))
    return min(1.0, 2 * tail / 2**n)


def sign_flip_test(differences: Sequence[float], side: Side = Side.BOTH) -> float:
    """How often a sum at least this far out comes about if the sign of every difference is a coin toss.

    Exact for partial credit too: all 2**n ways are counted, by their sums.
    """
    counted = _on_grid(differences)
    total = sum(counted)
    n, sizes = len(counted), [abs(d) for d in counted]
    match side:
        case Side.GREATER:
            ways = _ways_to_reach(sizes, total)
        case Side.LESS:
            ways = _ways_to_reach(sizes, -total)
        case Side.BOTH:
            ways = min(2 * _ways_to_reach(sizes, abs(total)), 1 << n)
    return ways / (1 << n)


def paired_interval(differences: Sequence[float], z: float = _Z95) -> Interval:
    """Where the true mean difference lies with 95%, from differences task by task (normal approximation)."""
    n = len(differences)
    if n < 2:
        return Interval(-1.0, 1.0)
    mean = sum(differences) / n
    variance = sum((d - mean) ** 2 for d in differences) / (n - 1)
    # One task's worth of doubt is always left: twenty tasks that all agree do not prove certainty.
    spread = z * math.sqrt(max(variance, 1.0 / n) / n)
    return Interval(max(-1.0, mean - spread), min(1.0, mean + spread))


def bootstrap_interval(
    differences: Sequence[float], *, seed: int, doubt: float = 0.05, resamples: int = 4000
) -> Interval:
    """Where the true mean difference lies, by the bias-corrected and accelerated bootstrap.

    It follows the shape of the differences, which the normal approximation does not; it needs twenty or so to do so.
    """
    n = len(differences)
    if n < 2 or min(differences) == max(differences):
        return paired_interval(differences)
    mean = math.fsum(differences) / n
    random = Random(seed)
    means = sorted(math.fsum(random.choices(differences, k=n)) / n for _ in range(resamples))
    below = sum(one < mean for one in means) + sum(one == mean for one in means) / 2
    bias = _NORMAL.inv_cdf(min(max(below, 0.5), resamples - 0.5) / resamples)
    # For a mean, leaving out one value moves it against that value, so no mean has to be taken again.
    cubes = math.fsum((d - mean) ** 3 for d in differences)
    acceleration = cubes / (6 * math.fsum((d - mean) ** 2 for d in differences) ** 1.5)

    def end(z: float) -> float:
        moved = bias + (bias + z) / (1 - acceleration * (bias + z))
        place = _NORMAL.cdf(moved) * (resamples - 1)
        at = min(int(place), resamples - 2)
        return means[at] + (place - at) * (means[at + 1] - means[at])

    z = _NORMAL.inv_cdf(1 - doubt / 2)
    return Interval(end(-z), end(z))


def holm(ps: Sequence[float]) -> list[float]:
    """Each p as it counts when all of them were looked at: the level then holds for the whole family (Holm)."""
    adjusted = [0.0] * len(ps)
    highest = 0.0
    for rank, index in enumerate(sorted(range(len(ps)), key=lambda index: ps[index])):
        highest = max(highest, min(1.0, (len(ps) - rank) * ps[index]))
        adjusted[index] = highest
    return adjusted


def _on_grid(differences: Sequence[float]) -> list[int]:
    spread = math.fsum(abs(d) for d in differences)
    slots = max(4096, _COUNTING // (len(differences) + 1))
    grid = min(float(_GRID), slots / spread) if spread else 1.0
    counted = [round(d * grid) for d in differences]
    step = math.gcd(*counted) or 1
    return [d // step for d in counted]


def _ways_to_reach(sizes: Sequence[int], total: int) -> int:
    """Of all 2**n ways to give these sizes signs, those that sum to `total` or more.

    One big number holds, in the slot of each sum, the number of ways to make it; a size adds a copy of all, moved up.
    """
    slot = len(sizes) + 2
    ways = 1
    for size in sizes:
        ways += ways << (size * slot)
    # Signed sums are twice the positive part less everything.
    least = -(-(total + sum(sizes)) // 2)
    # Slots add up to 2**n, which is less than 2**slot - 1, so their sum is what is left of the number modulo that.
    return (ways >> (max(least, 0) * slot)) % ((1 << slot) - 1)


def _solve(rising: Callable[[float], float]) -> float:
    """Where a rising function on 0..1 is 0."""
    low, high = 0.0, 1.0
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (low, middle) if rising(middle) > 0 else (middle, high)
    return (low + high) / 2
