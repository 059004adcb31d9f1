"""What may still be asked of tasks that were asked before: one alpha for all attempts of a campaign."""

from __future__ import annotations

import math

import msgspec

from whet.core import InputError

CAMPAIGN_ALPHA = 0.05


class Attempt(msgspec.Struct, frozen=True):
    key: str
    """Names all that the outcome follows from: policies, tasks, seed, samples."""
    alpha: float
    certified: bool | None = None
    """None: it has not ended."""


class AlphaLedger(msgspec.Struct, frozen=True):
    """Every attempt may use half of what is left, so however many there are, they use less than `total` together.

    It is charged for attempts, not for tasks: other tasks, fewer of them, another order or fresh plays are attempts
    like any other. What an attempt was granted stays spent whatever comes of it.
    """

    total: float = CAMPAIGN_ALPHA
    attempts: tuple[Attempt, ...] = ()

    def __post_init__(self) -> None:
        if not 0.0 < self.total < 1.0:
            raise ValueError(f"an alpha lies between 0 and 1, not at {self.total}")
        keys = [attempt.key for attempt in self.attempts]
        if len(set(keys)) < len(keys):
            raise ValueError("an attempt is charged once")
        spent = math.fsum(attempt.alpha for attempt in self.attempts)
        if any(not attempt.alpha > 0.0 for attempt in self.attempts) or spent > self.total:
            raise ValueError(f"the attempts use {spent:g} of an alpha of {self.total:g}")

    @property
    def left(self) -> float:
        return self.total - math.fsum(attempt.alpha for attempt in self.attempts)

    def open(self, key: str) -> tuple[AlphaLedger, float]:
        """The alpha for this attempt. One that was cut off goes on with its own; one that has ended is not repeated."""
        known = self._find(key)
        if known is None:
            alpha = self.left / 2
            if alpha < self.total * 1e-9:
                raise InputError("these tasks were asked too often to show anything more", hint="Bring new tasks.")
            return AlphaLedger(self.total, (*self.attempts, Attempt(key, alpha))), alpha
        if known.certified is not None:
            raise InputError(
                "this comparison was made already, and "
                + ("it was certified" if known.certified else "it showed no gain"),
                hint="Playing it again would be another attempt: give it other samples.",
            )
        return self, known.alpha

    def close(self, key: str, certified: bool) -> AlphaLedger:
        known = self._find(key)
        if known is None:
            raise InputError("an attempt is opened before it is closed")
        if known.certified not in (None, certified):
            raise InputError("an attempt that has ended does not change its outcome")
        ended = Attempt(key, known.alpha, certified)
        return AlphaLedger(self.total, tuple(ended if one.key == key else one for one in self.attempts))

    def number_of(self, key: str) -> int:
        """Which attempt this is, counted from 1."""
        return [attempt.key for attempt in self.attempts].index(key) + 1

    def _find(self, key: str) -> Attempt | None:
        return next((attempt for attempt in self.attempts if attempt.key == key), None)
