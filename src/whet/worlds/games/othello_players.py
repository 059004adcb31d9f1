"""Opponents for Othello, from weak to strong. Each picks by the position and a generator that breaks ties."""

from __future__ import annotations

import random
from collections.abc import Callable
from enum import StrEnum

from whet.worlds.games.othello_rules import Position, each, moves, play

_WORTH = (
    (100, -20, 10, 5, 5, 10, -20, 100),
    (-20, -50, -2, -2, -2, -2, -50, -20),
    (10, -2, 1, 1, 1, 1, -2, 10),
    (5, -2, 1, 0, 0, 1, -2, 5),
)
_SQUARE_WORTH = [worth for row in (*_WORTH, *reversed(_WORTH)) for worth in row]
# The same table as one board for each worth, so that a position is weighed with a few bit counts.
_WORTH_BOARDS = [
    (worth, sum(1 << place for place, value in enumerate(_SQUARE_WORTH) if value == worth))
    for worth in sorted(set(_SQUARE_WORTH))
]
_DEPTH = 3
_DECIDED = 10_000


class Opponent(StrEnum):
    RANDOM = "random"
    """Any legal move."""
    GREEDY = "greedy"
    """The move that turns the most discs: weaker than it looks."""
    POSITIONAL = "positional"
    """The move to the best square and position, one move ahead."""
    ALPHABETA = "alphabeta"
    """Three moves ahead."""


def choose(opponent: Opponent, position: Position, rng: random.Random) -> int:
    """A legal move; the position must have one."""
    options = list(each(moves(position)))
    if opponent is Opponent.RANDOM:
        return rng.choice(options)
    value = _VALUES[opponent]
    worth = {move: value(play(position, move)) for move in options}
    best = max(worth.values())
    return rng.choice([move for move in options if worth[move] == best])


def _most_discs(after: Position) -> int:
    return after.other.bit_count()


def _weighed(position: Position) -> int:
    """Squares and mobility, for the player to move."""
    held = sum(
        worth * ((position.own & board).bit_count() - (position.other & board).bit_count())
        for worth, board in _WORTH_BOARDS
    )
    return held + 5 * (moves(position).bit_count() - moves(position.passed).bit_count())


def _searched(position: Position, depth: int, low: int, high: int) -> int:
    """Negamax with alpha-beta, for the player to move."""
    options = moves(position)
    if not options:
        if not moves(position.passed):
            return _DECIDED * (position.own.bit_count() - position.other.bit_count())
        return -_searched(position.passed, depth, -high, -low)
    if depth == 0:
        return _weighed(position)
    for move in each(options):
        low = max(low, -_searched(play(position, move), depth - 1, -high, -low))
        if low >= high:
            break
    return low


_INFINITE = _DECIDED * 65
_VALUES: dict[Opponent, Callable[[Position], int]] = {
    Opponent.GREEDY: _most_discs,
    Opponent.POSITIONAL: lambda after: -_weighed(after),
    Opponent.ALPHABETA: lambda after: -_searched(after, _DEPTH - 1, -_INFINITE, _INFINITE),
}
