"""A small, strict JSON schema validator: the part of the standard that tools and answers use.

Strict means: a boolean is not a number, an integer is written without a point, NaN and infinities are nothing, and a
keyword that is not known here is refused when the schema is checked, never skipped when a value is.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator
from typing import Any, TypeAlias, cast

import msgspec

Schema: TypeAlias = dict[str, Any]

TYPES = ("object", "array", "string", "number", "integer", "boolean", "null")
_NOTES = frozenset({"$schema", "$id", "title", "description", "default", "examples", "deprecated"})


def problems_of(value: object, schema: Schema | bool, path: str = "") -> list[str]:
    """What is wrong with `value`, in words for whoever wrote it; empty if nothing is."""
    if isinstance(schema, bool):
        return [] if schema else [f"{_here(path)} is not allowed"]
    return [problem for name, rule in _RULES.items() if name in schema for problem in rule(value, schema, path)]


def schema_problems(schema: object, path: str = "schema") -> list[str]:
    """What is wrong with the schema itself."""
    if isinstance(schema, bool):
        return []
    if not isinstance(schema, dict):
        return [f"{path} must be an object, not {type(schema).__name__}"]
    return list(_in_schema(cast("Schema", schema), path))


def example_of(schema: Schema) -> dict[str, Any]:
    """Arguments that a schema of type object asks for, as plain as can be. Patterns are not followed."""
    return cast("dict[str, Any]", _example(schema))


def same_json(one: object, other: object) -> bool:
    """Equality of JSON values: 1 is 1.0, but true is not 1."""
    if isinstance(one, bool) or isinstance(other, bool):
        return one is other
    if isinstance(one, dict) and isinstance(other, dict):
        left, right = cast("dict[str, object]", one), cast("dict[str, object]", other)
        return left.keys() == right.keys() and all(same_json(left[key], right[key]) for key in left)
    if isinstance(one, list) and isinstance(other, list):
        first, second = cast("list[object]", one), cast("list[object]", other)
        return len(first) == len(second) and all(map(same_json, first, second))
    return one == other


def shown(value: object, limit: int = 60) -> str:
    """A value as JSON, short enough for a message."""
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    try:
        text = msgspec.json.encode(value).decode()
    except (TypeError, UnicodeEncodeError):
        text = repr(value)
    return text if len(text) <= limit else f"{text[: limit - 1]}…"


def _example(schema: Schema) -> Any:
    if "const" in schema:
        return schema["const"]
    if "enum" in schema:
        return schema["enum"][0]
    if "anyOf" in schema:
        return _example(schema["anyOf"][0])
    kind = schema.get("type", "string")
    return _EXAMPLES[kind if isinstance(kind, str) else kind[0]](schema)


def _here(path: str) -> str:
    return f"'{path}'" if path else "the value"


def _type_of(value: object) -> str:
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "boolean"
    if isinstance(value, int):
        return "integer"
    if isinstance(value, float):
        return "number" if math.isfinite(value) else str(value)
    names: dict[type, str] = {str: "string", list: "array", dict: "object"}
    return names.get(type(value), type(value).__name__)


def _is_number(value: object) -> bool:
    return _type_of(value) in ("integer", "number")


def _check_type(value: object, schema: Schema, path: str) -> Iterator[str]:
    allowed: list[str] = [schema["type"]] if isinstance(schema["type"], str) else list(schema["type"])
    actual = _type_of(value)
    if actual in allowed or (actual == "integer" and "number" in allowed):
        return
    yield f"{_here(path)} must be {_one_of(allowed)}, not {actual} {shown(value)}"


def _one_of(types: list[str]) -> str:
    named = [f"an {name}" if name[0] in "aeiou" else name if name == "null" else f"a {name}" for name in types]
    return " or ".join(named)


def _check_enum(value: object, schema: Schema, path: str) -> Iterator[str]:
    if not any(same_json(value, choice) for choice in schema["enum"]):
        choices = ", ".join(shown(choice) for choice in schema["enum"])
        yield f"{_here(path)} must be one of {choices}, not {shown(value)}"


def _check_const(value: object, schema: Schema, path: str) -> Iterator[str]:
    if not same_json(value, schema["const"]):
        yield f"{_here(path)} must be {shown(schema['const'])}, not {shown(value)}"


def _check_required(value: object, schema: Schema, path: str) -> Iterator[str]:
    if isinstance(value, dict):
        yield from (f"{_here(_under(path, name))} is missing" for name in schema["required"] if name not in value)


def _check_properties(value: object, schema: Schema, path: str) -> Iterator[str]:
    if isinstance(value, dict):
        members = cast("dict[str, object]", value)
        for name, inner in schema["properties"].items():
            if name in members:
                yield from problems_of(members[name], inner, _under(path, name))


def _check_additional(value: object, schema: Schema, path: str) -> Iterator[str]:
    if not isinstance(value, dict):
        return
    known: Schema = schema.get("properties", {})
    for name, member in cast("dict[str, object]", value).items():
        if name in known:
            continue
        if schema["additionalProperties"] is False:
            names = ", ".join(known) or "none"
            yield f"{_here(_under(path, name))} is not known (known: {names})"
        else:
            yield from problems_of(member, schema["additionalProperties"], _under(path, name))


def _check_items(value: object, schema: Schema, path: str) -> Iterator[str]:
    if isinstance(value, list):
        for index, item in enumerate(cast("list[object]", value)):
            yield from problems_of(item, schema["items"], f"{path}[{index}]")


def _check_any_of(value: object, schema: Schema, path: str) -> Iterator[str]:
    tried = [problems_of(value, inner, path) for inner in schema["anyOf"]]
    if all(tried):
        yield "; or ".join(min(tried, key=len)) if len(tried) == 1 else _no_branch(tried, path)


def _no_branch(tried: list[list[str]], path: str) -> str:
    ways = "; ".join(dict.fromkeys(problems[0] for problems in tried))
    return f"{_here(path)} fits none of its forms: {ways}"


def _check_pattern(value: object, schema: Schema, path: str) -> Iterator[str]:
    if isinstance(value, str) and re.search(schema["pattern"], value) is None:
        yield f"{_here(path)} must match {schema['pattern']}, not {shown(value)}"


def _under(path: str, name: object) -> str:
    return f"{path}.{name}" if path else str(name)


Rule: TypeAlias = Callable[[object, Schema, str], Iterator[str]]


def _bound(keyword: str, breaks: Callable[[Any, Any], bool], words: str) -> Rule:
    def check(value: object, schema: Schema, path: str) -> Iterator[str]:
        if _is_number(value) and breaks(value, schema[keyword]):
            yield f"{_here(path)} must be {words} {schema[keyword]}, not {shown(value)}"

    return check


def _size(keyword: str, kind: type, breaks: Callable[[int, int], bool], words: str) -> Rule:
    def check(value: object, schema: Schema, path: str) -> Iterator[str]:
        if isinstance(value, kind) and breaks(len(cast("str", value)), schema[keyword]):
            yield f"{_here(path)} must have {words.format(schema[keyword])}, not {len(cast('str', value))}"

    return check


_RULES: dict[str, Rule] = {
    "type": _check_type,
    "enum": _check_enum,
    "const": _check_const,
    "required": _check_required,
    "properties": _check_properties,
    "additionalProperties": _check_additional,
    "items": _check_items,
    "anyOf": _check_any_of,
    "pattern": _check_pattern,
    "minimum": _bound("minimum", lambda value, bound: value < bound, "at least"),
    "maximum": _bound("maximum", lambda value, bound: value > bound, "at most"),
    "exclusiveMinimum": _bound("exclusiveMinimum", lambda value, bound: value <= bound, "more than"),
    "exclusiveMaximum": _bound("exclusiveMaximum", lambda value, bound: value >= bound, "less than"),
    "minLength": _size("minLength", str, lambda size, bound: size < bound, "at least {} characters"),
    "maxLength": _size("maxLength", str, lambda size, bound: size > bound, "at most {} characters"),
    "minItems": _size("minItems", list, lambda size, bound: size < bound, "at least {} items"),
    "maxItems": _size("maxItems", list, lambda size, bound: size > bound, "at most {} items"),
}


_EXAMPLES: dict[str, Callable[[Schema], Any]] = {
    "object": lambda schema: {name: _example(schema["properties"][name]) for name in schema.get("required", [])},
    "array": lambda schema: [_example(schema.get("items", {}))] * schema.get("minItems", 0),
    "string": lambda schema: "a" * max(1, schema.get("minLength", 1)),
    "integer": lambda schema: schema.get("minimum", 1),
    "number": lambda schema: schema.get("minimum", 1),
    "boolean": lambda schema: False,
    "null": lambda schema: None,
}


def _in_schema(schema: Schema, path: str) -> Iterator[str]:
    for name, setting in schema.items():
        if name not in _RULES and name not in _NOTES:
            yield f"{path}.{name} is not supported"
        elif name in _RULES:
            yield from _FORMS[name](setting, f"{path}.{name}")


def _form_type(setting: object, path: str) -> Iterator[str]:
    names = cast("list[object]", setting) if isinstance(setting, list) else [setting]
    for name in names:
        if name not in TYPES:
            yield f"{path} must be one of {', '.join(TYPES)}, not {shown(name)}"


def _form_list(setting: object, path: str) -> Iterator[str]:
    if not isinstance(setting, list) or not setting:
        yield f"{path} must be a list that is not empty"


def _form_names(setting: object, path: str) -> Iterator[str]:
    if not isinstance(setting, list) or not all(isinstance(name, str) for name in cast("list[object]", setting)):
        yield f"{path} must be a list of names"


def _form_properties(setting: object, path: str) -> Iterator[str]:
    if not isinstance(setting, dict):
        yield f"{path} must be an object"
        return
    for name, inner in cast("Schema", setting).items():
        yield from schema_problems(inner, f"{path}.{name}")


def _form_branches(setting: object, path: str) -> Iterator[str]:
    yield from _form_list(setting, path)
    if isinstance(setting, list):
        for index, inner in enumerate(cast("list[object]", setting)):
            yield from schema_problems(inner, f"{path}[{index}]")


def _form_schema(setting: object, path: str) -> Iterator[str]:
    yield from schema_problems(setting, path)


def _form_pattern(setting: object, path: str) -> Iterator[str]:
    if not isinstance(setting, str):
        yield f"{path} must be a regular expression"
        return
    try:
        re.compile(setting)
    except re.error as error:
        yield f"{path} is not a regular expression: {error}"


def _form_number(setting: object, path: str) -> Iterator[str]:
    if not _is_number(setting):
        yield f"{path} must be a number"


def _form_count(setting: object, path: str) -> Iterator[str]:
    if _type_of(setting) != "integer" or cast("int", setting) < 0:
        yield f"{path} must be a count"


def _form_any(setting: object, path: str) -> Iterator[str]:
    yield from ()


_FORMS: dict[str, Callable[[object, str], Iterator[str]]] = {
    "type": _form_type,
    "enum": _form_list,
    "const": _form_any,
    "required": _form_names,
    "properties": _form_properties,
    "additionalProperties": _form_schema,
    "items": _form_schema,
    "anyOf": _form_branches,
    "pattern": _form_pattern,
    **dict.fromkeys(("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum"), _form_number),
    **dict.fromkeys(("minLength", "maxLength", "minItems", "maxItems"), _form_count),
}
