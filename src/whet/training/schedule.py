"""Which tasks each step plays. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from random import Random

import msgspec

from whet.core import Step, Task, content_key, seed_from


class PlannedStep(msgspec.Struct, frozen=True):
    step: Step
    tasks: tuple[Task, ...]

    ends_epoch: bool


def plan(tasks: Sequence[Task], epochs: int, batch_size: int, seed: int, accumulation: int = 1) -> list[PlannedStep]:
    """Every epoch goes through all tasks, in an order of its own; a step takes `accumulation` batches together.

    What a step pools is weighted by task, so a smaller last batch counts for what it holds.
    """
    size = batch_size * accumulation
    per_epoch = -(-len(tasks) // size)
    steps: list[PlannedStep] = []
    for epoch in range(1, epochs + 1):
        order = list(tasks)
        Random(seed_from("epoch", seed, epoch)).shuffle(order)
        for start in range(0, len(order), size):
            number = len(steps) + 1
            step = Step(number, per_epoch * epochs, epoch, content_key("step", seed, number))
            batch = tuple(order[start : start + size])
            steps.append(PlannedStep(step, batch, ends_epoch=start + size >= len(order)))
    return steps
