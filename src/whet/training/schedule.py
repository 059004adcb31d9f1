"""Which tasks each step plays. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from random import Random

import msgspec

from whet.core import Step, Task, content_key, seed_from


class PlannedStep(msgspec.Struct, frozen=True):
    step: Step
    tasks: tuple[Task, ...]


def plan(tasks: Sequence[Task], epochs: int, batch_size: int, seed: int) -> list[PlannedStep]:
    """Every epoch goes through all tasks, in an order of its own, batch by batch."""
    per_epoch = -(-len(tasks) // batch_size)
    steps: list[PlannedStep] = []
    for epoch in range(1, epochs + 1):
        order = list(tasks)
        Random(seed_from("epoch", seed, epoch)).shuffle(order)
        for start in range(0, len(order), batch_size):
            number = len(steps) + 1
            step = Step(number, per_epoch * epochs, epoch, content_key("step", seed, number))
            steps.append(PlannedStep(step, tuple(order[start : start + batch_size])))
    return steps
