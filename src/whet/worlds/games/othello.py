"""Full games of Othello against seeded opponents: the agent plays move by move with one tool."""

from __future__ import annotations

import random
from collections.abc import Iterator

from whet.core import Json, Task, ToolFault, ToolResult, Verdict, seed_from
from whet.worlds.games import othello_rules as rules
from whet.worlds.games.othello_players import Opponent, choose
from whet.worlds.games.othello_rules import Position
from whet.worlds.games.seeds import SeedSettings
from whet.worlds.games.strategies import seed_of, seed_tasks
from whet.worlds.marking import world
from whet.worlds.tools import tool

_RULES = """\
You play a game of Othello (Reversi) on the 8x8 board, as {colour} ({mark}).

Columns are a to h, rows 1 to 8; X is Black, O is White, a point is empty. A move puts a disc on an empty square so that
it encloses one or more of your opponent's discs in a straight line, which all turn to your colour. A player who cannot
move passes, which happens by itself. The game ends when neither can move; whoever has more discs wins.

Play with the tool `play`, one square a call, until the game is over. Judged is whether you win. A game that you leave
unfinished is lost. You need not write an answer.

{situation}"""


class OthelloSettings(SeedSettings, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """How many games, and against whom."""

    opponents: tuple[Opponent, ...] = (Opponent.RANDOM, Opponent.GREEDY, Opponent.POSITIONAL, Opponent.ALPHABETA)
    """Who is played against, in turn: random, greedy, positional, alphabeta."""
    opening: int = 4
    """Moves that are played at random before the game begins, so that no two games are alike."""

    def __post_init__(self) -> None:
        super().__post_init__()
        if not self.opponents:
            raise ValueError("opponents must name at least one")
        if not 0 <= self.opening <= 6:
            raise ValueError("opening is from 0 to 6 moves")


class Game:
    """A game in play: the boards, who is to move, and the opponent's replies."""

    def __init__(self, seed: int, opponent: Opponent, opening: int) -> None:
        self._rng = random.Random(seed)
        self._opponent = opponent
        self.agent_is_black = self._rng.random() < 0.5
        self.black_to_move = True
        self.position = rules.start()
        self.played = 0
        self.log: list[str] = []
        for _ in range(opening):
            self._take(self._rng.choice(list(rules.each(rules.moves(self.position)))))
        self.log.clear()
        self._reply()

    @property
    def over(self) -> bool:
        return rules.over(self.position)

    @property
    def boards(self) -> tuple[int, int]:
        """Black's and White's discs."""
        own, other = self.position.own, self.position.other
        return (own, other) if self.black_to_move else (other, own)

    @property
    def discs(self) -> tuple[int, int]:
        """The agent's and the opponent's."""
        black, white = (board.bit_count() for board in self.boards)
        return (black, white) if self.agent_is_black else (white, black)

    @property
    def legal(self) -> list[str]:
        """The agent's moves."""
        return rules.squares(rules.moves(self.position))

    def agent_plays(self, square: str) -> None:
        """A legal move, and all that follows until the agent is to move again or the game is over."""
        self.log.clear()
        self.played += 1
        self._take(rules.bit(square))
        self._reply()

    def _reply(self) -> None:
        while not self.over:
            if not rules.moves(self.position):
                self.log.append(f"{self._mover()} cannot move and passes")
                self._pass_on(self.position.passed)
            elif self.black_to_move == self.agent_is_black:
                return
            else:
                move = choose(self._opponent, self.position, self._rng)
                self.log.append(f"{self._mover()} plays {rules.square(move)}")
                self._take(move)

    def _take(self, move: int) -> None:
        self._pass_on(rules.play(self.position, move))

    def _pass_on(self, position: Position) -> None:
        self.position = position
        self.black_to_move = not self.black_to_move

    def _mover(self) -> str:
        return "you" if self.black_to_move == self.agent_is_black else "your opponent"

    def describe(self) -> str:
        """What the agent is told after each move."""
        mine, theirs = self.discs
        ending = "The game is over." if self.over else f"Your legal moves: {', '.join(self.legal)}"
        happened = "".join(f"{line[0].upper()}{line[1:]}.\n" for line in self.log)
        return f"{happened}{rules.drawn(*self.boards)}\nYou have {mine} discs, your opponent {theirs}.\n{ending}"


@world("othello")
class Othello:
    """Full games of Othello against seeded opponents of several strengths."""

    content = "othello 1"

    def __init__(self, settings: OthelloSettings) -> None:
        self._settings = settings

    def tasks(self) -> Iterator[Task]:
        opponents = self._settings.opponents
        for seed, task in seed_tasks(self._settings, "othello"):
            opponent = opponents[seed % len(opponents)]
            inputs: dict[str, Json] = {**task.inputs, "opponent": opponent.value, "opening": self._settings.opening}
            yield Task(task.id, task.split, inputs, kind=opponent.value)

    def start(self, task: Task) -> Game:
        """The game of a task is the same in every session, so that policies meet it on equal terms."""
        opening = task.inputs["opening"]
        assert isinstance(opening, int)
        opponent = Opponent(task.inputs["opponent"])
        return Game(seed_from("othello", seed_of(task)), opponent, opening)

    def brief(self, state: Game) -> str:
        colour, mark = ("Black", "X") if state.agent_is_black else ("White", "O")
        return _RULES.format(colour=colour, mark=mark, situation=state.describe())

    @tool
    def play(self, state: Game, square: str) -> ToolResult:
        """Put a disc on a square. Gives your opponent's reply, the board and your next legal moves.

        Args:
            square: column and row, such as d3
        """
        wanted = square.strip().lower()
        if wanted not in state.legal:
            text = f"{square} is not a legal move. Your legal moves: {', '.join(state.legal) or 'none'}"
            return ToolResult(text, ToolFault.INVALID_ARGUMENTS)
        state.agent_plays(wanted)
        return ToolResult(state.describe(), ends=state.over)

    def judge(self, state: Game) -> Verdict:
        mine, theirs = state.discs
        facts: dict[str, Json] = {
            "discs": mine,
            "opponent_discs": theirs,
            "moves": state.played,
            "finished": state.over,
            "colour": "black" if state.agent_is_black else "white",
        }
        if not state.over:
            return Verdict(False, 0.0, f"unfinished: the game was left after {state.played} of your moves", facts)
        share = mine / (mine + theirs)
        reason = "won" if mine > theirs else "draw" if mine == theirs else "lost"
        return Verdict(mine > theirs, share, f"{reason}: {mine} discs to {theirs}", facts)
