"""Where a training is, in one file that is there whole or not at all. Tensors and JSON: nothing in it is ever run."""

# Types of torch are not all told.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false, reportUnknownArgumentType=false

from __future__ import annotations

from pathlib import Path
from typing import Any, Final

import msgspec
import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save
from torch import Tensor

from whet.core import InputError
from whet.learners.adapter.orders import write_whole
from whet.learners.adapter.settings import Precision
from whet.learners.adapter.trainer import Place, Trainer

_STATE: Final = "whet"
_WEIGHTS, _FIRST, _SECOND, _BEST = "weights", "first", "second", "best"


class _State(msgspec.Struct, frozen=True):
    order: str
    precision: Precision
    place: Place


def save_checkpoint(path: Path, order: bytes, precision: Precision, trainer: Trainer) -> None:
    lora = trainer.lora
    tensors = {_WEIGHTS: lora.weights, _FIRST: lora.first, _SECOND: lora.second}
    if trainer.best is not None:
        tensors[_BEST] = trainer.best
    state = msgspec.json.encode(_State(order.hex(), precision, trainer.place)).decode()
    write_whole(path, save(tensors, {_STATE: state}))


class Checkpoint(msgspec.Struct, frozen=True):
    precision: Precision
    place: Place
    tensors: dict[str, Tensor]

    def put_into(self, trainer: Trainer) -> None:
        lora = trainer.lora
        for name, target in ((_WEIGHTS, lora.weights), (_FIRST, lora.first), (_SECOND, lora.second)):
            target.copy_(self.tensors[name])
        trainer.best = self.tensors.get(_BEST)
        trainer.place = self.place


def load_checkpoint(path: Path, order: bytes, count: int) -> Checkpoint | None:
    """None where there is none. One of another order, or a broken one, is an error: it would be lost otherwise."""
    if not path.exists():
        return None
    try:
        with safe_open(path, framework="pt") as file:  # pyright: ignore[reportUnknownVariableType]
            opened: Any = file
            state = msgspec.json.decode((opened.metadata() or {}).get(_STATE, ""), type=_State)
            tensors: dict[str, Tensor] = {name: opened.get_tensor(name) for name in opened.keys()}  # noqa: SIM118
    except (SafetensorError, msgspec.DecodeError, OSError) as error:
        raise InputError(f"{path} cannot be read: {error}", hint="Remove it, and the training begins anew") from error
    whole = {_WEIGHTS, _FIRST, _SECOND} <= tensors.keys()
    if not whole or any(each.shape != (count,) or each.dtype != torch.float32 for each in tensors.values()):
        raise InputError(f"{path} does not fit the model", hint="Remove it, and the training begins anew")
    if state.order != order.hex():
        raise InputError(f"{path} belongs to another training", hint="Each order has a folder of its own")
    return Checkpoint(state.precision, state.place, tensors)
