"""What the fields of a settings struct mean: names, types and defaults from the struct, texts from its source.

A field's text is the docstring under it, so that a setting is documented where it is defined and nowhere else.
"""

from __future__ import annotations

import ast
import inspect
import textwrap
from collections.abc import Iterator, Sequence
from enum import Enum
from typing import Any, cast

import msgspec
from msgspec import inspect as shape


class Field(msgspec.Struct, frozen=True):
    name: str
    kind: str
    """Its type, in words."""
    default: str
    """As it would be written in TOML; empty where there is none."""
    required: bool
    text: str


def fields_of(kind: type[msgspec.Struct]) -> list[Field]:
    """The fields in the order of their definition, inherited ones after a struct's own."""
    texts = field_texts(kind)
    types = {field.name: field.type for field in _shape_of(kind).fields}
    found = {field.name: _field(field, types[field.name], texts.get(field.name, "")) for field in _all(kind)}
    return [found[name] for name in _definition_order(kind, found)]


def summary_of(kind: type[msgspec.Struct]) -> str:
    """The first paragraph of a struct's docstring; nothing where msgspec or Python made one up."""
    return " ".join((kind.__dict__.get("__doc__") or "").partition("\n\n")[0].split())


def field_texts(kind: type) -> dict[str, str]:
    """The docstring under each field, of the struct and of what it inherits from."""
    texts: dict[str, str] = {}
    for owner in reversed(kind.__mro__):
        texts |= dict(_texts_in(owner))
    return texts


def toml_value(value: Any) -> str:
    """A default as TOML; empty for None, which TOML cannot say."""
    if value is None:
        return ""
    if isinstance(value, Enum):
        return f'"{value.value}"'
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        return f'"{value}"'
    if isinstance(value, msgspec.Struct):
        given = {name: toml_value(getattr(value, name)) for name in value.__struct_fields__}
        return "{" + ", ".join(f"{name} = {text}" for name, text in given.items() if text) + "}"
    if isinstance(value, tuple | list):
        return "[" + ", ".join(toml_value(item) for item in cast("Sequence[Any]", value)) + "]"
    if isinstance(value, dict):
        return "{}"
    return f"{value:_}" if isinstance(value, int) and value >= 10_000 else repr(value)


def in_words(kind: shape.Type) -> str:
    """A type as somebody would say it who writes TOML."""
    match kind:
        case shape.BoolType():
            return "true or false"
        case shape.IntType():
            return "whole number"
        case shape.FloatType():
            return "number"
        case shape.StrType():
            return "text"
        case shape.EnumType(cls=cls):
            return _either([f'"{member.value}"' for member in cls])
        case shape.LiteralType(values=values):
            return _either([f'"{value}"' for value in values])
        case shape.UnionType(types=types):
            return _either([in_words(inner) for inner in types if not isinstance(inner, shape.NoneType)])
        case shape.VarTupleType(item_type=item) | shape.ListType(item_type=item):
            return f"list of {in_words(item)}"
        case shape.StructType() | shape.DictType():
            return "table"
        case _:
            return "anything"


def _either(choices: list[str]) -> str:
    *others, last = dict.fromkeys(choices)
    return f"{', '.join(others)} or {last}" if others else last


def _field(field: msgspec.structs.FieldInfo, kind: shape.Type, text: str) -> Field:
    default: Any = field.default
    if field.default_factory is not msgspec.NODEFAULT:
        default = field.default_factory()
    shown = "" if default is msgspec.NODEFAULT else toml_value(default)
    return Field(field.encode_name, in_words(kind), shown, field.required, text)


def _all(kind: type[msgspec.Struct]) -> tuple[msgspec.structs.FieldInfo, ...]:
    return msgspec.structs.fields(kind)


def _shape_of(kind: type[msgspec.Struct]) -> shape.StructType:
    described = shape.type_info(kind)
    assert isinstance(described, shape.StructType)
    return described


def _definition_order(kind: type[msgspec.Struct], known: dict[str, Field]) -> list[str]:
    """Own fields first: what is particular to a table is what its reader looks for."""
    order = [name for owner in kind.__mro__ for name in inspect.get_annotations(owner) if name in known]
    return list(dict.fromkeys([*order, *known]))


def _texts_in(owner: type) -> Iterator[tuple[str, str]]:
    try:
        source = textwrap.dedent(inspect.getsource(owner))
    except (OSError, TypeError):
        return  # made at run time, or in C
    body = ast.parse(source).body[0]
    if not isinstance(body, ast.ClassDef):
        return
    for statement, following in zip(body.body, body.body[1:], strict=False):
        if not isinstance(statement, ast.AnnAssign) or not isinstance(statement.target, ast.Name):
            continue
        if isinstance(following, ast.Expr) and isinstance(following.value, ast.Constant):
            said = following.value.value
            if isinstance(said, str):
                yield statement.target.id, " ".join(inspect.cleandoc(said).split())
