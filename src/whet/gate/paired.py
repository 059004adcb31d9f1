"""The rule that tests: candidate and incumbent task by task, in rounds, until the answer is clear."""

from __future__ import annotations

from collections.abc import Sequence
from math import ceil, log2, sqrt
from random import Random

from whet.core import ConfigError, Ruling, seed_from
from whet.gate.evidence import Arm, Ask, Evidence, PlannedPlay
from whet.gate.metrics import select_gate_score
from whet.gate.mirrors import Look, Mirrors

LOOKS_A_PASS = 3
"""How often a pass is looked at: more looks stop hopeless candidates earlier, but each waits for its slowest play."""

_UNIT = 10_000
"""Scores are counted in ten-thousandths, so that sums are whole numbers and depend on no order."""

_EARLY = 0.04
_SLACK = 1e-9

_CHANGE = 0.1
"""Tasks that always said the same rest, once fewer than this share of their like still say something new."""


class _Standing:
    """What is known of one task."""

    __slots__ = ("candidate", "first", "incumbent", "pairs", "settled", "unanimous")

    def __init__(self) -> None:
        self.candidate = self.incumbent = self.pairs = 0
        self.first: int | None = None
        self.unanimous = True
        self.settled = False

    def add(self, candidate: int, incumbent: int) -> None:
        if self.first is None:
            self.first = candidate
        self.unanimous = self.unanimous and candidate == self.first and incumbent == self.first
        self.candidate += candidate
        self.incumbent += incumbent
        self.pairs += 1

    @property
    def difference(self) -> int:
        return self.candidate - self.incumbent


class PairedRule:
    """Accept if so good a comparison would be rare for a candidate that changes nothing.

    In each round every task that is not settled is played once more with both policies, under one sample number, so
    that both meet the same chance. Samples count from `first_sample`: those before it are what got the incumbent
    chosen, and are not looked at. The accepted candidate is the new best.
    """

    def __init__(
        self,
        tasks: Sequence[str],
        metric: str,
        mix: float,
        *,
        level: float,
        max_passes: int,
        seed: int,
        chunk: int,
        first_sample: int,
    ) -> None:
        _check(len(tasks), level, max_passes, first_sample)
        self._tasks = tuple(tasks)
        self._metric, self._mix = metric, mix
        self._level, self._max_passes = level, max_passes
        self._chunk = chunk or ceil(len(tasks) / LOOKS_A_PASS)
        self._first_sample = first_sample
        self._standings = [_Standing() for _ in tasks]
        self._mirrors = Mirrors(len(tasks), seed)
        self._order = list(range(len(tasks)))
        Random(seed_from("gate order", seed)).shuffle(self._order)
        self._round = 0
        self._of_round = list(self._order)
        self._done = 0
        self._alike = len(tasks)
        self._ruling: Ruling | None = None

    def next(self, evidence: Evidence) -> Ask | Ruling:
        while self._ruling is None:
            batch = self._of_round[self._done : self._done + self._chunk]
            missing = evidence.missing(self._plays(batch))
            if missing:
                return Ask(missing)
            self._take(batch, evidence)
            self._look()
        return self._ruling

    def _plays(self, batch: Sequence[int]) -> list[PlannedPlay]:
        sample = self._first_sample + self._round
        return [PlannedPlay(self._tasks[task], arm, sample) for task in batch for arm in (Arm.INCUMBENT, Arm.CANDIDATE)]

    def _take(self, batch: Sequence[int], evidence: Evidence) -> None:
        sample = self._first_sample + self._round
        names = [self._tasks[task] for task in batch]
        candidates = evidence.of(Arm.CANDIDATE, names, sample)
        incumbents = evidence.of(Arm.INCUMBENT, names, sample)
        for task, candidate, incumbent in zip(batch, candidates, incumbents, strict=True):
            ours, theirs = self._score(candidate), self._score(incumbent)
            self._standings[task].add(ours, theirs)
            self._mirrors.add(task, ours - theirs)
        self._done += len(batch)

    def _look(self) -> None:
        played = self._round + self._done / len(self._of_round)
        if self._done == len(self._of_round):
            self._end_round()
        last = self._round == self._max_passes or not self._of_round
        share = 1.0 if last else played / self._max_passes
        look = self._mirrors.look(self._level * _spent_by(share, self._max_passes), _given_up_below(share))
        if look.accepted or look.hopeless or last:
            self._ruling = self._rule(look)

    def _end_round(self) -> None:
        self._round += 1
        self._done = 0
        alike = [self._standings[task] for task in self._of_round if self._standings[task].unanimous]
        changed = self._alike - len(alike)
        # After one round nothing has been said twice, so nothing is known of how often it changes.
        if self._round > 1 and (changed + 1) / (self._alike + 2) < _CHANGE:
            for standing in alike:
                standing.settled = True
        self._alike = len(alike)
        self._of_round = [task for task in self._order if not self._standings[task].settled]

    def _score(self, outcome: tuple[float, float]) -> int:
        return round(_UNIT * select_gate_score(outcome[0], outcome[1], self._metric, self._mix))

    def _rule(self, look: Look) -> Ruling:
        played = [standing for standing in self._standings if standing.pairs]
        candidate = sum(one.candidate / one.pairs for one in played) / len(played) / _UNIT
        incumbent = sum(one.incumbent / one.pairs for one in played) / len(played) / _UNIT
        gain = (candidate - incumbent) * _trust(sum(one.difference for one in played), self._mirrors.deviation)
        if look.accepted:
            # The scores of what is kept are told to others, so they promise no more than the gain does.
            middle = (candidate + incumbent) / 2
            candidate, incumbent = middle + gain / 2, middle - gain / 2
        even = [one for one in played if one.difference == 0]
        named = list(zip(self._tasks, self._standings, strict=True))
        fixed = tuple(task for task, one in named if one.pairs and one.difference > 0)
        broke = tuple(task for task, one in named if one.pairs and one.difference < 0)
        both = sum(2 * one.candidate >= one.pairs * _UNIT for one in even)
        rollouts = 2 * sum(one.pairs for one in played)
        measured = gain if look.accepted else candidate - incumbent
        return Ruling(
            accepted=look.accepted,
            new_best=look.accepted,
            candidate=candidate,
            incumbent=incumbent,
            best=incumbent,
            reason=_reason(look, measured, len(fixed), len(broke), self._level),
            fixed=len(fixed),
            broke=len(broke),
            fixed_tasks=fixed,
            broke_tasks=broke,
            both=both,
            neither=len(even) - both,
            rollouts=rollouts,
            saved=2 * len(self._tasks) * self._max_passes - rollouts,
            gain=gain,
            p=look.p,
            level=self._level,
        )


