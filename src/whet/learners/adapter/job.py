"""From an order to an adapter that can be served: what the training loop calls."""

from __future__ import annotations

from pathlib import Path

import msgspec

from whet.core import AdapterRef, InputError
from whet.learners.adapter.backends import Backend, PeftBackend, Tell
from whet.learners.adapter.orders import ADAPTER, LORA, METRICS, Metrics, TrainedAdapter, TrainingOrder, write_order


def job_folder(order: TrainingOrder, parent: Path) -> Path:
    """Named by the order's content, so the same order has the same folder, and what it made is found there."""
    return parent / order.key.hex()


async def train_adapter(
    order: TrainingOrder, folder: Path, on_progress: Tell, backend: Backend | None = None
) -> TrainedAdapter:
    """In `folder`, the order's own: what is finished there is not done again, what is begun is gone on with."""
    if not any(example.length <= order.settings.max_length for example in order.examples):
        raise InputError(
            "there is no example to train an adapter on", hint="See `min_soft` and `max_length` in [adapter]"
        )
    write_order(order, folder)
    if not (folder / METRICS).exists():
        await (backend or PeftBackend()).train(folder, on_progress)
    return trained(order, folder)


def trained(order: TrainingOrder, folder: Path) -> TrainedAdapter:
    """What a finished job left, checked."""
    from whet.learners.adapter.conversion import read_adapter
    from whet.learners.adapter.shapes import read_shape
    from whet.learners.adapter.weights import GgufFile

    with GgufFile(Path(order.base_file)) as file:
        shape = read_shape(file)
    adapter = read_adapter(folder / ADAPTER, shape, base=order.base)
    try:
        metrics = msgspec.json.decode((folder / METRICS).read_bytes(), type=Metrics)
    except (OSError, msgspec.DecodeError) as error:
        raise InputError(f"{folder / METRICS} cannot be read: {error}") from error
    ref = AdapterRef(adapter.fingerprint, order.base, order.condition)
    return TrainedAdapter(ref, folder / ADAPTER, folder / LORA, metrics)
