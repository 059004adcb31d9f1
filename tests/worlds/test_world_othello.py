from __future__ import annotations

import random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from whet.core import Session, Split, ToolFault, Verdict
from whet.worlds.games import othello_rules as rules
from whet.worlds.games.othello import Game
from whet.worlds.games.othello_players import Opponent, choose
from whet.worlds.games.othello_rules import Position


@pytest.mark.parametrize(
    ("depth", "count"), [(0, 1), (1, 4), (2, 12), (3, 56), (4, 244), (5, 1396), (6, 8200), (7, 55092)]
)
def test_the_rules_give_the_known_numbers_of_games(depth: int, count: int) -> None:
    assert rules.sequences(rules.start(), depth) == count


def slow_moves(position: Position) -> set[str]:
    """The rules once more, square by square, for comparison."""
    own, other = set(rules.squares(position.own)), set(rules.squares(position.other))
    found: set[str] = set()
    for column in range(8):
        for row in range(8):
            name = f"{rules.FILES[column]}{row + 1}"
            steps = [(dx, dy) for dx in (-1, 0, 1) for dy in (-1, 0, 1) if (dx, dy) != (0, 0)]
            if name not in own | other and any(_encloses(own, other, column, row, *step) for step in steps):
                found.add(name)
    return found


def _encloses(own: set[str], other: set[str], column: int, row: int, dx: int, dy: int) -> bool:
    between = 0
    while True:
        column, row = column + dx, row + dy
        name = f"{rules.FILES[column]}{row + 1}" if 0 <= column < 8 and 0 <= row < 8 else ""
        if name in other and name:
            between += 1
        else:
            return name in own and between > 0


@pytest.mark.slow
@given(st.integers())
def test_whole_random_games_keep_the_rules(seed: int) -> None:
    rng, position, discs = random.Random(seed), rules.start(), 4
    while not rules.over(position):
        options = rules.squares(rules.moves(position))
        assert set(options) == slow_moves(position)
        if not options:
            position = position.passed
            continue
        position = rules.play(position, rules.bit(rng.choice(options)))
        discs += 1
        assert position.own & position.other == 0
        assert (position.own | position.other).bit_count() == discs


@given(st.integers(0, 63))
def test_squares_are_named_and_found_again(place: int) -> None:
    assert rules.bit(rules.square(1 << place)) == 1 << place


@pytest.mark.slow
def test_opponents_are_of_several_strengths() -> None:
    def black_wins(black: Opponent, white: Opponent, seed: int) -> bool:
        rng, position, black_moves = random.Random(seed), rules.start(), True
        for _ in range(4):
            position = rules.play(position, rng.choice(list(rules.each(rules.moves(position)))))
        while not rules.over(position):
            if rules.moves(position):
                position = rules.play(position, choose(black if black_moves else white, position, rng))
            else:
                position = position.passed
            black_moves = not black_moves
        mine, theirs = position.own.bit_count(), position.other.bit_count()
        return (mine > theirs) == black_moves and mine != theirs

    assert sum(black_wins(Opponent.POSITIONAL, Opponent.RANDOM, seed) for seed in range(20)) >= 14
    assert sum(black_wins(Opponent.ALPHABETA, Opponent.POSITIONAL, seed) for seed in range(4)) >= 3


def legal_in(text: str) -> list[str]:
    return text.split("Your legal moves: ")[1].split(", ")


async def played_out(session: Session, seed: int) -> Verdict:
    rng, text = random.Random(seed), session.brief.text
    while True:
        answer = await session.call("play", {"square": rng.choice(legal_in(text))})
        assert answer.fault is None
        if answer.ends:
            assert "The game is over." in answer.text
            return await session.judge("")
        text = answer.text


@pytest.mark.parametrize("opponent", ["random", "greedy", "positional"])
async def test_a_game_is_played_to_its_end_and_judged_by_its_discs(project: Any, opponent: str) -> None:
    world = project.load("othello", train=10, opponents=[opponent])
    colours: set[Any] = set()
    for task in world.tasks(Split.TRAIN):
        assert task.kind == opponent
        verdict = await played_out(await world.open(task, 0), seed=3)
        mine, theirs = verdict.facts["discs"], verdict.facts["opponent_discs"]
        assert verdict.hard == (mine > theirs)
        assert verdict.soft == mine / (mine + theirs)
        assert verdict.feedback.partition(":")[0] in ("won", "lost", "draw")
        colours.add(verdict.facts["colour"])
    assert colours == {"black", "white"}


async def test_the_same_moves_meet_the_same_game_whatever_the_session(project: Any) -> None:
    world = project.load("othello", train=1, opponents=["random"])
    (task,) = world.tasks(Split.TRAIN)
    verdicts = [await played_out(await world.open(task, seed), seed=5) for seed in (1, 2)]
    assert verdicts[0] == verdicts[1]


@pytest.mark.parametrize("square", ["a1", "z9", "", "d33", "play d3"])
async def test_an_illegal_move_changes_nothing_and_tells_the_legal_ones(project: Any, square: str) -> None:
    world = project.load("othello", train=1)
    session = await world.open(world.tasks(Split.TRAIN)[0], 0)
    legal = legal_in(session.brief.text)
    answer = await session.call("play", {"square": square})
    assert answer.fault is ToolFault.INVALID_ARGUMENTS
    assert legal_in(answer.text) == legal
    assert (await session.call("play", {"square": f" {legal[0].upper()} "})).fault is None


async def test_a_game_left_is_lost_however_it_stands(project: Any) -> None:
    world = project.load("othello", train=1)
    session = await world.open(world.tasks(Split.TRAIN)[0], 0)
    await session.call("play", {"square": legal_in(session.brief.text)[0]})
    verdict = await session.judge("I have won.")
    assert (verdict.hard, verdict.soft) == (False, 0.0)
    assert verdict.feedback.startswith("unfinished: ")


def test_a_player_who_cannot_move_passes() -> None:
    passes = 0
    for seed in range(300):
        game, rng = Game(seed, Opponent.RANDOM, 4), random.Random(seed)
        while not game.over:
            assert game.legal
            game.agent_plays(rng.choice(game.legal))
            passes += sum("passes" in line for line in game.log)
    assert passes > 50
