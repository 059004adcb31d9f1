from __future__ import annotations

import math
import random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from whet.core import Split
from whet.worlds.games import grid_ctf, othello_opening
from whet.worlds.games.grid_ctf import Strategy
from whet.worlds.games.othello_opening import Weights
from whet.worlds.games.seeds import RANGE, SeedSettings

UNIT = st.floats(0, 1)
ANCHOR = range(200)


def mean(values: Any) -> float:
    listed = list(values)
    return sum(listed) / len(listed)


def test_a_middling_strategy_scores_its_anchor() -> None:
    assert round(mean(grid_ctf.score(Strategy(0.5, 0.5, 0.5), seed) for seed in ANCHOR), 3) == 0.684


def test_the_best_single_strategy_scores_its_anchor() -> None:
    grid = (Strategy(a / 100, (140 - a) / 100, 1.0) for a in range(80, 101))
    best = max((mean(grid_ctf.score(one, seed) for seed in ANCHOR), one) for one in grid if one.valid)
    assert round(best[0], 4) == 0.8926
    assert best[1] == Strategy(0.93, 0.47, 1.0)


def test_random_strategies_are_uniform_over_the_valid_ones() -> None:
    rng = random.Random(0)
    played = [grid_ctf.score(grid_ctf.random_strategy(rng), seed % 200) for seed in range(20_000)]
    steps = [(step + 0.5) / 30 for step in range(30)]
    every = [one for a in steps for d in steps for p in steps if (one := Strategy(a, d, p)).valid]
    evenly = mean(grid_ctf.score(one, place % 200) for place, one in enumerate(every))
    assert all(0 < one <= 1 for one in played)
    assert abs(mean(played) - evenly) < 0.004
    assert abs(evenly - 0.646) < 0.002


def test_matches_are_scored_in_process_tens_of_thousands_at_a_time() -> None:
    strategy = Strategy(0.9, 0.4, 1.0)
    assert len({grid_ctf.score(strategy, seed) for seed in range(50_000)}) > 500


@given(UNIT, UNIT, UNIT, st.integers(0, 4 * RANGE))
def test_no_strategy_beats_the_optimum(aggression: float, defense: float, path_bias: float, seed: int) -> None:
    best = grid_ctf.optimum(seed)
    assert best.strategy.valid
    assert grid_ctf.score(best.strategy, seed) == best.score
    assert grid_ctf.score(Strategy(aggression, defense, path_bias), seed) <= best.score


@given(UNIT, UNIT, UNIT, st.integers(0, RANGE))
def test_a_match_follows_its_formula(a: float, d: float, p: float, seed: int) -> None:
    if a + d > 1.4:
        return
    s = random.Random(seed).uniform(-0.07, 0.07)
    capture, survival, energy = (
        min(1, max(0, part)) for part in (0.55 * a + 0.45 * p + s, 1 - 0.4 * a + 0.4 * d, 1 - 0.3 * a + 0.1 * d)
    )
    expected = min(1, max(0, 0.6 * capture + 0.25 * survival + 0.15 * energy))
    assert math.isclose(grid_ctf.score(Strategy(a, d, p), seed), expected, abs_tol=0.00006)


def test_the_observation_is_drawn_bias_first() -> None:
    rng = random.Random(7)
    seen = grid_ctf.observe(7)
    assert seen.spawn_bias == round(rng.uniform(0.25, 0.75), 3)
    assert seen.resource_density == round(rng.uniform(0.1, 0.9), 3)


@given(UNIT, UNIT, UNIT, st.integers(0, RANGE))
def test_an_opening_follows_its_formula(m: float, c: float, s: float, seed: int) -> None:
    luck = random.Random(seed).uniform(-0.05, 0.05)
    expected = min(1, max(0, 0.35 * m + 0.4 * c + 0.25 * s + luck))
    reached = othello_opening.score(Weights(m, c, s), seed)
    assert math.isclose(reached, expected, abs_tol=0.00006)
    assert reached <= othello_opening.optimum(seed)[1]


