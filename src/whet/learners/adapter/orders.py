"""What is handed to a backend, and what comes back. An order is immutable and named by its content."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Final

import msgspec

from whet.core import AdapterRef, InputError, content_key, fingerprint
from whet.learners.adapter.settings import TrainingSettings

_RECIPE: Final = 1
"""Counts up when the same order would no longer give the same weights."""

ORDER, EXAMPLES, CHECKPOINT, METRICS = "order.json", "examples.msgpack", "checkpoint.safetensors", "metrics.json"
ADAPTER, LORA = "adapter", "adapter.gguf"
"""Names in a job's folder: the adapter as PEFT has it, and the same for llama.cpp."""


class Example(msgspec.Struct, frozen=True, gc=False):
    """One answer to learn, in tokens: made by whoever serves the model, so that it meets what it learned."""

    prompt: tuple[int, ...]
    completion: tuple[int, ...]
    """Only these are learned, the end of the answer among them."""
    source: str
    """Where it comes from: the fingerprint of the policy that played it, or the name of an outside file."""
    task: str
    soft: float

    @property
    def length(self) -> int:
        return len(self.prompt) + len(self.completion)


class TrainingOrder(msgspec.Struct, frozen=True):
    base_file: str
    base: str
    """The base model's fingerprint, which the adapter will carry."""
    examples: tuple[Example, ...]
    settings: TrainingSettings
    seed: int
    condition: str = ""
    """What prompts must say to get the best of the adapter."""

    @property
    def key(self) -> bytes:
        """Where the file lies does not matter, only which weights it has."""
        settings = msgspec.to_builtins(self.settings)
        return content_key("adapter", _RECIPE, self.base, self.examples, settings, self.seed, self.condition)


class Progress(msgspec.Struct, frozen=True):
    """One line of what a job tells while it works."""

    stage: str
    step: int = 0
    of: int = 0
    loss: float | None = None
    held_out_loss: float | None = None
    tokens_per_second: float = 0.0
    seconds_left: float | None = None


class Metrics(msgspec.Struct, frozen=True):
    examples: int
    held_out_examples: int
    left_out: int
    """Examples that were too long."""
    steps: int
    kept_step: int
    """The one whose weights were kept."""
    first_loss: float
    last_loss: float
    held_out_before: float | None
    held_out_after: float | None
    tokens: int
    """Tokens of all examples learned from, each as often as it was."""
    evaluated: int
    """Tokens that the model was run on for them: fewer where examples begin alike."""
    precision: str
    seconds: dict[str, float]
    """Wall time by stage, of the process that finished the job."""
    resumed_at: int = 0

    @property
    def tokens_per_second(self) -> float:
        """0 where another process had a part in it."""
        return self.evaluated / max(self.seconds.get("train", 0.0), 1e-9) if not self.resumed_at else 0.0


class TrainedAdapter(msgspec.Struct, frozen=True):
    ref: AdapterRef
    folder: Path
    """As PEFT has it."""
    lora: Path
    """For llama.cpp."""
    metrics: Metrics


class _Written(msgspec.Struct, frozen=True):
    base_file: str
    base: str
    settings: TrainingSettings
    seed: int
    condition: str
    examples: str


def write_order(order: TrainingOrder, folder: Path) -> None:
    """The order file comes last: where it is, all is. The same order may be written again, another may not."""
    folder.mkdir(parents=True, exist_ok=True)
    written = _written(order)
    path = folder / ORDER
    if path.exists():
        known = _read(path)
        if msgspec.structs.replace(known, base_file=written.base_file) != written:
            raise InputError(
                f"{folder} belongs to another training of an adapter", hint="Each order has a folder of its own"
            )
    write_whole(folder / EXAMPLES, msgspec.msgpack.encode(order.examples))
    write_whole(path, msgspec.json.format(msgspec.json.encode(written), indent=1))


def read_order(folder: Path) -> TrainingOrder:
    written = _read(folder / ORDER)
    try:
        examples = msgspec.msgpack.decode((folder / EXAMPLES).read_bytes(), type=tuple[Example, ...])
    except (OSError, msgspec.DecodeError) as error:
        raise InputError(f"{folder / EXAMPLES} cannot be read: {error}") from error
    if _name(examples) != written.examples:
        raise InputError(f"{folder / EXAMPLES} has changed since it was ordered")
    return TrainingOrder(written.base_file, written.base, examples, written.settings, written.seed, written.condition)


def _written(order: TrainingOrder) -> _Written:
    return _Written(order.base_file, order.base, order.settings, order.seed, order.condition, _name(order.examples))


def _read(path: Path) -> _Written:
    try:
        return msgspec.json.decode(path.read_bytes(), type=_Written)
    except (OSError, msgspec.DecodeError) as error:
        raise InputError(f"{path} is not an order for training an adapter: {error}") from error


def _name(examples: Sequence[Example]) -> str:
    return fingerprint("examples", tuple(examples))


def write_whole(path: Path, data: bytes) -> None:
    """All of it or nothing, whenever the machine stops."""
    new = path.with_name(path.name + ".new")
    with new.open("wb") as file:
        file.write(data)
        file.flush()
        os.fsync(file.fileno())
    new.replace(path)
