"""What rules ask for and what they are told: plays by task, arm and sample."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from enum import StrEnum
from typing import NamedTuple, Protocol

import msgspec

from whet.core import Ruling


class Arm(StrEnum):
    CANDIDATE = "candidate"
    INCUMBENT = "incumbent"


class PlannedPlay(NamedTuple):
    task: str
    arm: Arm
    sample: int


class Ask(msgspec.Struct, frozen=True):
    """Plays that the rule needs before it can say more; they may be made all at once."""

    plays: tuple[PlannedPlay, ...]


class Evidence:
    """Outcomes by task, arm and sample. It may hold results from earlier: those are not asked for again."""

    def __init__(self) -> None:
        self._outcomes: dict[tuple[str, Arm, int], tuple[float, float]] = {}
        self.added = 0

    def add(self, task: str, arm: str, sample: int, *, hard: float, soft: float) -> None:
        if not (0.0 <= hard <= 1.0 and 0.0 <= soft <= 1.0):
            raise ValueError(f"outcomes lie between 0 and 1; task {task} gave hard {hard} and soft {soft}")
        self._outcomes[task, Arm(arm), sample] = (float(hard), float(soft))
        self.added += 1

    def get(self, task: str, arm: Arm, sample: int) -> tuple[float, float] | None:
        return self._outcomes.get((task, arm, sample))

    def of(self, arm: Arm, tasks: Sequence[str], sample: int = 0) -> list[tuple[float, float]]:
        """One sample of each, in the order of `tasks`; all of them must be there."""
        return [self._outcomes[task, arm, sample] for task in tasks]

    def missing(self, plays: Iterable[PlannedPlay]) -> tuple[PlannedPlay, ...]:
        return tuple(play for play in plays if play not in self._outcomes)


class Rule(Protocol):
    def next(self, evidence: Evidence) -> Ask | Ruling: ...
