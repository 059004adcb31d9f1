"""The process that trains: `python -m whet.learners.adapter.peft_job FOLDER`. Told by files, tells by lines of JSON.

Started again after whatever ended it, it goes on from its last checkpoint, and ends with the same files.
"""

from __future__ import annotations

import os
import sys
import threading
import time
from pathlib import Path

import msgspec
import torch

from whet.core import WhetError
from whet.learners.adapter.base import load_base
from whet.learners.adapter.checkpoint import load_checkpoint, save_checkpoint
from whet.learners.adapter.conversion import read_adapter, write_adapter, write_lora
from whet.learners.adapter.decoder import Decoder
from whet.learners.adapter.lora import Lora
from whet.learners.adapter.orders import (
    ADAPTER,
    CHECKPOINT,
    LORA,
    METRICS,
    Metrics,
    Progress,
    TrainingOrder,
    read_order,
    write_whole,
)
from whet.learners.adapter.precision import chosen
from whet.learners.adapter.settings import Precision
from whet.learners.adapter.shapes import Shape
from whet.learners.adapter.trainer import Trainer

_EVERY = 15.0
"""Seconds between checkpoints."""


def main(folder: Path, every: float = _EVERY) -> None:
    torch.use_deterministic_algorithms(True)
    order = read_order(folder)
    key = order.key
    seconds: dict[str, float] = {}
    tell(Progress("load"))
    began = time.monotonic()
    shape, weights = load_base(Path(order.base_file))
    lora = Lora(shape, order.settings.rank, order.seed)
    checkpoint = load_checkpoint(folder / CHECKPOINT, key, lora.weights.numel())
    precision = chosen(order.settings.precision) if checkpoint is None else checkpoint.precision
    dtype = torch.bfloat16 if precision is Precision.BF16 else torch.float32
    trainer = Trainer(order, Decoder(shape, {name: each.to(dtype) for name, each in weights.items()}), lora, dtype)
    if checkpoint is not None:
        checkpoint.put_into(trainer)
    del weights
    seconds["load"] = time.monotonic() - began
    resumed_at = trainer.place.step
    began = time.monotonic()
    train(trainer, folder, key, precision, every)
    seconds["evaluate"] = trainer.seconds_looking
    seconds["train"] = time.monotonic() - began - trainer.seconds_looking
    tell(Progress("convert"))
    began = time.monotonic()
    write_result(order, shape, trainer, folder)
    seconds["convert"] = time.monotonic() - began
    write_whole(folder / METRICS, msgspec.json.encode(metrics_of(order, trainer, precision, seconds, resumed_at)))
    (folder / CHECKPOINT).unlink(missing_ok=True)


def train(trainer: Trainer, folder: Path, key: bytes, precision: Precision, every: float) -> None:
    plan, started = trainer.plan, time.monotonic()
    saved, first, before = started, trainer.place.step, trainer.place.evaluated
    while not trainer.finished:
        trainer.advance()
        now, place = time.monotonic(), trainer.place
        each = (now - started) / (place.step - first)
        tell(
            Progress(
                "train",
                place.step,
                plan.steps,
                place.last_loss,
                place.best,
                (place.evaluated - before) / (now - started),
                each * (plan.steps - place.step),
            )
        )
        if now - saved >= every and not trainer.finished:
            save_checkpoint(folder / CHECKPOINT, key, precision, trainer)
            saved = now


def write_result(order: TrainingOrder, shape: Shape, trainer: Trainer, folder: Path) -> None:
    settings = order.settings
    write_adapter(
        folder / ADAPTER,
        trainer.lora.named(trainer.kept),
        rank=settings.rank,
        alpha=settings.alpha,
        base=order.base,
        model=Path(order.base_file).name,
    )
    write_lora(read_adapter(folder / ADAPTER, shape, base=order.base), shape, folder / LORA)


def metrics_of(
    order: TrainingOrder, trainer: Trainer, precision: Precision, seconds: dict[str, float], resumed_at: int
) -> Metrics:
    plan, place = trainer.plan, trainer.place
    return Metrics(
        examples=len(plan.learned),
        held_out_examples=len(plan.held_out),
        left_out=plan.left_out,
        steps=place.step,
        kept_step=place.best_step if trainer.best is not None else place.step,
        first_loss=place.first_loss,
        last_loss=place.last_loss,
        held_out_before=place.held_out_before,
        held_out_after=place.best,
        tokens=place.tokens,
        evaluated=place.evaluated,
        precision=precision.value,
        seconds=seconds,
        resumed_at=resumed_at,
    )


def tell(progress: Progress) -> None:
    sys.stdout.write(msgspec.json.encode(progress).decode() + "\n")
    sys.stdout.flush()


def end_with_starter() -> None:
    """Whoever started this holds the other end of its input. Gone, it may start another one in the same folder."""
    # Not through sys.stdin, whose lock would be held at the end of a job that is done.
    while os.read(0, 1):
        pass
    os._exit(3)


if __name__ == "__main__":
    if "--attached" in sys.argv:
        threading.Thread(target=end_with_starter, daemon=True).start()
    try:
        main(Path(sys.argv[1]))
    except WhetError as error:
        sys.stderr.write(f"{error}\n")
        sys.stderr.flush()
        # Not by way of the interpreter's end: threads of torch may outlive it.
        os._exit(2)
