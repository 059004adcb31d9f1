"""Learning LoRA weights from examples: the same order gives the same weights, also when it was interrupted on the way.

Which examples make an update, and at which rate, follows from the number of the update and the seed alone, so a
checkpoint is a number and the weights. Knows nothing of processes; what it has to tell goes to `tell`.
"""

from __future__ import annotations

import math
import random
from collections.abc import Sequence

import msgspec
import torch
import torch.nn.functional as F
from torch import Tensor

from whet.core import seed_from
from whet.learners.adapter.decoder import Decoder
from whet.learners.adapter.lora import Lora
from whet.learners.adapter.orders import Example, TrainingOrder
from whet.learners.adapter.rows import Row, rows_of

_WARMUP = 0.1
"""Share of the updates during which the rate goes up."""


class Place(msgspec.Struct, frozen=True):
    """How far a training is: with the weights, all that is needed to go on."""

    step: int = 0
    tokens: int = 0
    evaluated: int = 0
    first_loss: float = math.nan
    last_loss: float = math.nan
    held_out_before: float | None = None
    best: float | None = None
    best_step: int = 0
    looks: int = 0
    """Looks at the held-out examples since the best."""


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


class Trainer:
    def __init__(self, order: TrainingOrder, decoder: Decoder, lora: Lora, dtype: torch.dtype) -> None:
        self.plan = plan_of(order)
        self.place = Place()
        self.lora = lora
        self.best: Tensor | None = None
        self._order, self._decoder, self._dtype = order, decoder, dtype
        self._scale = order.settings.alpha / order.settings.rank
        self._looked_at = -1

    @property
    def finished(self) -> bool:
        place, settings = self.place, self._order.settings
        return place.step >= self.plan.steps or place.looks >= settings.patience

    @property
    def kept(self) -> Tensor:
        return self.lora.weights if self.best is None else self.best

    def advance(self) -> None:
        """One update; at the end of an epoch, a look at the held-out examples."""
        place, plan, settings = self.place, self.plan, self._order.settings
        if place.step == 0 and plan.held_out and place.held_out_before is None:
            place = msgspec.structs.replace(place, held_out_before=self._held_out_loss())
        batch = batch_of(plan, place.step, settings.batch_size, self._order.seed)
        rows = rows_of(batch, settings.row_tokens, packing=settings.packing)
        loss = self._learn(rows)
        self.lora.update(place.step + 1, rate_at(place.step, plan.steps, settings.learning_rate))
        self.place = msgspec.structs.replace(
            place,
            step=place.step + 1,
            tokens=place.tokens + sum(each.length for each in batch),
            evaluated=place.evaluated + sum(len(row.tokens) for row in rows),
            first_loss=loss if place.step == 0 else place.first_loss,
            last_loss=loss,
        )
        if plan.held_out and (self.place.step % plan.each_epoch == 0 or self.place.step == plan.steps):
            self._look()

    def _learn(self, rows: Sequence[Row]) -> float:
        leaves = self.lora.leaves(self._dtype)
        count = sum(len(row.targets) for row in rows)
        total = 0.0
        for row in rows:
            loss = self._loss(row, leaves) / count
            loss.backward()  # pyright: ignore[reportUnknownMemberType]
            total += loss.item()
        self.lora.take(leaves)
        return total

    def _loss(self, row: Row, leaves: list[Tensor]) -> Tensor:
        """Summed over what is learned. Only places that something is learned at go through the head."""
        tokens, positions = torch.tensor(row.tokens), torch.tensor(row.positions)
        hidden = self._decoder.hidden(tokens, positions, mask_of(row), self.lora.lows(leaves), self._scale)
        at = sorted(set(row.at))
        where = {place: number for number, place in enumerate(at)}
        logits = self._decoder.logits(hidden[torch.tensor(at)])[torch.tensor([where[place] for place in row.at])]
        return F.cross_entropy(logits.float(), torch.tensor(row.targets), reduction="sum")

    def _look(self) -> None:
        place, loss = self.place, self._held_out_loss()
        if place.best is None or loss < place.best:
            self.best = self.lora.weights.clone()
            self.place = msgspec.structs.replace(place, best=loss, best_step=place.step, looks=0)
        else:
            self.place = msgspec.structs.replace(place, looks=place.looks + 1)

    def _held_out_loss(self) -> float:
        settings = self._order.settings
        rows = rows_of(self.plan.held_out, settings.row_tokens, packing=settings.packing)
        leaves = self.lora.leaves(self._dtype)
        with torch.no_grad():
            total = sum(self._loss(row, leaves).item() for row in rows)
        return total / sum(len(row.targets) for row in rows)


def mask_of(row: Row) -> Tensor | None:
    """What each token of a row sees; None where that is simply all before it."""
    if row.is_plain:
        return None
    mask = torch.zeros(len(row.tokens), len(row.tokens), dtype=torch.bool)
    for span in row.spans:
        rows = slice(span.start, span.end)
        mask[rows, rows] = torch.ones(span.end - span.start, span.end - span.start, dtype=torch.bool).tril()
        for start, end in span.before:
            mask[rows, start:end] = True
    return mask
