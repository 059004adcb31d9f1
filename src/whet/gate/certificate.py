"""Certifies a champion before it is published, on tasks that nobody selected on; and what a certificate says.

A pure state machine, as the rules are. It goes through the tasks in an order drawn by the seed, and stops as soon as
the gain is proven, cannot be proven any more, or the tasks are used up. Stopping whenever one likes is allowed by the
way evidence is counted (`betting`); asking again is charged for (`alpha`).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from random import Random

import msgspec

from whet.core import ConfigError, InputError, Task, fingerprint, seed_from
from whet.gate.betting import STAKES, Bets
from whet.gate.evidence import Arm, Ask, Evidence, PlannedPlay
from whet.gate.metrics import select_gate_score
from whet.gate.statistics import Interval

_LARGEST = 690.0
"""Natural log of the largest evidence that is written down; beyond, a number would not fit."""


class Claim(msgspec.Struct, frozen=True):
    """What is to be certified: that `candidate` is better than `incumbent` on tasks like these."""

    candidate: str
    """A policy's fingerprint."""
    incumbent: str
    """The fingerprint of the policy that it is compared with."""
    world: str
    world_fingerprint: str
    split: str
    replay: str
    """The command that plays this comparison again."""
    metric: str = "hard"
    mix: float = 0.5
    seed: int = 0
    samples: int = 4
    """Plays of each task with each policy."""
    first_sample: int = 0
    """Samples count from here."""

    def key(self, tasks: Sequence[Task]) -> str:
        """Names the attempt: the same claim on the same tasks and samples is the same attempt."""
        return fingerprint("attempt", msgspec.to_builtins(self) | {"replay": ""}, fingerprint_of(tasks))


class Certificate(msgspec.Struct, frozen=True, kw_only=True):
    """Proof of a gain. It is written next to what it is about, so that anyone can play it again."""

    format: int = 1
    claim: Claim
    tasks: str
    """The tasks' fingerprint, by content."""
    given: int
    """Tasks there were."""
    played: int
    """Tasks that were played until it was decided."""
    rollouts: int
    fixed: int
    broke: int
    both: int
    neither: int
    e_value: float
    """How many times over chance the evidence is; a gain is certified from 1 / `alpha` on."""
    alpha: float
    """The chance of this certificate if there is no gain, at most: what this attempt was granted."""
    campaign_alpha: float
    """The same for all attempts together."""
    attempt: int
    """Attempts on this campaign's alpha so far, this one included."""
    gain: float
    """In the metric of the claim."""
    interval: Interval
    """Each end is wrong with a chance of `alpha` at most."""

    def __post_init__(self) -> None:
        numbers = (self.e_value, self.alpha, self.campaign_alpha, self.gain, self.interval.low, self.interval.high)
        if not all(math.isfinite(number) for number in numbers):
            raise ValueError("a certificate holds finite numbers only")
        if not (0.0 < self.alpha <= self.campaign_alpha < 1.0 and self.e_value * self.alpha >= 1.0 - 1e-9):
            raise ValueError("the evidence of this certificate does not reach its alpha")


class Finding(msgspec.Struct, frozen=True):
    """How an attempt ended."""

    certificate: Certificate | None
    reason: str
    """One plain sentence."""
    played: int
    rollouts: int
    e_value: float
    gain: float
    interval: Interval


