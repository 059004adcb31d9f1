"""The same weights in another type: what a processor evaluates fastest is not what is smallest to fetch.

Needs the package gguf. The metadata, the chat template among it, goes over unchanged, and the copy remembers its
original: it stays the same base for adapters, while its answers have a name of their own.
"""

from __future__ import annotations

import os
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from whet.core import InputError
from whet.models.embedded.identity import look, remember, sha256_of

_FILE_TYPES = {"F16": 1, "Q8_0": 7, "BF16": 32}
_BLOCK = 32


def can_store() -> bool:
    return find_spec("gguf") is not None


def store_as(kind: str, original: Path, copy: Path) -> Path:
    """Write `original` with its matrices as `kind`: Q8_0, F16 or BF16. The copy is there whole or not at all."""
    if kind not in _FILE_TYPES:
        raise InputError(f"weights are not stored as {kind!r}", hint=f"There are: {', '.join(_FILE_TYPES)}.")
    gguf: Any = import_module("gguf")
    partial = copy.with_suffix(f".{os.getpid()}.partial")
    try:
        _write(gguf, kind, original, partial)
        partial.replace(copy)
    finally:
        partial.unlink(missing_ok=True)
    remember(copy, sha256_of(copy), look(original).sha256)
    return copy


def _write(gguf: Any, kind: str, original: Path, copy: Path) -> None:
    reader = gguf.GGUFReader(original)
    writer = gguf.GGUFWriter(copy, reader.fields["general.architecture"].contents())
    for field in reader.fields.values():
        if not field.name.startswith("GGUF.") and field.name not in ("general.architecture", "general.file_type"):
            is_list = field.types[0] == gguf.GGUFValueType.ARRAY
            inner = field.types[-1] if is_list else None
            writer.add_key_value(field.name, field.contents(), field.types[0], sub_type=inner)
    writer.add_file_type(_FILE_TYPES[kind])
    wanted = gguf.GGMLQuantizationType[kind]
    for tensor in reader.tensors:
        if tensor.tensor_type in (wanted, gguf.GGMLQuantizationType.F32) or tensor.shape[0] % _BLOCK:
            writer.add_tensor(tensor.name, tensor.data, raw_dtype=tensor.tensor_type)
            continue
        weights = gguf.quants.dequantize(tensor.data, tensor.tensor_type)
        writer.add_tensor(tensor.name, gguf.quants.quantize(weights, wanted), raw_dtype=wanted)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
