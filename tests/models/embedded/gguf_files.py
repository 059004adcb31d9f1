"""Small GGUF files written by hand, so that what reads them is not tested with what it is made of."""

from __future__ import annotations

import struct
from typing import Any

MODEL = {
    "general.architecture": "llama",
    "general.file_type": 7,
    "llama.context_length": 64,
    "tokenizer.ggml.model": "gpt2",
    "tokenizer.ggml.eos_token_id": 2,
    "tokenizer.chat_template": "{{ messages }}",
}


def text(value: str) -> bytes:
    return struct.pack("<Q", len(value.encode())) + value.encode()


def value(given: Any) -> bytes:
    match given:
        case bool():
            return struct.pack("<I?", 7, given)
        case int():
            return struct.pack("<II", 4, given)
        case float():
            return struct.pack("<If", 6, given)
        case str():
            return struct.pack("<I", 8) + text(given)
        case [str(), *_]:
            return struct.pack("<IIQ", 9, 8, len(given)) + b"".join(map(text, given))
        case _:
            return struct.pack("<IIQ", 9, 4, len(given)) + struct.pack(f"<{len(given)}I", *given)


def gguf(values: dict[str, Any], tensors: int = 1, *, weights: int = 64) -> bytes:
    """A file of `tensors` tensors in 32-bit floats."""
    header = b"GGUF" + struct.pack("<IQQ", 3, tensors, len(values))
    header += b"".join(text(key) + value(given) for key, given in values.items())
    for number in range(tensors):
        header += text(f"t{number}") + struct.pack("<IQIQ", 1, weights, 0, number * weights * 4)
    return header + b"\0" * (-len(header) % 32) + b"\1" * (tensors * weights * 4)