class Certifier:
    """Asks for plays until the claim is certified or cannot be. `alpha` is what the ledger granted this attempt."""

    def __init__(
        self,
        claim: Claim,
        tasks: Sequence[Task],
        alpha: float,
        *,
        campaign_alpha: float,
        attempt: int = 1,
        chunk: int = 8,
    ) -> None:
        _check(claim, tasks, alpha, campaign_alpha, chunk)
        self._claim = claim
        self._tasks = fingerprint_of(tasks)
        # Not the order in which tasks are listed: that may follow their kind or how hard they are.
        self._order = sorted(task.id for task in tasks)
        Random(seed_from("certificate", claim.seed)).shuffle(self._order)
        self._alpha, self._campaign_alpha, self._attempt = alpha, campaign_alpha, attempt
        self._chunk = chunk
        self._bets: Bets = Bets()
        self._pairs: list[tuple[float, float]] = []
        self._finding: Finding | None = None

    def next(self, evidence: Evidence) -> Ask | Finding:
        while self._finding is None:
            done = len(self._pairs)
            proven = self._bets.against(self._alpha)
            if proven or done == len(self._order) or not self._can_still_be():
                self._finding = self._find(proven)
                break
            batch = self._order[done : done + self._chunk]
            missing = evidence.missing(self._plays(batch))
            if missing:
                return Ask(missing)
            added = [self._pair(task, evidence) for task in batch]
            self._pairs += added
            self._bets = self._bets.more(candidate - incumbent for candidate, incumbent in added)
        return self._finding

    def _plays(self, batch: Sequence[str]) -> list[PlannedPlay]:
        samples = range(self._claim.first_sample, self._claim.first_sample + self._claim.samples)
        return [
            PlannedPlay(task, arm, sample)
            for task in batch
            for sample in samples
            for arm in (Arm.INCUMBENT, Arm.CANDIDATE)
        ]

    def _pair(self, task: str, evidence: Evidence) -> tuple[float, float]:
        return self._mean(task, Arm.CANDIDATE, evidence), self._mean(task, Arm.INCUMBENT, evidence)

    def _mean(self, task: str, arm: Arm, evidence: Evidence) -> float:
        first, claim = self._claim.first_sample, self._claim
        outcomes = [evidence.of(arm, [task], sample)[0] for sample in range(first, first + claim.samples)]
        scores = [select_gate_score(hard, soft, claim.metric, claim.mix) for hard, soft in outcomes]
        return min(1.0, math.fsum(scores) / len(scores))

    def _can_still_be(self) -> bool:
        left = len(self._order) - len(self._pairs)
        return self._bets.log_capital() + left * math.log1p(max(STAKES)) >= -math.log(self._alpha)

    def _find(self, proven: bool) -> Finding:
        played = len(self._pairs)
        rollouts = 2 * played * self._claim.samples
        gain = math.fsum(candidate - incumbent for candidate, incumbent in self._pairs) / played if played else 0.0
        interval = self._bets.interval(self._alpha)
        e_value = math.exp(min(_LARGEST, self._bets.log_capital()))
        certificate = self._certificate(rollouts, e_value, gain, interval) if proven else None
        reason = _reason(proven, gain, interval, played, e_value, self._alpha)
        return Finding(certificate, reason, played, rollouts, e_value, gain, interval)

    def _certificate(self, rollouts: int, e_value: float, gain: float, interval: Interval) -> Certificate:
        fixed = sum(candidate > incumbent for candidate, incumbent in self._pairs)
        broke = sum(candidate < incumbent for candidate, incumbent in self._pairs)
        both = sum(candidate == incumbent and candidate >= 0.5 for candidate, incumbent in self._pairs)
        return Certificate(
            claim=self._claim,
            tasks=self._tasks,
            given=len(self._order),
            played=len(self._pairs),
            rollouts=rollouts,
            fixed=fixed,
            broke=broke,
            both=both,
            neither=len(self._pairs) - fixed - broke - both,
            e_value=e_value,
            alpha=self._alpha,
            campaign_alpha=self._campaign_alpha,
            attempt=self._attempt,
            gain=gain,
            interval=interval,
        )


def fingerprint_of(tasks: Sequence[Task]) -> str:
    """By content, whatever the order."""
    return fingerprint("tasks", sorted(task.fingerprint for task in tasks))


def write_certificate(certificate: Certificate) -> str:
    return msgspec.json.format(msgspec.json.encode(certificate), indent=1).decode() + "\n"


def read_certificate(text: str) -> Certificate:
    try:
        return msgspec.json.decode(text, type=Certificate)
    except msgspec.MsgspecError as problem:
        raise InputError(f"this is no certificate: {problem}") from problem


def _reason(proven: bool, gain: float, interval: Interval, played: int, e_value: float, alpha: float) -> str:
    if not played:
        return f"there are too few tasks to show any gain at alpha {alpha:.2g}"
    measured = (
        f"{100 * gain:+.1f} points on {played} tasks, between {100 * interval.low:+.1f} and {100 * interval.high:+.1f}"
    )
    if proven:
        return f"a gain is certified: {measured} (evidence {e_value:.3g}, {1 / alpha:.3g} asked for)"
    return f"a gain is not shown: {measured} (evidence {e_value:.3g}, {1 / alpha:.3g} asked for)"


def _check(claim: Claim, tasks: Sequence[Task], alpha: float, campaign_alpha: float, chunk: int) -> None:
    select_gate_score(0.0, 0.0, claim.metric, claim.mix)
    if not tasks:
        raise ConfigError("there are no tasks to certify on", hint="Give the world a confirm or a test split.")
    if len({task.id for task in tasks}) < len(tasks):
        raise InputError("a task counts once: two of the tasks to certify on have the same id")
    if not 0.0 < alpha <= campaign_alpha < 1.0:
        raise InputError(f"an attempt is granted part of the campaign's alpha {campaign_alpha:g}, not {alpha:g}")
    if chunk < 1 or claim.samples < 1 or claim.first_sample < 0:
        raise InputError("a certificate needs at least one task at once and one play of each")
