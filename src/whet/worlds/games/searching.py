"""Searches without any model, with a given number of verifier calls: what a loop must beat to have shown something.

Both look for one strategy that does well on the seeds that they may see, and know nothing of how a score comes about.
"""

from __future__ import annotations

import math
import random
import statistics
from collections.abc import Callable, Sequence

import msgspec

from whet.worlds.games.grid_ctf import FORCE_LIMIT, Strategy, random_strategy, score

_POPULATION = 40
_ELITE = 8


class Searched(msgspec.Struct, frozen=True):
    strategy: Strategy
    calls: int
    """Verifier calls that it took."""


def random_search(seeds: Sequence[int], calls: int, rng: random.Random) -> Searched:
    """Uniform valid strategies, each tried on one seed in turn; the best is kept."""
    best, highest = Strategy(0.0, 0.0, 0.0), -1.0
    for number in range(calls):
        strategy = random_strategy(rng)
        found = score(strategy, seeds[number % len(seeds)])
        if found > highest:
            best, highest = strategy, found
    return Searched(best, calls)


def cross_entropy_search(seeds: Sequence[int], calls: int, rng: random.Random) -> Searched:
    """Draws from a normal distribution that moves to the best fifth of each round."""
    mean, spread = [0.5, 0.5, 0.5], [0.3, 0.3, 0.3]
    used = 0
    while used + _POPULATION <= calls:
        drawn = [_drawn(mean, spread, rng) for _ in range(_POPULATION)]
        scored = [(score(one, seeds[(used + place) % len(seeds)]), one) for place, one in enumerate(drawn)]
        used += _POPULATION
        elite = [one for _, one in sorted(scored, key=lambda pair: -pair[0])[:_ELITE]]
        columns = list(zip(*(msgspec.structs.astuple(one) for one in elite), strict=True))
        mean = [statistics.fmean(column) for column in columns]
        spread = [max(0.02, statistics.pstdev(column)) for column in columns]
    return Searched(_inside(mean), used)


def mean_score(strategy: Strategy, seeds: Sequence[int]) -> float:
    return math.fsum(score(strategy, seed) for seed in seeds) / len(seeds)


Search = Callable[[Sequence[int], int, random.Random], Searched]
SEARCHES: dict[str, Search] = {"random search": random_search, "cross-entropy search": cross_entropy_search}


def _drawn(mean: Sequence[float], spread: Sequence[float], rng: random.Random) -> Strategy:
    return _inside([rng.gauss(middle, wide) for middle, wide in zip(mean, spread, strict=True)])


def _inside(values: Sequence[float]) -> Strategy:
    """The nearest that the rules allow, by taking from both forces alike."""
    aggression, defense, path = (min(1.0, max(0.0, value)) for value in values)
    over = max(0.0, aggression + defense - FORCE_LIMIT)
    while over > 0.0:
        aggression, defense = max(0.0, aggression - over / 2 - 1e-9), max(0.0, defense - over / 2 - 1e-9)
        over = max(0.0, aggression + defense - FORCE_LIMIT)
    return Strategy(aggression, defense, path)
