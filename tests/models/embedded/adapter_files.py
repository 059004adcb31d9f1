"""LoRA adapters that each make the model say a word of their own, whatever it is asked."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import gguf
import numpy as np

_LAST = "blk.29.ffn_down.weight"
_INNER = 1536


def embeddings(model: Path) -> Any:
    """Of the small model's tokens, a row each."""
    tensor = next(one for one in gguf.GGUFReader(model).tensors if one.name == "token_embd.weight")
    return gguf.quants.dequantize(tensor.data, tensor.tensor_type)


def write_adapter(path: Path, direction: Any, seed: int, *, inner: int = _INNER, architecture: str = "llama") -> None:
    """Rank 1: what the last layer gives is pushed far towards `direction`, or away from it."""
    writer = gguf.GGUFWriter(path, architecture)
    writer.add_type("adapter")
    writer.add_string("adapter.type", "lora")
    writer.add_float32("adapter.lora.alpha", 1.0)
    pushed = (300 * direction / np.linalg.norm(direction)).astype(np.float32).reshape(-1, 1)
    drawn = np.random.default_rng(seed).standard_normal((1, inner)).astype(np.float32)
    writer.add_tensor(f"{_LAST}.lora_a", drawn)
    writer.add_tensor(f"{_LAST}.lora_b", pushed)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
