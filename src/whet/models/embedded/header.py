"""What a GGUF file says of itself, read within bounds: no count in it is believed, and nothing of it is run.

llama.cpp ends the whole process on some malformed files, so a file is read here first.
"""

from __future__ import annotations

import struct
from io import BufferedReader
from pathlib import Path
from typing import TypeAlias

import msgspec

from whet.core import InputError

_MAGIC = b"GGUF"
_VERSIONS = (2, 3)
_MOST_ENTRIES = 65_536
_LONGEST_TEXT = 16 * 1024 * 1024
_MOST_DIMENSIONS = 4
_BOOL, _TEXT, _ARRAY = 7, 8, 9
_FIXED = {0: "<B", 1: "<b", 2: "<H", 3: "<h", 4: "<I", 5: "<i", 6: "<f", _BOOL: "<?", 10: "<Q", 11: "<q", 12: "<d"}

_BLOCKS = {
    0: (1, 4),
    1: (1, 2),
    2: (32, 18),
    3: (32, 20),
    6: (32, 22),
    7: (32, 24),
    8: (32, 34),
    9: (32, 36),
    10: (256, 84),
    11: (256, 110),
    12: (256, 144),
    13: (256, 176),
    14: (256, 210),
    15: (256, 292),
    30: (1, 2),
}
"""Weights in a block and its bytes, by type. Of a type that is not here only the beginning is checked."""

FILE_TYPES = {
    0: "F32",
    1: "F16",
    2: "Q4_0",
    3: "Q4_1",
    7: "Q8_0",
    8: "Q5_0",
    9: "Q5_1",
    10: "Q2_K",
    11: "Q3_K_S",
    12: "Q3_K_M",
    13: "Q3_K_L",
    14: "Q4_K_S",
    15: "Q4_K_M",
    16: "Q5_K_S",
    17: "Q5_K_M",
    18: "Q6_K",
    32: "BF16",
}

Value: TypeAlias = "bool | int | float | str"


class Header(msgspec.Struct, frozen=True):
    """Of the metadata, single values only; lists, such as the vocabulary, are passed over."""

    values: dict[str, Value]
    tensors: tuple[str, ...]

    @property
    def architecture(self) -> str:
        return self.text("general.architecture")

    @property
    def is_adapter(self) -> bool:
        return self.text("general.type") == "adapter"

    @property
    def is_language_model(self) -> bool:
        """It has a vocabulary and a context, and looks back only: no adapter, no encoder, no projector."""
        looks_back = self.values.get(f"{self.architecture}.attention.causal", True) is not False
        return not self.is_adapter and looks_back and self.context > 0 and bool(self.text("tokenizer.ggml.model"))

    @property
    def context(self) -> int:
        """Tokens that the model was made for."""
        return self.number(f"{self.architecture}.context_length") or 0

    @property
    def file_type(self) -> str:
        number = self.number("general.file_type")
        return "unknown" if number is None else FILE_TYPES.get(number, f"type {number}")

    @property
    def template(self) -> str:
        return self.text("tokenizer.chat_template")

    @property
    def end_token(self) -> int | None:
        """What ends an answer: the end of a turn where the model knows one apart from the end of a text."""
        turn = self.number("tokenizer.ggml.eot_token_id")
        return self.number("tokenizer.ggml.eos_token_id") if turn is None else turn

    @property
    def memory_per_token(self) -> int:
        """Bytes that a token of context takes, keys and values in 16 bits."""
        name = self.architecture
        heads = self.number(f"{name}.attention.head_count") or 1
        width = (self.number(f"{name}.embedding_length") or 4096) // heads
        width = self.number(f"{name}.attention.key_length") or width
        return 4 * width * (self.number(f"{name}.attention.head_count_kv") or heads) * self.layers

    @property
    def layers(self) -> int:
        return self.number(f"{self.architecture}.block_count") or 32

    def text(self, key: str) -> str:
        value = self.values.get(key)
        return value if isinstance(value, str) else ""

    def number(self, key: str) -> int | None:
        value = self.values.get(key)
        return value if isinstance(value, int) and not isinstance(value, bool) else None


