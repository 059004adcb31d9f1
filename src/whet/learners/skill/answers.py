"""What optimizer calls answer with: read leniently around the JSON, strictly inside it."""

from __future__ import annotations

import json
from typing import Any, TypeVar

import msgspec

from whet.core import SKILL_FILE, Edit, FailurePattern, Patch

A = TypeVar("A", bound=msgspec.Struct)


class EditAnswer(msgspec.Struct, frozen=True):
    op: str
    target: str | None = None
    content: str | None = None
    file: str | None = None

    def as_edit(self) -> Edit:
        return Edit(self.op, self.target or "", self.content or "", self.file or SKILL_FILE)


class PatternAnswer(msgspec.Struct, frozen=True):
    failure_type: str
    description: str = ""
    task_ids: tuple[str | int, ...] | None = None
    count: int | None = None

    def as_pattern(self) -> FailurePattern:
        ids = tuple(str(task) for task in self.task_ids or ())
        return FailurePattern(self.failure_type, self.description, ids, self.count or len(ids))


class PatchBody(msgspec.Struct, frozen=True):
    edits: tuple[EditAnswer, ...]
    reasoning: str = ""


class ReflectAnswer(msgspec.Struct, frozen=True):
    patch: PatchBody
    failure_summary: tuple[PatternAnswer, ...] | None = None

    def as_patch(self) -> Patch:
        return Patch(
            self.patch.reasoning,
            tuple(edit.as_edit() for edit in self.patch.edits),
            tuple(pattern.as_pattern() for pattern in self.failure_summary or ()),
        )


class MergeAnswer(msgspec.Struct, frozen=True):
    edits: tuple[EditAnswer, ...]
    reasoning: str = ""


class RankAnswer(msgspec.Struct, frozen=True):
    selected_indices: tuple[int, ...]
    reasoning: str = ""


def read_answer(text: str, kind: type[A]) -> A:
    """The first JSON object in `text` that is a `kind`. Raises ValueError that tells the model what is wrong."""
    problem = "there is no JSON object in it"
    for candidate in _objects(text):
        try:
            return msgspec.convert(candidate, kind)
        except msgspec.ValidationError as error:
            problem = str(error)
    raise ValueError(problem)


def _objects(text: str) -> list[Any]:
    """Every outermost JSON object in a text with anything around it."""
    decoder = json.JSONDecoder(strict=False)
    found: list[Any] = []
    position = 0
    while (start := text.find("{", position)) >= 0:
        try:
            value, position = decoder.raw_decode(text, start)
        except (json.JSONDecodeError, RecursionError):
            position = start + 1
            continue
        found.append(value)
    return found


def _object(**properties: Any) -> dict[str, Any]:
    return {"type": "object", "properties": properties, "required": list(properties), "additionalProperties": False}


def _list(items: dict[str, Any]) -> dict[str, Any]:
    return {"type": "array", "items": items}


_TEXT = {"type": "string"}
_EDIT = _object(
    op={"type": "string", "enum": ["append", "insert_after", "replace", "delete"]}, target=_TEXT, content=_TEXT
)
_PATTERN = _object(failure_type=_TEXT, description=_TEXT, task_ids=_list(_TEXT), count={"type": "integer"})

SCHEMAS: dict[type[msgspec.Struct], dict[str, Any]] = {
    ReflectAnswer: _object(patch=_object(reasoning=_TEXT, edits=_list(_EDIT)), failure_summary=_list(_PATTERN)),
    MergeAnswer: _object(reasoning=_TEXT, edits=_list(_EDIT)),
    RankAnswer: _object(reasoning=_TEXT, selected_indices=_list({"type": "integer"})),
}
"""For providers that can hold a model to a schema; `read_answer` does not rely on them."""