GOOD = '{"aggression": 0.5, "defense": 0.5, "path_bias": 0.5}'
INVALID = [
    "",
    "I attack",
    "[0.5, 0.5, 0.5]",
    f"Here it is: {GOOD}",
    f"{GOOD} {GOOD}",
    f"{GOOD}\n{GOOD}",
    f"```json\n{GOOD}\n```\n```json\n{GOOD}\n```",
    f"[{GOOD}]",
    '{"aggression": 0.5, "defense": 0.5}',
    '{"aggression": 0.5, "aggression": 0.6, "defense": 0.5, "path_bias": 0.5}',
    '{"aggression": 0.5, "defense": 0.5, "path_bias": 0.5, "luck": 1}',
    *(
        f'{{"aggression": {value}, "defense": 0.5, "path_bias": 0.5}}'
        for value in (
            "NaN",
            "Infinity",
            "-Infinity",
            "1e999",
            "true",
            "null",
            '"0.5"',
            "[0.5]",
            "-0.01",
            "1.01",
            "9" * 5000,
        )
    ),
    '{"aggression": 0.9, "defense": 0.51, "path_bias": 0.5}',
    '{"aggression": 0.5, "defense": 0.5, "path_bias": 0.5, "\\ud800": 1}',
    "[" * 100_000,
]


@pytest.mark.parametrize("reply", INVALID)
async def test_whatever_is_not_one_object_of_three_numbers_scores_0(
    project: Any, judge_answer: Any, reply: str
) -> None:
    verdict = await judge_answer(project.load("grid_ctf", train=1, selection=0, test=0), reply)
    assert (verdict.hard, verdict.soft, verdict.facts["valid"]) == (False, 0.0, False)
    assert verdict.feedback.startswith("invalid: ")
    verdict.feedback.encode()


@pytest.mark.parametrize("reply", [GOOD, f"  {GOOD}\n", f"```json\n{GOOD}\n```", GOOD.replace("0.5", "5e-1")])
async def test_one_object_scores_with_its_parts_and_regret(project: Any, judge_answer: Any, reply: str) -> None:
    world = project.load("grid_ctf", train=1, selection=0, test=0)
    verdict = await judge_answer(world, reply)
    assert verdict.hard
    assert verdict.soft == grid_ctf.score(Strategy(0.5, 0.5, 0.5), 0) == verdict.facts["score"]
    assert verdict.facts["regret"] == round(grid_ctf.optimum(0).score - verdict.soft, 4) > 0
    assert {"capture", "survival", "energy", "optimum"} <= set(verdict.facts)


@pytest.mark.parametrize("name", ["grid_ctf", "othello_opening"])
async def test_the_known_good_answer_is_the_optimum(project: Any, judge_answer: Any, name: str) -> None:
    world = project.load(name, train=20)
    for task in world.tasks(Split.TRAIN):
        verdict = await judge_answer(world, world.known_good(task), task)
        assert verdict.hard
        assert verdict.facts["regret"] == 0


@pytest.mark.parametrize("name", ["grid_ctf", "othello_opening", "othello"])
def test_splits_share_no_seed_and_growing_one_moves_no_task(project: Any, name: str) -> None:
    small = project.load(name, train=3, selection=4, test=5, confirm=2)
    large = project.load(name, train=30, selection=40, test=50, confirm=20)
    seeds = [task.inputs["seed"] for split in Split for task in large.tasks(split)]
    assert len(set(seeds)) == 140
    for split, size in zip(Split, (3, 4, 5, 2), strict=True):
        assert small.tasks(split) == large.tasks(split)[:size]
    moved = project.load(name, train=3, first=100)
    assert moved.tasks(Split.TRAIN)[0].inputs["seed"] == 100


@given(st.text())
async def test_any_reply_gets_a_verdict(reply: str) -> None:
    game = othello_opening.OthelloOpening(SeedSettings())
    task = next(game.tasks())
    assert game.judge(task, reply).soft == 0.0
