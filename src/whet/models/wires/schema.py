"""What providers ask of a JSON schema before they hold a model to it."""

from __future__ import annotations

from typing import Any, TypeGuard


def is_strict(schema: dict[str, Any]) -> bool:
    """Whether every object in it is closed and requires all of its properties, as OpenAI's strict mode demands."""
    properties = schema.get("properties")
    if schema.get("type") == "object" or properties is not None:
        if schema.get("additionalProperties") is not False or not _is_object(properties):
            return False
        if set(schema.get("required", ())) != set(properties):
            return False
    return all(is_strict(inner) for inner in _inner(schema))


_LISTS = ("anyOf", "allOf", "oneOf", "prefixItems")
_MAPS = ("properties", "$defs", "definitions")


def _inner(schema: dict[str, Any]) -> list[dict[str, Any]]:
    found: list[Any] = [schema.get("items")]
    for key in _LISTS:
        found.extend(schema.get(key, ()))
    for key in _MAPS:
        found.extend(schema.get(key, {}).values())
    return [inner for inner in found if _is_object(inner)]


def _is_object(value: object) -> TypeGuard[dict[str, Any]]:
    return isinstance(value, dict)


_DROPPED = frozenset(
    {"minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf"}
    | {"minLength", "maxLength", "maxItems", "uniqueItems", "minProperties", "maxProperties"}
)


def closed(schema: dict[str, Any]) -> dict[str, Any]:
    """The same schema with every object closed and without the bounds that Anthropic refuses.

    What is dropped is still checked by whoever asked for the schema.
    """
    kept: dict[str, Any] = {}
    for key, value in schema.items():
        if key in _DROPPED or (key == "minItems" and value not in (0, 1)):
            continue
        if key in _MAPS and _is_object(value):
            kept[key] = {name: closed(inner) if _is_object(inner) else inner for name, inner in value.items()}
        elif key in _LISTS and isinstance(value, list):
            kept[key] = [closed(inner) if _is_object(inner) else inner for inner in _list(value)]
        elif key == "items" and _is_object(value):
            kept[key] = closed(value)
        else:
            kept[key] = value
    if kept.get("type") == "object" or "properties" in kept:
        kept["additionalProperties"] = False
    return kept


def _list(value: Any) -> list[Any]:
    return value
