"""When a call is late enough to be sent a second time."""

from __future__ import annotations

from collections import deque
from statistics import median

from whet.core import Purpose

_ENOUGH = 8
_REMEMBERED = 64
_LATE = 3.0
"""Times the median of its purpose."""
_LEAST = 0.05
"""Seconds; below that a second sending cannot pay."""
_MOST_SHARE = 0.1
"""Of all calls that may be sent twice: an endpoint that is slow throughout must not be asked twice for everything."""


class Lateness:
    """Knows what is usual for each purpose, and keeps second sendings few."""

    def __init__(self) -> None:
        self._seen: dict[Purpose, deque[float]] = {}
        self._patience: dict[Purpose, float] = {}
        self._calls = 0
        self._second = 0

    def answered(self, purpose: Purpose, seconds: float) -> None:
        seen = self._seen.setdefault(purpose, deque(maxlen=_REMEMBERED))
        seen.append(seconds)
        self._calls += 1
        if (len(seen) >= _ENOUGH and self._calls % _ENOUGH == 0) or len(seen) == _ENOUGH:
            self._patience[purpose] = max(_LEAST, _LATE * median(seen))

    def patience(self, purpose: Purpose) -> float | None:
        """Seconds to wait before a second sending; None while too little is known."""
        return self._patience.get(purpose)

    def allow_second(self) -> bool:
        if self._second >= 1 + _MOST_SHARE * self._calls:
            return False
        self._second += 1
        return True
