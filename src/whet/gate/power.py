"""What a number of tasks can show: before a training, so that nobody waits for what cannot be seen."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache
from math import ceil, sqrt
from random import Random
from statistics import NormalDist, fmean

import msgspec

from whet.core import InputError, seed_from
from whet.gate.evidence import Arm, Ask, Evidence, Rule
from whet.gate.statistics import binomial_point, binomial_tail

_MOST_TASKS = 100_000


def sign_test_power(tasks: int, discordant: float, gain: float, level: float = 0.025) -> float:
    """How often the exact one-sided sign test, on one play of each task with both policies, shows this gain.

    `discordant` is the share of tasks that only one of the two passes, as an A/A test finds it; at least `gain`.
    """
    _check(discordant, level)
    differing = max(discordant, abs(gain))
    if differing == 0.0:
        return 0.0
    better = (1 + gain / differing) / 2
    # Further out than eight deviations no count has a share that matters.
    middle, reach = tasks * differing, 8 * sqrt(tasks * differing * (1 - differing)) + 1
    counts = range(max(1, int(middle - reach)), min(tasks, ceil(middle + reach)) + 1)
    return sum(
        binomial_point(count, tasks, differing) * binomial_tail(_needed(count, level), count, better)
        for count in counts
    )


def smallest_gain(tasks: int, discordant: float, *, level: float = 0.025, power: float = 0.8) -> float | None:
    """The least gain, in thousandths, that is shown with this power. None: these tasks can show no gain so reliably."""
    if sign_test_power(tasks, discordant, 1.0, level) < power:
        return None
    low, high = 0, 1000
    while high - low > 1:
        middle = (low + high) // 2
        enough = sign_test_power(tasks, discordant, middle / 1000, level) >= power
        low, high = (low, middle) if enough else (middle, high)
    return high / 1000


def tasks_needed(gain: float, discordant: float, *, level: float = 0.025, power: float = 0.8) -> int:
    """How many tasks show this gain with this power. The test has steps, so a few less or more can do as well."""
    if not 0.0 < gain <= 1.0:
        raise InputError(f"a gain to look for lies between 0 and 1, not at {gain}")
    low, high = 0, 8
    while sign_test_power(high, discordant, gain, level) < power:
        low, high = high, 2 * high
        if high > _MOST_TASKS:
            raise InputError(f"more than {_MOST_TASKS:,} tasks would be needed to see a gain of {gain:g}")
    while high - low > 1:
        middle = (low + high) // 2
        enough = sign_test_power(middle, discordant, gain, level) >= power
        low, high = (low, middle) if enough else (middle, high)
    return high


class Simulated(msgspec.Struct, frozen=True):
    """What a rule does over many comparisons with known pass rates."""

    accepted: float
    rollouts: float
    """On average, over both policies."""
    passes: float
    """The same against one pass of all tasks with both policies."""


def simulate(
    make: Callable[[Sequence[str]], Rule], rates: Sequence[float], gain: float, *, repeats: int = 1000, seed: int = 0
) -> Simulated:
    """Let a rule judge a candidate that passes each task more often by `gain`, many times.

    `make` makes the rule for the names of the tasks, as in `lambda tasks: make_rule("paired", tasks=tasks)`.
    """
    tasks = [str(number) for number in range(len(rates))]
    incumbent = dict(zip(tasks, rates, strict=True))
    candidate = {task: min(1.0, max(0.0, rate + gain)) for task, rate in incumbent.items()}
    rulings = [
        rule_on(make(tasks), candidate, incumbent, Random(seed_from("simulate", seed, repeat)))
        for repeat in range(repeats)
    ]
    rollouts = fmean(ruling[1] for ruling in rulings)
    return Simulated(fmean(ruling[0] for ruling in rulings), rollouts, rollouts / (2 * len(tasks)))


def rule_on(rule: Rule, candidate: dict[str, float], incumbent: dict[str, float], random: Random) -> tuple[bool, int]:
    """One comparison of policies with these pass rates: accepted or not, and the plays it took."""
    evidence = Evidence()
    rates = {Arm.CANDIDATE: candidate, Arm.INCUMBENT: incumbent}
    while isinstance(step := rule.next(evidence), Ask):
        for task, arm, sample in step.plays:
            passed = random.random() < rates[arm][task]
            evidence.add(task, arm, sample, hard=passed, soft=passed)
    return step.accepted, evidence.added


@lru_cache(maxsize=1 << 16)
def _needed(count: int, level: float) -> int:
    """The least number of better ones among `count` differing ones that is significant."""
    # The normal approximation is off by one or two at most; from there the exact tail decides.
    needed = max(0, int(count / 2 + NormalDist().inv_cdf(1 - level) * sqrt(count) / 2) - 3)
    while binomial_tail(needed, count, 0.5) > level:
        needed += 1
    return needed


def _check(discordant: float, level: float) -> None:
    if not 0.0 <= discordant <= 1.0:
        raise InputError(f"a share of tasks lies between 0 and 1, not at {discordant}")
    if not 0.0 < level < 1.0:
        raise InputError(f"a level lies between 0 and 1, not at {level}")
