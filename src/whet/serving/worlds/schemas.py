"""What the server says of itself: the JSON schemas of its messages, and the list of its paths. Pure."""

from __future__ import annotations

from functools import cache
from typing import Any

_OBJECT: dict[str, Any] = {"type": "object"}
_TEXT: dict[str, Any] = {"type": "string"}


@cache
def schemas() -> dict[str, Any]:
    """The body of GET /schema."""
    return {
        "action": {
            "title": "Action",
            "type": "object",
            "description": "A call of a tool, a look at the list of tools, or the answer that ends the episode.",
            "properties": {
                "type": {"type": "string", "enum": ["call_tool", "list_tools", "answer", ""]},
                "tool_name": _TEXT,
                "arguments": _OBJECT,
                "answer": {"type": ["string", "null"]},
                "metadata": _OBJECT,
            },
            "additionalProperties": False,
        },
        "observation": {
            "title": "Observation",
            "type": "object",
            "properties": {
                "tool_name": _TEXT,
                "result": {"type": ["string", "null"]},
                "error": {"type": ["object", "null"]},
                "tools": {"type": "array", "items": _OBJECT},
                "metadata": _OBJECT,
            },
        },
        "reset_observation": {
            "title": "ResetObservation",
            "type": "object",
            "properties": {"brief": _TEXT, "images": {"type": "array"}, "answer_schema": _OBJECT, "metadata": _OBJECT},
            "required": ["brief"],
        },
        "state": {
            "title": "State",
            "type": "object",
            "properties": {
                "episode_id": {"type": ["string", "null"]},
                "step_count": {"type": "integer", "minimum": 0},
                "task_id": _TEXT,
                "split": _TEXT,
                "done": {"type": "boolean"},
                "lost": _TEXT,
                "verdict": {"type": ["object", "null"]},
            },
        },
    }


def openapi(world: str) -> dict[str, Any]:
    """Only what tools look for: which paths there are."""
    gets = ("/health", "/metadata", "/schema", "/state", "/list_environments", "/{env_name}/splits")
    posts = (
        "/reset",
        "/step",
        "/mcp",
        *(f"/{{env_name}}/{name}" for name in ("tasks", "num_tasks", "task", "task_range")),
    )
    answered = {"responses": {"200": {"description": "JSON"}}}
    paths = {path: {"get": answered} for path in gets} | {path: {"post": answered} for path in posts}
    return {"openapi": "3.1.0", "info": {"title": f"World {world}", "version": "1"}, "paths": paths}
