"""Which examples make an update, and at which rate: all of it follows from the order and the update's number. Pure."""

from __future__ import annotations

import math
import random

import msgspec

from whet.core import seed_from
from whet.learners.adapter.orders import Example, TrainingOrder

_WARMUP = 0.1
"""Share of the updates during which the rate goes up."""


class Plan(msgspec.Struct, frozen=True):
    learned: tuple[Example, ...]
    held_out: tuple[Example, ...]
    left_out: int
    steps: int
    each_epoch: int


def plan_of(order: TrainingOrder) -> Plan:
    settings = order.settings
    fitting = [each for each in order.examples if each.length <= settings.max_length]
    held = _held_out({each.task for each in fitting}, settings.held_out, order.seed)
    learned = tuple(each for each in fitting if each.task not in held)
    each_epoch = max(1, -(-len(learned) // settings.batch_size))
    return Plan(
        learned,
        tuple(each for each in fitting if each.task in held),
        len(order.examples) - len(fitting),
        settings.steps or settings.epochs * each_epoch,
        each_epoch,
    )


def _held_out(tasks: set[str], share: float, seed: int) -> set[str]:
    """Whole tasks, so that no other try at one gives its answer away; at least one is left to learn from."""
    drawn = sorted(tasks, key=lambda task: seed_from(task, "held out", seed))
    return set(drawn[: min(round(share * len(drawn)), len(drawn) - 1)])


def batch_of(plan: Plan, step: int, size: int, seed: int) -> list[Example]:
    """The examples of update `step`, counted from 0."""
    epoch, place = divmod(step, plan.each_epoch)
    drawn = list(plan.learned)
    random.Random(seed_from("epoch", epoch, seed)).shuffle(drawn)
    return drawn[place * size : (place + 1) * size]


def rate_at(step: int, steps: int, peak: float) -> float:
    """Up over the first tenth, then down along a cosine to 0. Steps count from 0."""
    warm = max(1, round(_WARMUP * steps))
    if step < warm:
        return peak * (step + 1) / warm
    return peak * 0.5 * (1 + math.cos(math.pi * (step - warm) / max(1, steps - warm)))
