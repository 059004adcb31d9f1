"""What optimizer calls answer with: read leniently around the JSON, strictly inside it."""

from __future__ import annotations

import json
from typing import Any, TypeVar

import msgspec

from whet.core import SKILL_FILE, Edit, FailurePattern
from whet.learners.skill.settings import UpdateMode

A = TypeVar("A", bound=msgspec.Struct)

SUGGEST = "suggest"
REWRITE = "rewrite"
"""In the rewrite modes an item is an edit of one of these operations: its target is a title, its content the text."""


class EditAnswer(msgspec.Struct, frozen=True):
    op: str
    target: str | None = None
    content: str | None = None
    file: str | None = None

    def as_edit(self) -> Edit:
        return Edit(self.op, self.target or "", self.content or "", self.file or SKILL_FILE)


class SuggestionAnswer(msgspec.Struct, frozen=True):
    instruction: str
    title: str = ""
    type: str = ""
    priority: str | int | None = None

    def as_edit(self) -> Edit:
        return Edit(SUGGEST, self.title, self.instruction)


class DocumentAnswer(msgspec.Struct, frozen=True):
    new_skill: str
    title: str = ""
    change_summary: tuple[str, ...] | str = ()

    def as_edit(self) -> Edit:
        return Edit(REWRITE, self.title, self.new_skill)


class Items(msgspec.Struct, frozen=True):
    """Changes of whichever kind the update mode asks for."""

    reasoning: str = ""
    edits: tuple[EditAnswer, ...] | None = None
    revise_suggestions: tuple[SuggestionAnswer, ...] | None = None
    skill_candidates: tuple[DocumentAnswer, ...] | None = None

    def of(self, mode: UpdateMode) -> tuple[Edit, ...]:
        found = self.found(mode)
        return tuple(item.as_edit() for item in found or ())

    def found(self, mode: UpdateMode) -> tuple[EditAnswer | SuggestionAnswer | DocumentAnswer, ...] | None:
        match mode:
            case UpdateMode.PATCH:
                return self.edits
            case UpdateMode.REWRITE:
                return self.revise_suggestions
            case UpdateMode.FULL_REWRITE:
                return self.skill_candidates


ITEM_NAMES = {
    UpdateMode.PATCH: "edits",
    UpdateMode.REWRITE: "revise_suggestions",
    UpdateMode.FULL_REWRITE: "skill_candidates",
}


class PatternAnswer(msgspec.Struct, frozen=True):
    failure_type: str
    description: str = ""
    task_ids: tuple[str | int, ...] | None = None
    count: int | None = None

    def as_pattern(self) -> FailurePattern:
        ids = tuple(str(task) for task in self.task_ids or ())
        return FailurePattern(self.failure_type, self.description, ids, self.count or len(ids))


class ReflectAnswer(msgspec.Struct, frozen=True):
    patch: Items
    failure_summary: tuple[PatternAnswer, ...] | None = None
    appendix_notes: tuple[str, ...] | None = None


class MergeAnswer(Items, frozen=True):
    pass


class TidyAnswer(msgspec.Struct, frozen=True):
    """Always edits, whatever the update mode."""

    edits: tuple[EditAnswer, ...]
    reasoning: str = ""


class RankAnswer(msgspec.Struct, frozen=True):
    selected_indices: tuple[int, ...]
    reasoning: str = ""


class BudgetAnswer(msgspec.Struct, frozen=True):
    learning_rate: int | float | str | None = None
    reasoning: str = ""

    @property
    def edits(self) -> int:
        """0 if it is no number."""
        try:
            return max(0, int(float(self.learning_rate or 0)))
        except (ValueError, OverflowError):
            return 0


class RewriteAnswer(msgspec.Struct, frozen=True):
    new_skill: str
    change_summary: tuple[str, ...] | str = ()


class SlowUpdateAnswer(msgspec.Struct, frozen=True):
    slow_update_content: str
    reasoning: str = ""


class MemoryAnswer(msgspec.Struct, frozen=True):
    meta_skill_content: str
    reasoning: str = ""


class ConsolidateAnswer(msgspec.Struct, frozen=True):
    appendix_notes: tuple[str, ...]


def read_answer(text: str, kind: type[A], mode: UpdateMode = UpdateMode.PATCH) -> A:
    """The first JSON object in `text` that is a `kind`. Raises ValueError that tells the model what is wrong."""
    problem = "there is no JSON object in it"
    for candidate in _objects(text):
        try:
            answer = msgspec.convert(candidate, kind)
            # What cannot be written down cannot be used: half a character, or a number beyond all bounds.
            msgspec.msgpack.encode(answer)
        except (msgspec.ValidationError, UnicodeEncodeError, OverflowError) as error:
            problem = str(error)
            continue
        items = answer.patch if isinstance(answer, ReflectAnswer) else answer
        if not isinstance(items, Items) or items.found(mode) is not None:
            return answer
        problem = f"`{ITEM_NAMES[mode]}` is missing"
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
