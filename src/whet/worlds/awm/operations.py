"""The tools of a program, from its OpenAPI description; and a call of one as a request. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, cast
from urllib.parse import quote, urlencode

import msgspec

from whet.core import Json, ToolSpec
from whet.worlds.awm.inside.messages import Call
from whet.worlds.schema import schema_problems

METHODS = ("get", "post", "put", "patch", "delete")
_KEPT = frozenset(
    {
        "type",
        "properties",
        "required",
        "items",
        "enum",
        "const",
        "anyOf",
        "description",
        "default",
        "minimum",
        "maximum",
    }
    | {"exclusiveMinimum", "exclusiveMaximum", "minLength", "maxLength", "pattern", "minItems", "maxItems"}
    | {"uniqueItems", "additionalProperties"}
)
"""Keywords that whet checks; a program's own schema still decides in the end, so others may go."""
_DEEPEST = 12


class Tool(msgspec.Struct, frozen=True):
    spec: ToolSpec
    method: str
    path: str
    in_path: frozenset[str]
    in_query: frozenset[str]
    has_body: bool
    whole_body: str = ""
    """The one argument that is the body itself, where that is no object."""

    def request(self, arguments: Mapping[str, Json]) -> Call:
        path = self.path
        for name in self.in_path:
            path = path.replace(f"{{{name}}}", quote(_text(arguments.get(name)), safe=""))
        query = [(name, arguments[name]) for name in arguments if name in self.in_query and arguments[name] is not None]
        taken = self.in_path | self.in_query
        body = {name: value for name, value in arguments.items() if name not in taken}
        content = body.get(self.whole_body) if self.whole_body else body
        return Call(
            self.method,
            path,
            urlencode([(name, text) for name, value in query for text in _texts(value)]),
            msgspec.json.encode(content) if self.has_body else None,
        )


class Described(msgspec.Struct, frozen=True):
    tools: tuple[Tool, ...]
    problems: tuple[str, ...]


def tools_from(openapi: dict[str, Any]) -> Described:
    """One tool an operation, named by its operation id, with all its arguments side by side."""
    tools: dict[str, Tool] = {}
    problems: list[str] = []
    for method, path, operation in _operations(openapi):
        name = str(operation.get("operationId") or f"{method}_{path}")
        if name in tools:
            problems.append(f"two operations are named {name}: {method.upper()} {path} is hidden")
            continue
        tool = _tool(name, method, path, operation, openapi)
        wrong = schema_problems(tool.spec.parameters, name)
        if wrong:
            problems.append(wrong[0])
        tools[name] = tool
    return Described(tuple(tools.values()), tuple(problems))


def _operations(openapi: dict[str, Any]) -> Iterator[tuple[str, str, dict[str, Any]]]:
    for path, methods in _members(openapi.get("paths")).items():
        for method, operation in _members(methods).items():
            if method in METHODS:
                yield method, path, _members(operation)


def _tool(name: str, method: str, path: str, operation: dict[str, Any], openapi: dict[str, Any]) -> Tool:
    properties: dict[str, Any] = {}
    required: list[str] = []
    places: dict[str, set[str]] = {"path": set(), "query": set()}
    for parameter in map(_members, _items(operation.get("parameters"))):
        place, own = str(parameter.get("in")), str(parameter.get("name", ""))
        if place in places and own:
            places[place].add(own)
            properties[own] = _described(_plain(parameter.get("schema"), openapi), parameter.get("description"))
            required += [own] if parameter.get("required") and own not in required else []
    body, must = _body_schema(operation, openapi)
    whole = ""
    if body is not None and body.get("type") == "object" and isinstance(body.get("properties"), dict):
        for own, schema in body["properties"].items():
            properties.setdefault(own, schema)
        wanted = [one for one in _items(body.get("required")) if isinstance(one, str)] if must else []
        required += [one for one in wanted if one not in required]
    elif body is not None:
        whole = "body"
        properties[whole] = body
        required += [whole] if must else []
    parameters = {"type": "object", "properties": properties, "required": required, "additionalProperties": False}
    spec = ToolSpec(name, _description(operation), parameters)
    taken = (frozenset(places["path"]), frozenset(places["query"]))
    return Tool(spec, method.upper(), path, *taken, body is not None, whole)


def _body_schema(operation: dict[str, Any], openapi: dict[str, Any]) -> tuple[dict[str, Any] | None, bool]:
    if not isinstance(operation.get("requestBody"), dict):
        return None, False
    body = _members(operation["requestBody"])
    content = _members(_members(body.get("content")).get("application/json"))
    return _plain(content.get("schema"), openapi), bool(body.get("required"))


def _members(value: object) -> dict[str, Any]:
    """A description comes from foreign code: what should be an object may be anything."""
    return cast("dict[str, Any]", value) if isinstance(value, dict) else {}


def _items(value: object) -> list[Any]:
    return cast("list[Any]", value) if isinstance(value, list) else []


def _description(operation: dict[str, Any]) -> str:
    parts = [str(operation.get(key, "")).strip() for key in ("summary", "description")]
    return "\n\n".join(dict.fromkeys(part for part in parts if part))


def _described(schema: dict[str, Any], text: object) -> dict[str, Any]:
    return {**schema, "description": text} if isinstance(text, str) and text else schema


def _plain(schema: object, openapi: dict[str, Any], depth: int = 0) -> dict[str, Any]:
    """Without references, and with those keywords only that whet checks."""
    node = _members(schema)
    if not node or depth > _DEEPEST:
        return {}
    if "$ref" in node:
        return _plain(_referred(str(node["$ref"]), openapi), openapi, depth + 1)
    parts = _items(node.get("allOf"))
    if len(parts) == 1:
        return {**_plain(parts[0], openapi, depth + 1), **_plain({**node, "allOf": []}, openapi, depth)}
    plain: dict[str, Any] = {}
    for key, value in node.items():
        if key not in _KEPT:
            continue
        if key == "properties":
            plain[key] = {name: _plain(inner, openapi, depth + 1) for name, inner in _members(value).items()}
        elif key == "items" or (key == "additionalProperties" and not isinstance(value, bool)):
            plain[key] = _plain(value, openapi, depth + 1)
        elif key == "anyOf":
            plain[key] = [_plain(inner, openapi, depth + 1) for inner in _items(value)]
        else:
            plain[key] = value
    return plain


def _referred(reference: str, openapi: dict[str, Any]) -> dict[str, Any]:
    found = openapi
    for part in reference.removeprefix("#/").split("/"):
        found = _members(found.get(part))
    return found


def _texts(value: Json) -> list[str]:
    return [_text(one) for one in value] if isinstance(value, list) else [_text(value)]


def _text(value: Json) -> str:
    """As a URL says it."""
    if isinstance(value, bool):
        return "true" if value else "false"
    return value if isinstance(value, str) else msgspec.json.encode(value).decode()