def _spent_by(share: float, max_passes: int) -> float:
    """How much of the level may be used up when this share of the plan is played.

    Nearly all is kept for the end, where a small gain is seen best; a little is there after one pass, for large ones.
    """
    return _EARLY + (1.0 - _EARLY) * share**6 if share * max_passes > 1.0 - _SLACK else 0.0


def _given_up_below(share: float) -> float:
    """The total, in its standard deviations, below which going on is not worth its plays.

    A straight line for the total itself, as sequential tests have it; `bench/gate.py` shows what it costs and misses.
    """
    return (1.75 * share - 0.45) / sqrt(share)


def _trust(total: float, deviation: float) -> float:
    """How much of a measured gain to expect again: most of it where it stands out of chance, nothing where it does not.

    What is accepted was lucky more often than not, so the plain difference promises too much.
    """
    return max(0.0, 1.0 - 2.0 * (deviation / total) ** 2) if total else 0.0


def _check(tasks: int, level: float, max_passes: int, first_sample: int) -> None:
    if not 0.0 < level < 1.0:
        raise ConfigError(f"gate.level is {level}", hint="It lies between 0 and 1, as 0.025.")
    if max_passes < 1:
        raise ConfigError(f"gate.max_passes is {max_passes}", hint="It is at least 1.")
    if first_sample < 0:
        raise ConfigError(f"samples count from 0, not from {first_sample}")
    needed = ceil(-log2(level))
    if tasks < needed:
        raise ConfigError(
            f"{tasks} selection tasks can show nothing at gate.level {level}",
            hint=f"The paired rule needs {needed} of them at least, and sees more with 50; or set gate.rule.",
        )


def _reason(look: Look, gain: float, fixed: int, broke: int, level: float) -> str:
    tasks = f"{fixed} tasks better and {broke} worse"
    if look.accepted:
        return f"it is better by {100 * gain:.1f} points, {tasks} (p {look.p:.2g}, at most {level:g} asked for)"
    if look.hopeless:
        return f"it is at {100 * gain:+.1f} points, {tasks}: a gain is too unlikely to play on for"
    return f"a gain is not shown: {100 * gain:+.1f} points, {tasks} (p {look.p:.2g}, at most {level:g} asked for)"
