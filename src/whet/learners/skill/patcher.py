"""Applies edits to a skill. Pure: an edit that cannot be applied is a status, never an exception."""

from __future__ import annotations

import re
from collections.abc import Sequence

import msgspec

from whet.core import SKILL_FILE, Edit, EditResult, EditStatus, Op, Skill
from whet.learners.skill.package import LONGEST_DESCRIPTION, with_description
from whet.learners.skill.regions import (
    append_position,
    overlaps,
    protected_spans,
    protected_texts,
    without_markers,
)

DESCRIPTION = "description"
"""An edit of this instead of a file changes the package's description."""

_REFERENCE = re.compile(r"references/[A-Za-z0-9][A-Za-z0-9._-]*\.md")


def apply_edits(skill: Skill, edits: Sequence[Edit], *, max_tokens: int = 0) -> tuple[Skill, tuple[EditResult, ...]]:
    """One after another, each on what the one before left. One that makes the skill too long is left out."""
    results: list[EditResult] = []
    for edit in edits:
        text, outcome = _apply(skill, edit)
        if outcome.status.changed:
            changed = skill.with_file(SKILL_FILE if edit.file == DESCRIPTION else edit.file, text)
            if max_tokens and rough_tokens(skill) < rough_tokens(changed) > max_tokens:
                note = f"the skill would have more than {max_tokens} tokens"
                outcome = EditResult(edit, EditStatus.ERROR, note)
            else:
                skill = changed
        results.append(outcome)
    return skill, tuple(results)


def rough_tokens(skill: Skill) -> int:
    """Without a tokenizer: four letters count as one token."""
    return sum(-(-len(text) // 4) for text in skill.files.values())


class _Change(msgspec.Struct, frozen=True):
    text: str
    status: EditStatus
    note: str = ""
    ambiguous: bool = False


def _apply(skill: Skill, edit: Edit) -> tuple[str, EditResult]:
    if edit.file == DESCRIPTION:
        return _describe(skill, edit)
    text = skill.files.get(edit.file, "")
    change = _refusal(skill, edit) or _change(text, edit)
    if change.status.changed and change.text == text:
        change = _Change(text, EditStatus.ERROR, "it changes nothing")
    return change.text, EditResult(edit, change.status, change.note, change.ambiguous)


def _describe(skill: Skill, edit: Edit) -> tuple[str, EditResult]:
    """The one part of the front matter that learns: what the package says of itself."""
    new = " ".join(without_markers(edit.content).split())
    text = with_description(skill.text, new) if edit.op == Op.REPLACE and 0 < len(new) <= LONGEST_DESCRIPTION else None
    if text is None:
        note = f"a description is replaced, by 1 to {LONGEST_DESCRIPTION} letters, where there is front matter"
        return skill.text, EditResult(edit, EditStatus.ERROR, note)
    if text == skill.text:
        return text, EditResult(edit, EditStatus.ERROR, "it changes nothing")
    return text, EditResult(edit, EditStatus.APPLIED)


def _refusal(skill: Skill, edit: Edit) -> _Change | None:
    text = skill.files.get(edit.file, "")
    if edit.op not in tuple(Op):
        return _Change(text, EditStatus.SKIPPED_UNKNOWN_OP, f"there is no operation {edit.op!r}")
    if edit.file != SKILL_FILE and edit.file not in skill.files and not _REFERENCE.fullmatch(edit.file):
        return _Change(text, EditStatus.ERROR, f"{edit.file!r} is neither in the package nor a references/*.md")
    if edit.op in (Op.REPLACE, Op.DELETE) and not edit.target:
        return _Change(text, EditStatus.SKIPPED_NO_TARGET, "no target is given")
    if edit.op in (Op.APPEND, Op.INSERT_AFTER) and not without_markers(edit.content).strip():
        return _Change(text, EditStatus.ERROR, "there is nothing to add")
    return None


def _change(text: str, edit: Edit) -> _Change:
    content = without_markers(edit.content)
    if edit.op == Op.APPEND:
        return _guarded(text, _Change(_appended(text, content), EditStatus.APPLIED))
    found = _find(text, edit.target)
    if isinstance(found, _Change):
        if edit.op == Op.INSERT_AFTER and found.status is not EditStatus.SKIPPED_PROTECTED:
            note = f"{found.note}: appended"
            return _guarded(text, _Change(_appended(text, content), EditStatus.APPLIED_FALLBACK, note))
        return found
    start, end, ambiguous = found
    note = "the target stands in several places; the first was taken" if ambiguous else ""
    if edit.op == Op.INSERT_AFTER:
        line_end = text.find("\n", max(start, end - 1))
        changed = _inserted(text, len(text) if line_end < 0 else line_end + 1, content)
    else:
        changed = text[:start] + ("" if edit.op == Op.DELETE else content) + text[end:]
    return _guarded(text, _Change(changed, EditStatus.APPLIED, note, ambiguous))


def _guarded(text: str, change: _Change) -> _Change:
    """The change, unless it would alter a protected region or make one."""
    if protected_texts(change.text) != protected_texts(text):
        return _Change(text, EditStatus.SKIPPED_PROTECTED, "it would disturb a protected region")
    return change


def _find(text: str, target: str) -> tuple[int, int, bool] | _Change:
    """The first place of `target` outside protected regions, and whether there are more."""
    if not target:
        return _Change(text, EditStatus.SKIPPED_NO_TARGET, "no target is given")
    protected = protected_spans(text)
    places = [(m.start(), m.start() + len(target)) for m in re.finditer(f"(?={re.escape(target)})", text)]
    if not places:
        return _Change(text, EditStatus.SKIPPED_NOT_FOUND, "the target is not in the document")
    free = [place for place in places if not overlaps(place, protected)]
    if not free:
        return _Change(text, EditStatus.SKIPPED_PROTECTED, "the target lies in a protected region")
    return *free[0], len(free) > 1


def _appended(text: str, content: str) -> str:
    position = append_position(text)
    before, after = text[:position].rstrip("\n"), text[position:]
    joined = f"{before}\n\n{content.strip()}\n" if before else f"{content.strip()}\n"
    return f"{joined}\n{after}" if after else joined


def _inserted(text: str, position: int, content: str) -> str:
    before, after = text[:position], text[position:]
    if before and not before.endswith("\n"):
        before += "\n"
    return f"{before}{content.strip(chr(10))}\n{after}"
