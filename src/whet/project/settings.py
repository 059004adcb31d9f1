"""Tables of whet.toml into frozen structs, with errors that say the path, what was expected and the nearest right name.

Knows nothing of what the settings mean.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from difflib import get_close_matches
from typing import Any, TypeVar

import msgspec
from msgspec import inspect as shape

from whet.core import ConfigError

Settings = TypeVar("Settings", bound=msgspec.Struct)

_AT = re.compile(r" - at (?:the )?(?:`(?P<path>[^`]*)`|key in `(?P<key>[^`]*)`)$")
_UNKNOWN_KEY = re.compile(r"^Object contains unknown field `(?P<key>.*)`$")
_MISSING_KEY = re.compile(r"^Object missing required field `(?P<key>.*)`$")
_BAD_VALUE = re.compile(r"^Invalid (?:enum )?value '?(?P<value>.*?)'?$")


def decode_settings(kind: type[Settings], table: Mapping[str, Any], *, where: str) -> Settings:
    """`table` as a `kind`; `where` is the path of the table in the configuration."""
    try:
        return msgspec.convert(dict(table), kind)
    except msgspec.ValidationError as error:
        raise _explained(str(error), kind, where) from error


def nearest(wanted: str, known: Iterable[str]) -> str:
    """A hint that names the nearest of `known`, or all of them where none is near."""
    names = sorted(known)
    near = get_close_matches(wanted, names, n=1, cutoff=0.6)
    if near:
        return f"Did you mean '{near[0]}'?"
    return f"Known here: {', '.join(names)}" if names else "There are none"


def _explained(message: str, kind: type[msgspec.Struct], where: str) -> ConfigError:
    text, steps = _split_path(message)
    path = ".".join(part for part in (where, *steps) if part)
    if found := _UNKNOWN_KEY.match(text):
        keys = {field.encode_name for struct in _structs_at(kind, steps) for field in struct.fields}
        return ConfigError(f"{path}.{found['key']}: there is no such setting", hint=nearest(found["key"], keys))
    if found := _MISSING_KEY.match(text):
        return ConfigError(f"{path}.{found['key']}: missing", hint="It has no default")
    if found := _BAD_VALUE.match(text):
        choices = _choices_at(kind, steps)
        return ConfigError(f"{path}: there is no '{found['value']}' here", hint=nearest(found["value"], choices))
    return ConfigError(f"{path}: {text[:1].lower()}{text[1:]}")


def _split_path(message: str) -> tuple[str, list[str]]:
    """msgspec writes "what - at `$.a.b`"; the root has no path at all."""
    at = _AT.search(message)
    if at is None:
        return message, []
    path = (at["path"] or at["key"] or "$").replace("[...]", "[*]")
    return message[: at.start()], [step for step in path.lstrip("$").split(".") if step]


def _structs_at(kind: type[msgspec.Struct], steps: list[str]) -> list[shape.StructType]:
    """The structs that may stand at this path: more than one where a setting is a union."""
    here: list[shape.Type] = [shape.type_info(kind)]
    for step in steps:
        here = [inner for outer in _structs(here) for inner in _fields(outer, step.split("[")[0])]
    return _structs(here)


def _choices_at(kind: type[msgspec.Struct], steps: list[str]) -> set[str]:
    """The values that may stand at this path: of an enum, a literal, or the tag of a union."""
    found: set[str] = set()
    for struct in _structs_at(kind, steps[:-1]):
        if steps and struct.tag_field == steps[-1]:
            found.add(str(struct.tag))
        for inner in _fields(struct, steps[-1].split("[")[0]) if steps else []:
            found |= _choices(inner)
    return found


def _choices(kind: shape.Type) -> set[str]:
    if isinstance(kind, shape.EnumType):
        return {str(member.value) for member in kind.cls}
    if isinstance(kind, shape.LiteralType):
        return {str(value) for value in kind.values}
    if isinstance(kind, shape.UnionType):
        return {choice for inner in kind.types for choice in _choices(inner)}
    if isinstance(kind, shape.ListType | shape.VarTupleType):
        return _choices(kind.item_type)
    return set()


def _structs(kinds: Iterable[shape.Type]) -> list[shape.StructType]:
    found: list[shape.StructType] = []
    for kind in kinds:
        if isinstance(kind, shape.StructType):
            found.append(kind)
        elif isinstance(kind, shape.UnionType):
            found.extend(_structs(kind.types))
        elif isinstance(kind, shape.ListType | shape.VarTupleType):
            found.extend(_structs([kind.item_type]))
        elif isinstance(kind, shape.DictType):
            found.extend(_structs([kind.value_type]))
    return found


def _fields(struct: shape.StructType, name: str) -> list[shape.Type]:
    return [field.type for field in struct.fields if field.encode_name == name]
