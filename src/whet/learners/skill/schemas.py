"""JSON schemas of the answers, for providers that can hold a model to one. `read_answer` does not rely on them."""

from __future__ import annotations

from typing import Any

import msgspec

from whet.learners.skill.answers import (
    ITEM_NAMES,
    BudgetAnswer,
    ConsolidateAnswer,
    MemoryAnswer,
    MergeAnswer,
    RankAnswer,
    ReflectAnswer,
    RewriteAnswer,
    SlowUpdateAnswer,
    TidyAnswer,
)
from whet.learners.skill.settings import UpdateMode

Schema = dict[str, Any]


def answer_schema(kind: type[msgspec.Struct], mode: UpdateMode, *, notes: bool = False) -> Schema:
    """`notes`: reminders for the appendix are asked for too."""
    if kind is ReflectAnswer:
        patch = _object({"reasoning": _TEXT, ITEM_NAMES[mode]: _list(_ITEMS[mode])})
        wanted = {"patch": patch, "failure_summary": _list(_PATTERN)}
        return _object(wanted | {"appendix_notes": _list(_TEXT)} if notes else wanted)
    if kind is TidyAnswer:
        return _object({"reasoning": _TEXT, "edits": _list(_ITEMS[UpdateMode.PATCH])})
    if kind is MergeAnswer:
        return _object({"reasoning": _TEXT, ITEM_NAMES[mode]: _list(_ITEMS[mode])})
    return _FIXED[kind]


def _object(properties: Schema) -> Schema:
    return {"type": "object", "properties": properties, "required": list(properties), "additionalProperties": False}


def _list(items: Schema) -> Schema:
    return {"type": "array", "items": items}


_TEXT: Schema = {"type": "string"}
_NUMBER: Schema = {"type": "integer"}
_OPS: Schema = {"type": "string", "enum": ["append", "insert_after", "replace", "delete"]}
_PATTERN = _object({"failure_type": _TEXT, "description": _TEXT, "task_ids": _list(_TEXT), "count": _NUMBER})
_ITEMS = {
    UpdateMode.PATCH: _object({"op": _OPS, "target": _TEXT, "content": _TEXT, "file": _TEXT}),
    UpdateMode.REWRITE: _object({"type": _TEXT, "title": _TEXT, "instruction": _TEXT, "priority": _TEXT}),
    UpdateMode.FULL_REWRITE: _object({"title": _TEXT, "new_skill": _TEXT, "change_summary": _list(_TEXT)}),
}
_FIXED: dict[type[msgspec.Struct], Schema] = {
    RankAnswer: _object({"reasoning": _TEXT, "selected_indices": _list(_NUMBER)}),
    BudgetAnswer: _object({"reasoning": _TEXT, "learning_rate": _NUMBER}),
    RewriteAnswer: _object({"new_skill": _TEXT, "change_summary": _list(_TEXT)}),
    SlowUpdateAnswer: _object({"reasoning": _TEXT, "slow_update_content": _TEXT}),
    MemoryAnswer: _object({"reasoning": _TEXT, "meta_skill_content": _TEXT}),
    ConsolidateAnswer: _object({"appendix_notes": _list(_TEXT)}),
}
