"""Capture the flag on a grid, as one decision: three numbers are a strategy, a formula plays the match.

`score`, `optimum` and `random_strategy` can be used without a world, for baselines and benches.
"""

from __future__ import annotations

import math
import random
from collections.abc import Iterator
from itertools import combinations

import msgspec

from whet.core import Json, Task, Verdict
from whet.worlds.games.seeds import SeedSettings
from whet.worlds.games.strategies import invalid, number_schema, read_numbers, seed_of, seed_tasks
from whet.worlds.marking import world

FORCE_LIMIT = 1.4
"""The most that aggression and defense may be together."""
PASS_SCORE = 0.55
NAMES = ("aggression", "defense", "path_bias")

_RULES = """\
You command a team in a match of capture the flag.

The map is a 20x20 grid under fog of war. You have three kinds of unit (scouts, soldiers and commanders), and at least
one defender must stay at your base. What your scouts report of this match:
- enemy spawn bias: {spawn_bias}
- resource density: {resource_density}

Choose a strategy of three numbers, each from 0 to 1:
- aggression: how much force goes into the attack
- defense: how much force guards the base
- path_bias: how much the attack keeps to the direct path to the flag
aggression and defense together may be at most 1.4.

Judged are the progress of the capture (most), the survival of your units, and the energy that is left (least).

Answer with one JSON object and nothing else, in this form:
{{"aggression": <number>, "defense": <number>, "path_bias": <number>}}"""


class Strategy(msgspec.Struct, frozen=True):
    aggression: float
    defense: float
    path_bias: float

    @property
    def valid(self) -> bool:
        within = all(0 <= value <= 1 for value in (self.aggression, self.defense, self.path_bias))
        return within and self.aggression + self.defense <= FORCE_LIMIT


class Outcome(msgspec.Struct, frozen=True):
    """A match, by its parts; only the score is rounded."""

    capture: float
    survival: float
    energy: float
    score: float


class Optimum(msgspec.Struct, frozen=True):
    strategy: Strategy
    score: float


class Observation(msgspec.Struct, frozen=True):
    spawn_bias: float
    resource_density: float


def observe(seed: int) -> Observation:
    rng = random.Random(seed)
    return Observation(round(rng.uniform(0.25, 0.75), 3), round(rng.uniform(0.1, 0.9), 3))


def play(strategy: Strategy, seed: int) -> Outcome:
    return _match(strategy, _luck(seed))


def score(strategy: Strategy, seed: int) -> float:
    """0 for a strategy outside the rules."""
    return play(strategy, seed).score if strategy.valid else 0.0


def optimum(seed: int) -> Optimum:
    """The best strategy of a seed, exactly: the score is linear between a few lines, so the best is where two cross."""
    luck = _luck(seed)
    best = max(_crossings(luck), key=lambda strategy: _match(strategy, luck).score)
    return Optimum(best, _match(best, luck).score)


def random_strategy(rng: random.Random) -> Strategy:
    """Uniform over all valid strategies."""
    while True:
        strategy = Strategy(rng.random(), rng.random(), rng.random())
        if strategy.valid:
            return strategy


@world("grid_ctf")
class GridCtf:
    """Capture the flag as three numbers: a quick game with a known optimum for every seed."""

    content = "grid_ctf 1"
    answer_schema = number_schema(NAMES)

    def __init__(self, settings: SeedSettings) -> None:
        self._settings = settings

    def tasks(self) -> Iterator[Task]:
        for seed, task in seed_tasks(self._settings, "ctf"):
            seen = observe(seed)
            task.inputs.update(enemy_spawn_bias=seen.spawn_bias, resource_density=seen.resource_density)
            yield task

    def brief(self, task: Task) -> str:
        inputs = task.inputs
        return _RULES.format(spawn_bias=inputs["enemy_spawn_bias"], resource_density=inputs["resource_density"])

    def judge(self, task: Task, answer: str) -> Verdict:
        seed = seed_of(task)
        best = optimum(seed)
        strategy = _read(answer)
        if isinstance(strategy, str):
            return invalid(strategy, {"optimum": best.score, "regret": best.score})
        outcome = play(strategy, seed)
        passed = outcome.score >= PASS_SCORE
        facts: dict[str, Json] = {
            **msgspec.structs.asdict(outcome),
            "optimum": best.score,
            "regret": round(best.score - outcome.score, 4),
            "valid": True,
        }
        return Verdict(passed, outcome.score, _feedback(outcome, passed), facts)

    def explore(self, rng: random.Random) -> str:
        return msgspec.json.encode(random_strategy(rng)).decode()

    def known_good(self, task: Task) -> str:
        return msgspec.json.encode(optimum(seed_of(task)).strategy).decode()


def _read(answer: str) -> Strategy | str:
    """The strategy of a reply, or why there is none."""
    try:
        strategy = Strategy(*read_numbers(answer, NAMES))
    except ValueError as error:
        return str(error)
    if not strategy.valid:
        return f"aggression + defense is {strategy.aggression + strategy.defense:g}, more than {FORCE_LIMIT}"
    return strategy


def _feedback(outcome: Outcome, passed: bool) -> str:
    parts = f"capture {outcome.capture:.2f}, survival {outcome.survival:.2f}, energy {outcome.energy:.2f}"
    return f"{'passed' if passed else 'low score'}: {outcome.score} ({parts})"


def _luck(seed: int) -> float:
    return random.Random(seed).uniform(-0.07, 0.07)


def _clip(value: float) -> float:
    return max(0.0, min(1.0, value))


def _match(strategy: Strategy, luck: float) -> Outcome:
    aggression, defense = strategy.aggression, strategy.defense
    capture = _clip(0.55 * aggression + 0.45 * strategy.path_bias + luck)
    survival = _clip(1 - 0.4 * aggression + 0.4 * defense)
    energy = _clip(1 - 0.3 * aggression + 0.1 * defense)
    return Outcome(capture, survival, energy, round(_clip(0.6 * capture + 0.25 * survival + 0.15 * energy), 4))


def _crossings(luck: float) -> Iterator[Strategy]:
    """Where the borders of what is allowed and the kinks of the score cross, as lines a·aggression + d·defense = c.

    The direct path costs nothing, so path_bias is 1. Capture and survival never fall to 0 near the best play.
    """
    full_capture = (1 - 0.45 - luck) / 0.55
    lines = [
        (1.0, 0.0, 0.0),
        (1.0, 0.0, 1.0),
        (0.0, 1.0, 0.0),
        (0.0, 1.0, 1.0),
        (1.0, 1.0, FORCE_LIMIT),
        (1.0, 0.0, full_capture),
        (1.0, -1.0, 0.0),
        (3.0, -1.0, 0.0),
    ]
    for (a1, d1, c1), (a2, d2, c2) in combinations(lines, 2):
        determinant = a1 * d2 - a2 * d1
        if determinant:
            aggression = (c1 * d2 - c2 * d1) / determinant
            strategy = _inside(aggression, (a1 * c2 - a2 * c1) / determinant)
            if strategy.valid:
                yield strategy


def _inside(aggression: float, defense: float) -> Strategy:
    """The crossing without the last bits of rounding that would put it over the limit."""
    while FORCE_LIMIT < aggression + defense < FORCE_LIMIT + 1e-9:
        defense = math.nextafter(defense, 0.0)
    return Strategy(aggression, defense, 1.0)
