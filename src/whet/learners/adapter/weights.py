"""Reading a model's weights from its GGUF file, as numbers to compute with. Never trusts a count it finds in the file.

The same file is served by llama.cpp, so what is trained on is what answers, quantisation included.
"""

from __future__ import annotations

import mmap
import struct
from collections.abc import Iterator, Mapping
from math import prod
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Final, Self

import msgspec

from whet.core import InputError

if TYPE_CHECKING:
    import numpy

MAGIC: Final = b"GGUF"
_STRING, _ARRAY = 8, 9
_FIXED: Final = {0: "B", 1: "b", 2: "H", 3: "h", 4: "I", 5: "i", 6: "f", 7: "?", 10: "Q", 11: "q", 12: "d"}
"""Types of values by number, as `struct` writes them."""
_MOST_DIMENSIONS = 4
_MOST_KEPT = 64
"""Arrays longer than this (vocabularies) are passed over: nothing here needs them."""

Value = bool | int | float | str | tuple[bool | int | float | str, ...] | None


class TensorPlace(msgspec.Struct, frozen=True):
    shape: tuple[int, ...]
    """Rows first, as numpy has it; the file says it the other way round."""
    kind: int
    offset: int


class GgufFile:
    """An open GGUF file: its settings at once, each tensor when asked for. Use it in a `with`."""

    def __init__(self, path: Path) -> None:
        self.path = path
        try:
            with path.open("rb") as file:
                self._bytes = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
        except (OSError, ValueError) as error:
            raise InputError(f"{path} cannot be read as a model: {error}") from error
        try:
            self.settings, self.tensors, self._start = _Reader(self._bytes).head()
        except (struct.error, _Malformed, UnicodeDecodeError) as error:
            self._bytes.close()
            raise InputError(
                f"{path} is not a whole GGUF file: {error}", hint="Pull it again: whet models pull"
            ) from error

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._bytes.close()

    def number(self, name: str) -> int:
        value = self.settings.get(name)
        if not isinstance(value, int) or value <= 0:
            raise InputError(f"{self.path} does not say {name}", hint="A language model in GGUF says it")
        return value

    def real(self, name: str, default: float) -> float:
        value = self.settings.get(name, default)
        return float(value) if isinstance(value, int | float) else default

    def tensor(self, name: str) -> numpy.ndarray[Any, Any]:
        """Its numbers in fp32, dequantised."""
        import numpy
        from gguf.constants import GGML_QUANT_SIZES, GGMLQuantizationType
        from gguf.quants import dequantize

        place = self.tensors.get(name)
        if place is None:
            raise InputError(f"{self.path} has no tensor {name}", hint="Is it a language model of another family?")
        try:
            kind = GGMLQuantizationType(place.kind)
            block, size = GGML_QUANT_SIZES[kind]
        except (ValueError, KeyError) as error:
            raise InputError(f"{self.path}: tensor {name} is of an unknown type {place.kind}") from error
        if place.shape[-1] % block:
            raise InputError(f"{self.path}: tensor {name} does not fill its blocks")
        row = place.shape[-1] // block * size
        rows = prod(place.shape[:-1])
        start = self._start + place.offset
        if start + row * rows > len(self._bytes):
            raise InputError(f"{self.path} ends in the middle of tensor {name}", hint="Pull it again: whet models pull")
        raw = numpy.frombuffer(self._bytes, numpy.uint8, row * rows, start).copy().reshape(*place.shape[:-1], row)
        if kind is GGMLQuantizationType.F32:
            return raw.view(numpy.float32)
        if kind is GGMLQuantizationType.F16:
            return raw.view(numpy.float16).astype(numpy.float32)
        return dequantize(raw, kind)


class _Malformed(Exception):
    pass


class _Reader:
    def __init__(self, data: mmap.mmap) -> None:
        self._data = data
        self._at = 0

    def head(self) -> tuple[Mapping[str, Value], dict[str, TensorPlace], int]:
        if self._data[:4] != MAGIC:
            raise _Malformed("it does not begin like one")
        self._at = 4
        if (version := self._number("I")) not in (2, 3):
            raise _Malformed(f"version {version} is unknown")
        tensors, values = self._number("Q"), self._number("Q")
        settings = {self._string(): self._value(self._number("I")) for _ in self._times(values, 13)}
        places = dict(self._place() for _ in self._times(tensors, 24))
        told = settings.get("general.alignment", 32)
        align = told if isinstance(told, int) and 0 < told <= 1 << 16 else 32
        return settings, places, -(-self._at // align) * align

    def _times(self, count: int, least: int) -> Iterator[int]:
        """A count can be believed only as far as the file has bytes for that many."""
        if count * least > len(self._data) - self._at:
            raise _Malformed("it says that it holds more than it has bytes for")
        return iter(range(count))

    def _number(self, code: str) -> Any:
        (value,) = struct.unpack_from("<" + code, self._data, self._at)
        self._at += struct.calcsize("<" + code)
        return value

    def _string(self) -> str:
        start = self._skip_string()
        return self._data[start : self._at].decode()

    def _skip_string(self) -> int:
        length = self._number("Q")
        start = self._at
        if length > len(self._data) - start:
            raise _Malformed("a text in it is longer than the file")
        self._at = start + length
        return start

    def _value(self, kind: int) -> Value:
        if kind == _STRING:
            return self._string()
        if kind == _ARRAY:
            return self._array()
        if kind not in _FIXED:
            raise _Malformed(f"values of type {kind} are unknown")
        return self._number(_FIXED[kind])

    def _array(self) -> Value:
        kind, count = self._number("I"), self._number("Q")
        if count <= _MOST_KEPT and kind != _ARRAY:
            return tuple(self._value(kind) for _ in self._times(count, 1))  # pyright: ignore[reportReturnType]
        if kind == _STRING:
            for _ in self._times(count, 8):
                self._skip_string()
        elif kind in _FIXED:
            size = struct.calcsize("<" + _FIXED[kind])
            self._times(count, size)
            self._at += size * count
        else:
            raise _Malformed(f"lists of type {kind} are unknown")
        return None

    def _place(self) -> tuple[str, TensorPlace]:
        name, count = self._string(), self._number("I")
        if not 1 <= count <= _MOST_DIMENSIONS:
            raise _Malformed(f"tensor {name} has {count} dimensions")
        shape = tuple(self._number("Q") for _ in range(count))
        return name, TensorPlace(shape[::-1], self._number("I"), self._number("Q"))
