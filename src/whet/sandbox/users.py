"""User ids that belong to nobody, one for each sandbox at a time. Only root can hand them out."""

from __future__ import annotations

import os
import secrets
import sys
from pathlib import Path

from whet.sandbox.outcomes import SandboxFault

_SLOTS = 1 << 12
_BEYOND_PEOPLE = 1 << 31
"""Ids from here on are given to no account and no container by any distribution."""


class Users:
    """A range drawn at random, so that two whets on one machine do not share an id. Others than root get None."""

    def __init__(self) -> None:
        is_root = sys.platform == "linux" and os.geteuid() == 0
        first = _first() if is_root else None
        self._free = [] if first is None else list(range(first + _SLOTS - 1, first - 1, -1))
        self._has_any = first is not None

    def take(self) -> int | None:
        if not self._has_any:
            return None
        if not self._free:
            raise SandboxFault(f"more than {_SLOTS} sandboxes are open at once")
        return self._free.pop()

    def give_back(self, user: int | None) -> None:
        if user is not None:
            self._free.append(user)


def _first() -> int | None:
    """In a container only some ids exist: then the last of those, if they are enough to leave accounts alone."""
    inside, _, count = (int(word) for word in Path("/proc/self/uid_map").read_text().split()[:3])
    if inside + count >= 0xFFFFFFFF:
        return _BEYOND_PEOPLE + secrets.randbits(18) * _SLOTS
    return inside + count - 2 * _SLOTS if count >= 8 * _SLOTS else None
