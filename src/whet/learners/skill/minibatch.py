"""Cuts arriving trajectories into minibatches that do not depend on the order of arrival."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Sequence
from random import Random

import msgspec

from whet.core import Source, Trajectory, seed_from


class Minibatch(msgspec.Struct, frozen=True):
    source: Source
    number: int
    """Counted from 0 among those of its source."""
    trajectories: tuple[Trajectory, ...]


async def minibatches(evidence: Sequence[Awaitable[Trajectory]], size: int, step: bytes) -> AsyncIterator[Minibatch]:
    """Failures and successes apart, in an order drawn for this step.

    A minibatch is given out as soon as it is certain what is in it: when all before its last member have arrived.
    """
    order = list(range(len(evidence)))
    Random(seed_from(step, "minibatches")).shuffle(order)
    gathered: dict[Source, list[Trajectory]] = {Source.FAILURE: [], Source.SUCCESS: []}
    numbers = dict.fromkeys(gathered, 0)

    def cut(source: Source) -> Minibatch:
        batch = Minibatch(source, numbers[source], tuple(gathered[source]))
        numbers[source] += 1
        gathered[source] = []
        return batch

    for position in order:
        trajectory = await evidence[position]
        source = Source.SUCCESS if trajectory.hard else Source.FAILURE
        gathered[source].append(trajectory)
        if len(gathered[source]) == size:
            yield cut(source)
    for source in gathered:
        if gathered[source]:
            yield cut(source)
