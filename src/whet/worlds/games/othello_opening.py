"""Othello's opening as one decision: three weights are a plan, a formula plays it out."""

from __future__ import annotations

import random
from collections.abc import Iterator

import msgspec

from whet.core import Json, Task, Verdict
from whet.worlds.games.seeds import SeedSettings
from whet.worlds.games.strategies import invalid, number_schema, read_numbers, seed_of, seed_tasks
from whet.worlds.marking import world

PASS_SCORE = 0.52
NAMES = ("mobility_weight", "corner_weight", "stability_weight")

_RULES = """\
You plan the opening of a game of Othello.

Choose how much your play is led by each of three aims, as three numbers from 0 to 1:
- mobility_weight: having many moves, and leaving your opponent few
- corner_weight: taking corners, and keeping your opponent from them
- stability_weight: discs that can no longer be turned

Judged is the position that such play leads to, by corners (most), mobility, and stable discs (least).

Answer with one JSON object and nothing else, in this form:
{"mobility_weight": <number>, "corner_weight": <number>, "stability_weight": <number>}"""


class Weights(msgspec.Struct, frozen=True):
    mobility_weight: float
    corner_weight: float
    stability_weight: float

    @property
    def valid(self) -> bool:
        return all(0 <= value <= 1 for value in (self.mobility_weight, self.corner_weight, self.stability_weight))


def score(weights: Weights, seed: int) -> float:
    """0 for weights outside the rules."""
    if not weights.valid:
        return 0.0
    luck = random.Random(seed).uniform(-0.05, 0.05)
    led = 0.35 * weights.mobility_weight + 0.4 * weights.corner_weight + 0.25 * weights.stability_weight
    return round(max(0.0, min(1.0, led + luck)), 4)


def optimum(seed: int) -> tuple[Weights, float]:
    best = Weights(1.0, 1.0, 1.0)
    return best, score(best, seed)


def random_weights(rng: random.Random) -> Weights:
    return Weights(rng.random(), rng.random(), rng.random())


@world("othello_opening")
class OthelloOpening:
    """Plan an Othello opening as three weights: a quick game with a known optimum for every seed."""

    content = "othello_opening 1"
    answer_schema = number_schema(NAMES)

    def __init__(self, settings: SeedSettings) -> None:
        self._settings = settings

    def tasks(self) -> Iterator[Task]:
        return (task for _, task in seed_tasks(self._settings, "opening"))

    def brief(self) -> str:
        return _RULES

    def judge(self, task: Task, answer: str) -> Verdict:
        seed = seed_of(task)
        best = optimum(seed)[1]
        try:
            weights = Weights(*read_numbers(answer, NAMES))
        except ValueError as error:
            return invalid(str(error), {"optimum": best, "regret": best})
        reached = score(weights, seed)
        passed = reached >= PASS_SCORE
        facts: dict[str, Json] = {
            "score": reached,
            "optimum": best,
            "regret": round(best - reached, 4),
            "valid": True,
        }
        return Verdict(passed, reached, f"{'passed' if passed else 'low score'}: {reached}", facts)

    def known_good(self, task: Task) -> str:
        return msgspec.json.encode(optimum(seed_of(task))[0]).decode()