def read_header(path: Path) -> Header:
    """Raises InputError unless `path` is a whole GGUF file."""
    try:
        with path.open("rb") as file:
            return _Reading(path, file, path.stat().st_size).header()
    except OSError as error:
        raise InputError(f"{path} cannot be read: {error.strerror}") from error


def read_model_header(path: Path) -> Header:
    """The same, of a language model."""
    header = read_header(path)
    if header.is_adapter:
        raise InputError(f"{path} is an adapter, not a model", hint="Name the model that it was made for.")
    if not header.is_language_model:
        raise InputError(f"{path} is no language model ({header.architecture or 'of no architecture'})")
    return header


class _Reading:
    """One reading of one file. Every length is held against what is left of it."""

    def __init__(self, path: Path, file: BufferedReader, size: int) -> None:
        self._path = path
        self._file = file
        self._size = size
        self._at = 0

    def header(self) -> Header:
        if self._size < 4 or self._take(4) != _MAGIC:
            raise InputError(f"{self._path} is not a GGUF file")
        version = self._number("<I")
        if version not in _VERSIONS:
            raise self._broken(f"its version is {version}; known are 2 and 3")
        tensors, entries = self._count("<Q", _MOST_ENTRIES), self._count("<Q", _MOST_ENTRIES)
        values: dict[str, Value] = {}
        for _ in range(entries):
            key = self._text()
            value = self._value(self._number("<I"))
            if value is not None:
                values[key] = value
        return Header(values, self._tensors(tensors, values))

    def _tensors(self, count: int, values: dict[str, Value]) -> tuple[str, ...]:
        """Their names. The file must reach to the end of the last."""
        names: list[str] = []
        end = 0
        for _ in range(count):
            names.append(self._text())
            weights = 1
            for _ in range(self._count("<I", _MOST_DIMENSIONS)):
                weights *= self._number("<Q")
            per_block, block = _BLOCKS.get(self._number("<I"), (1, 0))
            end = max(end, self._number("<Q") + weights // per_block * block)
        alignment = values.get("general.alignment", 32)
        if not isinstance(alignment, int) or isinstance(alignment, bool) or not 0 < alignment <= 1 << 20:
            raise self._broken("its alignment is not a number that can be")
        start = -(-self._at // alignment) * alignment
        if start + end > self._size:
            raise InputError(
                f"{self._path} is cut off: it says that it has {start + end:,} bytes, and has {self._size:,}",
                hint="Delete it and fetch it again.",
            )
        return tuple(names)

    def _value(self, kind: int) -> Value | None:
        if kind == _TEXT:
            return self._text()
        if kind == _ARRAY:
            return self._pass_over_array()
        if kind not in _FIXED:
            raise self._broken(f"a value in it is of the unknown kind {kind}")
        return self._number(_FIXED[kind])

    def _pass_over_array(self) -> None:
        kind, length = self._number("<I"), self._number("<Q")
        if kind == _TEXT:
            if length * 8 > self._size - self._at:
                raise self._cut()
            for _ in range(length):
                self._skip(self._number("<Q"))
        elif kind in _FIXED:
            self._skip(length * struct.calcsize(_FIXED[kind]))
        else:
            raise self._broken(f"a list in it is of the unknown kind {kind}")

    def _text(self) -> str:
        return self._take(self._count("<Q", _LONGEST_TEXT)).decode(errors="replace")

    def _count(self, form: str, most: int) -> int:
        count = self._number(form)
        if count > most:
            raise self._broken(f"it counts {count:,} where {most:,} is the most that can be")
        return count

    def _number(self, form: str) -> int:
        (number,) = struct.unpack(form, self._take(struct.calcsize(form)))
        return number

    def _skip(self, length: int) -> None:
        if length > self._size - self._at:
            raise self._cut()
        self._file.seek(length, 1)
        self._at += length

    def _take(self, length: int) -> bytes:
        if length > self._size - self._at:
            raise self._cut()
        self._at += length
        taken = self._file.read(length)
        if len(taken) < length:
            raise self._cut()
        return taken

    def _cut(self) -> InputError:
        return self._broken("it ends within its header")

    def _broken(self, why: str) -> InputError:
        return InputError(f"{self._path} is not a GGUF file that can be used: {why}", hint="Fetch it again.")
