"""Mirrored comparisons: what the same plays would have said, had the two policies been swapped in some of the tasks.

If a candidate changes nothing, which of the two policies a task's results belong to is a coin toss for each task. So
the comparison as it happened is one of many equally likely ones, and the share of them that would have been accepted
is the chance of a false acceptance: exactly, at any number of tasks, however the looks were placed, as long as what is
played next depends on nothing that a swap changes. Swapping whole tasks, not single plays, keeps this right where an
agent says the same each time it is asked, and makes it a statement about tasks like these, not these alone.

All swaps of n tasks are 2**n. The ones used here are a subgroup of them, closed under combination, which is what
exactness needs; it is drawn by the seed, and it is all of them where they are few.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from functools import lru_cache
from math import isqrt
from random import Random
from typing import NamedTuple

from whet.core import seed_from

_BITS = 11
_LANE = 64
_ZERO = 1 << 62  # a lane holds a signed sum as its distance from here, so that lanes never borrow from each other


class Look(NamedTuple):
    accepted: bool
    hopeless: bool
    p: float


class Mirrors:
    """The comparison (the mirror that swaps nothing) among its mirrors, look by look."""

    def __init__(self, tasks: int, seed: int) -> None:
        self._swaps = swaps(tasks, seed)
        self._count = 1 << min(tasks, _BITS)
        self._lanes = _every_lane(self._count) * _ZERO
        self._going: Sequence[int] = range(self._count)
        self._accepted = 0
        self._by_task = [0] * tasks
        self._total = 0
        self._squares = 0

    def add(self, task: int, difference: int) -> None:
        before = self._by_task[task]
        after = self._by_task[task] = before + difference
        self._squares += after**2 - before**2
        change = _counted(after) - _counted(before)
        self._total += change
        self._lanes += change * self._swaps[task]

    @property
    def deviation(self) -> float:
        """The standard deviation of the total over all swaps."""
        return self._squares**0.5

    def look(self, spendable: float, bar: float) -> Look:
        """Accept, if at most `spendable` of all mirrors were or now would be accepted with this one among them.

        Mirrors whose total lies below `bar` deviations are given up, as this one is.
        """
        # A lane holds what the swapped tasks add up to, so its mirror's total is the real one less twice that.
        losses = [lane - _ZERO for lane in struct.unpack(f"<{self._count}Q", self._packed())]
        going = self._going
        as_good = sum(losses[mirror] <= 0 for mirror in going)
        allowed = int(spendable * self._count + 1e-9) - self._accepted
        p = (self._accepted + as_good) / self._count
        if as_good <= allowed:
            return Look(True, False, p)
        if allowed > 0:
            limit = sorted(losses[mirror] for mirror in going)[allowed]
            left = [mirror for mirror in going if losses[mirror] >= limit]
            self._accepted += len(going) - len(left)
            going = left
        floor = bar * self.deviation
        self._going = [mirror for mirror in going if self._total - 2 * losses[mirror] >= floor]
        return Look(False, self._total < floor, p)

    def _packed(self) -> bytes:
        return self._lanes.to_bytes(self._count * _LANE // 8, "little")


def _counted(difference: int) -> int:
    """A hundredth more for one play, less for further ones: of equal totals, the one that more tasks share in is ahead.

    Without it ties are so many that a good part of the level could not be spent.
    """
    root = isqrt(abs(difference))
    return difference + (root if difference > 0 else -root)


@lru_cache(maxsize=8)
def swaps(tasks: int, seed: int) -> tuple[int, ...]:
    """For each task, a packed row over all mirrors: 1 in the lanes of those that swap it."""
    bits = min(tasks, _BITS)
    if tasks == bits:
        vectors = [1 << bit for bit in range(bits)]
    else:
        random = Random(seed_from("mirrors", seed, tasks))
        every = range(1, 1 << bits)
        vectors = random.sample(every, tasks) if tasks <= len(every) else random.choices(every, k=tasks)
    return tuple(_row(vector, bits) for vector in vectors)


def _row(vector: int, bits: int) -> int:
    """1 in the lane of every mirror that has an odd number of bits in common with `vector`; made by doubling."""
    row = 0
    for bit in range(bits):
        half = 1 << bit
        upper = row ^ _every_lane(half) if vector >> bit & 1 else row
        row |= upper << (half * _LANE)
    return row


@lru_cache(maxsize=16)
def _every_lane(mirrors: int) -> int:
    return int.from_bytes(struct.pack(f"<{mirrors}Q", *[1] * mirrors), "little")
