"""Values on their way between the tests and the answer: data is copied, anything else stays where it is.

An object that is not data is known to the other side by a number. Pure but for the table of these numbers.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, cast

import msgspec

from whet.core import Json

_MOST_DEPTH = 100


class Foreign(msgspec.Struct, frozen=True):
    """An object of the answer's: its number, the name of its class, and what it can do."""

    number: int
    kind: str
    is_callable: bool = False
    exception: str = ""
    """For a class of exceptions: the built-in one that it derives from."""


class NotData(Exception):
    """A value that has no place on the other side."""


def pack(value: Any, keep: Callable[[Any], Foreign], depth: int = 0) -> Json:
    """As JSON: simple values as they are, the rest as [kind, content]."""
    if depth > _MOST_DEPTH:
        raise NotData("a value is nested too deeply")
    kind = cast("type[object]", type(value))
    if value is None or kind in (bool, str):
        return value
    if kind is int:
        return value if abs(value) < 1 << 53 else ["int", hex(value)]
    if kind is float:
        return value if math.isfinite(value) else ["float", repr(value)]
    if kind is complex:
        return ["complex", [repr(value.real), repr(value.imag)]]
    if kind in (bytes, bytearray):
        return [kind.__name__, value.hex()]
    if kind in (list, tuple, set, frozenset):
        return [kind.__name__, [pack(item, keep, depth + 1) for item in value]]
    if kind is dict:
        return ["dict", [[pack(key, keep, depth + 1), pack(item, keep, depth + 1)] for key, item in value.items()]]
    return ["foreign", msgspec.to_builtins(keep(value))]


def unpack(packed: Json, found: Callable[[Foreign], Any]) -> Any:
    """The value anew: of the very types that are named here, whatever the other side says."""
    if not isinstance(packed, list):
        return packed
    kind, content = packed
    if kind == "foreign":
        return found(msgspec.convert(content, Foreign))
    if isinstance(content, str):
        return _from_text(str(kind), content)
    items = cast("list[Json]", content)
    if kind == "complex":
        return complex(*(float(str(part)) for part in items))
    if kind == "dict":
        pairs = cast("list[list[Json]]", items)
        return {unpack(key, found): unpack(item, found) for key, item in pairs}
    return {"list": list, "tuple": tuple, "set": set, "frozenset": frozenset}[str(kind)](
        unpack(item, found) for item in items
    )


def _from_text(kind: str, text: str) -> Any:
    if kind == "int":
        return int(text, 16)
    if kind == "float":
        return float(text)
    return {"bytes": bytes, "bytearray": bytearray}[kind].fromhex(text)
