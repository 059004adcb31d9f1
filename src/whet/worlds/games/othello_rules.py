"""The rules of Othello on two 64-bit boards. Pure, and knows nothing of who plays.

Bit 0 is a1, bit 7 is h1, bit 63 is h8. A position is seen by the player to move: `own` and `other` discs.
"""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

FULL = (1 << 64) - 1
FILES = "abcdefgh"

_NOT_A = 0xFEFEFEFEFEFEFEFE
_NOT_H = 0x7F7F7F7F7F7F7F7F
# How far a step shifts the board, and the squares that it can arrive at without leaving it at one side.
_STEPS = (
    (1, _NOT_A),
    (-1, _NOT_H),
    (8, FULL),
    (-8, FULL),
    (9, _NOT_A),
    (-9, _NOT_H),
    (7, _NOT_H),
    (-7, _NOT_A),
)


class Position(msgspec.Struct, frozen=True):
    own: int
    other: int

    @property
    def passed(self) -> Position:
        return Position(self.other, self.own)


def start() -> Position:
    """Black to move, discs on d4 and e5 for White, d5 and e4 for Black."""
    return Position(bit("d5") | bit("e4"), bit("d4") | bit("e5"))


def moves(position: Position) -> int:
    """The legal squares, as a board."""
    own, other = position.own, position.other
    empty = FULL & ~(own | other)
    found = 0
    for step, edge in _STEPS:
        inner = other & edge if step in (8, -8) else other
        line = _shift(own, step, edge) & inner
        for _ in range(5):
            line |= _shift(line, step, edge) & inner
        found |= _shift(line, step, edge) & empty
    return found


def play(position: Position, move: int) -> Position:
    """The position after a legal move, as the other player sees it."""
    own, other = position.own, position.other
    turned = 0
    for step, edge in _STEPS:
        line = 0
        reached = _shift(move, step, edge)
        while reached & other:
            line |= reached
            reached = _shift(reached, step, edge)
        if reached & own:
            turned |= line
    return Position(other & ~turned, own | turned | move)


def over(position: Position) -> bool:
    """Neither can move."""
    return not moves(position) and not moves(position.passed)


def bit(square: str) -> int:
    return 1 << (FILES.index(square[0]) + 8 * (int(square[1]) - 1))


def square(move: int) -> str:
    place = move.bit_length() - 1
    return f"{FILES[place % 8]}{place // 8 + 1}"


def each(board: int) -> Iterator[int]:
    """The single squares of a board, from a1 on."""
    while board:
        lowest = board & -board
        yield lowest
        board ^= lowest


def squares(board: int) -> list[str]:
    return [square(move) for move in each(board)]


def sequences(position: Position, depth: int) -> int:
    """How many different sequences of moves there are; a pass counts as a move."""
    if depth == 0:
        return 1
    options = moves(position)
    if not options:
        return sequences(position.passed, depth - 1) if moves(position.passed) else 1
    if depth == 1:
        return options.bit_count()
    return sum(sequences(play(position, move), depth - 1) for move in each(options))


def drawn(black: int, white: int) -> str:
    """The board as text: X is Black, O is White."""
    rows = [f"{rank + 1} {' '.join(_disc(black, white, 8 * rank + file) for file in range(8))}" for rank in range(8)]
    return "\n".join([f"  {' '.join(FILES)}", *rows])


def _disc(black: int, white: int, place: int) -> str:
    return "X" if black >> place & 1 else "O" if white >> place & 1 else "."


def _shift(board: int, step: int, edge: int) -> int:
    return (board << step if step > 0 else board >> -step) & edge & FULL
