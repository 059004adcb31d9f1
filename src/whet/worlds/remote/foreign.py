"""What others' tools and environments say, as our types. Pure."""

from __future__ import annotations

from typing import Any, cast

import msgspec

from whet.core import Json, ToolFault, ToolResult, ToolSpec, WorldFault
from whet.project import nearest
from whet.worlds.schema import Schema, problems_of, schema_problems
from whet.worlds.text import as_text
from whet.worlds.tools import invalid_arguments, unknown_tool

_NOT_FOR_AGENTS = ("reward", "done", "metadata")
_NESTED = ("properties",)


class Toolbox:
    """The tools that a peer lists, or those that are wanted of them, and what is wrong with a call to one."""

    def __init__(self, listed: object, where: str, wanted: tuple[str, ...] = ()) -> None:
        specs = [_tool(each, where) for each in _list(listed, f"{where}: its list of tools")]
        named = {spec.name: spec for spec in specs}
        if len(named) < len(specs):
            raise WorldFault(f"{where} lists two tools of one name")
        missing = [name for name in wanted if name not in named]
        if missing:
            raise WorldFault(f"{where} has no tool '{missing[0]}'", hint=nearest(missing[0], named))
        self.specs = tuple(named[name] for name in wanted or named)
        self._checks = {spec.name: understood(spec.parameters) for spec in self.specs}

    def problem(self, name: str, arguments: dict[str, Json]) -> ToolResult | None:
        schema = self._checks.get(name)
        if schema is None:
            return unknown_tool(name, list(self._checks))
        problems = problems_of(arguments, schema)
        return invalid_arguments(name, problems) if problems else None


def understood(schema: object) -> Schema:
    """As much of a schema as we can check; the rest is the peer's to check. Others' patterns are never run."""
    if not isinstance(schema, dict):
        return {}
    kept: Schema = {}
    for name, setting in cast("Schema", schema).items():
        if name == "pattern":
            continue
        inner = _inner(name, setting)
        if not schema_problems({name: inner}):
            kept[name] = inner
    return kept


def text_of(content: object) -> str:
    """The blocks of an MCP result as text."""
    if not isinstance(content, list):
        return as_text(cast("Json", content))
    return "\n".join(_block(block) for block in cast("list[object]", content))


def tool_answer(result: object) -> ToolResult:
    """What a tool returned: plain text or JSON, or an MCP result with its blocks."""
    if isinstance(result, str):
        return ToolResult(result)
    if not isinstance(result, dict) or "content" not in result:
        return ToolResult("done" if result is None else as_text(cast("Json", result)))
    members = cast("dict[str, Any]", result)
    failed = members.get("isError", members.get("is_error")) is True
    structured = members.get("structuredContent", members.get("structured_content"))
    text = text_of(members["content"]) or (as_text(structured) if structured is not None else "done")
    return ToolResult(text, ToolFault.REFUSED if failed else None)


def seen_text(observation: dict[str, Json]) -> str:
    """An observation as an agent may see it: without what is meant for trainers."""
    shown = {name: value for name, value in observation.items() if name not in _NOT_FOR_AGENTS}
    if len(shown) == 1:
        return as_text(next(iter(shown.values())))
    return as_text(shown) if shown else ""


def without_metadata(schema: object) -> Schema:
    """An action's schema as the parameters of a tool."""
    members = cast("Schema", schema) if isinstance(schema, dict) else {}
    properties: object = members.get("properties", {})
    named = cast("Schema", properties) if isinstance(properties, dict) else {}
    kept = {name: inner for name, inner in named.items() if name != "metadata"}
    return {**members, "type": "object", "properties": kept}


def _inner(name: str, setting: object) -> object:
    if name in _NESTED and isinstance(setting, dict):
        return {key: understood(value) for key, value in cast("Schema", setting).items()}
    if name in ("items", "additionalProperties") and isinstance(setting, dict):
        return understood(cast("object", setting))
    if name == "anyOf" and isinstance(setting, list):
        return [understood(each) for each in cast("list[object]", setting)]
    return setting


def _tool(listed: object, where: str) -> ToolSpec:
    if not isinstance(listed, dict):
        raise WorldFault(f"{where}: a tool of its list is no object")
    fields = cast("dict[str, Any]", listed)
    name, description = fields.get("name"), fields.get("description")
    schema: object = fields.get("input_schema", fields.get("inputSchema"))
    if not isinstance(name, str) or not name:
        raise WorldFault(f"{where}: a tool of its list has no name")
    parameters = cast("Schema", schema) if isinstance(schema, dict) else {}
    return ToolSpec(name, description if isinstance(description, str) else "", {"type": "object", **parameters})


def _list(listed: object, what: str) -> list[object]:
    if not isinstance(listed, list):
        raise WorldFault(f"{what} is no list")
    return cast("list[object]", listed)


def _block(block: object) -> str:
    if not isinstance(block, dict):
        return as_text(cast("Json", block))
    fields = cast("dict[str, Any]", block)
    resource: object = fields.get("resource")
    text: object = fields.get(
        "text", cast("dict[str, Any]", resource).get("text") if isinstance(resource, dict) else ""
    )
    if isinstance(text, str) and text:
        return text
    if fields.get("type") in ("image", "audio"):
        return f"[{fields['type']} {fields.get('mimeType', fields.get('mime_type', ''))}]"
    return msgspec.json.encode(fields).decode()
