"""Learning LoRA weights from examples: the same order gives the same weights, also when it was interrupted on the way.

Which examples make an update, and at which rate, follows from the number of the update and the seed alone, so a
checkpoint is a number and the weights. Knows nothing of processes; what it has to tell goes to `tell`.
"""

# Types of torch are not all told.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false, reportUnknownArgumentType=false

from __future__ import annotations

import math
import time
from collections.abc import Sequence

import msgspec
import torch
import torch.nn.functional as F
from torch import Tensor

from whet.core import InputError
from whet.learners.adapter.decoder import Decoder
from whet.learners.adapter.lora import Lora
from whet.learners.adapter.orders import TrainingOrder
from whet.learners.adapter.plan import batch_of, plan_of, rate_at
from whet.learners.adapter.rows import Row, rows_of


class Place(msgspec.Struct, frozen=True):
    """How far a training is: with the weights, all that is needed to go on."""

    step: int = 0
    tokens: int = 0
    evaluated: int = 0
    first_loss: float = 0.0
    last_loss: float = 0.0
    held_out_before: float | None = None
    best: float | None = None
    best_step: int = 0
    looks: int = 0
    """Looks at the held-out examples since the best."""


class Trainer:
    def __init__(self, order: TrainingOrder, decoder: Decoder, lora: Lora, dtype: torch.dtype) -> None:
        self.plan = plan_of(order)
        self.place: Place = Place()
        self.lora = lora
        self.best: Tensor | None = None
        self.seconds_looking = 0.0
        """Of what this process took, at held-out examples."""
        self.decoder = decoder
        self._order, self._dtype = order, dtype
        self._scale = order.settings.alpha / order.settings.rank

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
        loss = self.learn(rows)
        if not math.isfinite(loss):
            raise InputError(
                f"the training of an adapter diverged at update {place.step + 1}", hint="Lower adapter.learning_rate"
            )
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

    def learn(self, rows: Sequence[Row]) -> float:
        """Gradients of the mean loss over all that the rows teach; returns that loss."""
        leaves = self.lora.leaves(self._dtype)
        count = sum(len(row.targets) for row in rows)
        total = 0.0
        for row in rows:
            loss = self._loss(row, leaves) / count
            loss.backward()
            total += loss.item()
        self.lora.take(leaves)
        return total

    def _loss(self, row: Row, leaves: list[Tensor]) -> Tensor:
        """Summed over what is learned. Only places that something is learned at go through the head."""
        tokens, positions = torch.tensor(row.tokens), torch.tensor(row.positions)
        hidden = self.decoder.hidden(tokens, positions, mask_of(row), self.lora.lows(leaves), self._scale)
        at = sorted(set(row.at))
        where = {place: number for number, place in enumerate(at)}
        logits = self.decoder.logits(hidden[torch.tensor(at)])[torch.tensor([where[place] for place in row.at])]
        return F.cross_entropy(logits.float(), torch.tensor(row.targets), reduction="sum")

    def _look(self) -> None:
        place, loss = self.place, self._held_out_loss()
        if place.best is None or loss < place.best:
            self.best = self.lora.weights.clone()
            self.place = msgspec.structs.replace(place, best=loss, best_step=place.step, looks=0)
        else:
            self.place = msgspec.structs.replace(place, looks=place.looks + 1)

    def _held_out_loss(self) -> float:
        settings, began = self._order.settings, time.monotonic()
        rows = rows_of(self.plan.held_out, settings.row_tokens, packing=settings.packing)
        leaves = self.lora.leaves(self._dtype)
        with torch.no_grad():
            total = sum(self._loss(row, leaves).item() for row in rows)
        self.seconds_looking += time.monotonic() - began
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
