"""The document being sharpened, and the bounded changes made to it."""

from __future__ import annotations

from enum import StrEnum
from functools import cached_property

import msgspec

from whet.core.content import fingerprint

SKILL_FILE = "SKILL.md"


class Skill(msgspec.Struct, frozen=True, dict=True):
    """An Agent Skills package by its text files; `SKILL.md` is at its head. Do not change `files` in place."""

    files: dict[str, str]

    @classmethod
    def from_text(cls, text: str) -> Skill:
        return cls({SKILL_FILE: text})

    @property
    def text(self) -> str:
        return self.files.get(SKILL_FILE, "")

    def with_file(self, path: str, text: str) -> Skill:
        return Skill({**self.files, path: text})

    @cached_property
    def fingerprint(self) -> str:
        return fingerprint("skill", self.files)


class Op(StrEnum):
    APPEND = "append"
    INSERT_AFTER = "insert_after"
    REPLACE = "replace"
    DELETE = "delete"


class Source(StrEnum):
    FAILURE = "failure"
    SUCCESS = "success"


class Edit(msgspec.Struct, frozen=True, omit_defaults=True):
    """One bounded change. `op` is text, because a model wrote it: an unknown one is a status, not a crash."""

    op: str
    target: str = ""
    content: str = ""
    file: str = SKILL_FILE
    source: Source | None = None
    support: int = 0
    """How many trajectories stood behind it."""
    tasks: tuple[str, ...] = ()
    """Whose trajectories those were, as far as it is known."""
    merge_level: int = 0


class FailurePattern(msgspec.Struct, frozen=True, omit_defaults=True):
    failure_type: str
    description: str = ""
    task_ids: tuple[str, ...] = ()
    count: int = 0


class Patch(msgspec.Struct, frozen=True, omit_defaults=True):
    """A reasoned list of edits."""

    reasoning: str = ""
    edits: tuple[Edit, ...] = ()
    failure_summary: tuple[FailurePattern, ...] = ()


class EditStatus(StrEnum):
    APPLIED = "applied"
    APPLIED_FALLBACK = "applied_fallback"
    SKIPPED_NOT_FOUND = "skipped_not_found"
    SKIPPED_NO_TARGET = "skipped_no_target"
    SKIPPED_PROTECTED = "skipped_protected"
    SKIPPED_UNKNOWN_OP = "skipped_unknown_op"
    LEFT_OUT = "left_out"
    """It could be applied, but was tried first and helped with nothing."""
    ERROR = "error"

    @property
    def changed(self) -> bool:
        return self in (EditStatus.APPLIED, EditStatus.APPLIED_FALLBACK)


class EditResult(msgspec.Struct, frozen=True, omit_defaults=True):
    edit: Edit
    status: EditStatus
    note: str = ""
    ambiguous: bool = False
