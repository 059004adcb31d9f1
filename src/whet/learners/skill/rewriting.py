"""From selected items to a candidate, in each of the three update modes."""

from __future__ import annotations

from collections.abc import Sequence

from whet.core import SKILL_FILE, Edit, EditResult, EditStatus, Purpose, Skill
from whet.learners.skill.answers import RewriteAnswer
from whet.learners.skill.evidence import show_edits
from whet.learners.skill.optimizer import Optimizer
from whet.learners.skill.patcher import apply_edits, rough_tokens
from whet.learners.skill.regions import with_body
from whet.learners.skill.settings import UpdateMode

Changed = tuple[Skill, tuple[EditResult, ...]]


async def apply(optimizer: Optimizer, skill: Skill, items: Sequence[Edit], max_tokens: int) -> Changed | None:
    """The changed skill and what became of each item; None if no document could be had."""
    match optimizer.mode:
        case UpdateMode.PATCH:
            return apply_edits(skill, items, max_tokens=max_tokens)
        case UpdateMode.REWRITE:
            return await _rewrite(optimizer, skill, items, max_tokens)
        case UpdateMode.FULL_REWRITE:
            return _first_usable(skill, items, max_tokens)


async def _rewrite(optimizer: Optimizer, skill: Skill, items: Sequence[Edit], max_tokens: int) -> Changed | None:
    """One call writes the document anew from the suggestions that were selected."""
    inputs = {"skill": skill.text or "(empty)", "suggestions": show_edits(items)}
    answer = await optimizer.ask(
        Purpose.REWRITE, inputs, RewriteAnswer, place="", instead="the document stays as it is"
    )
    new = _document(skill, answer.new_skill, max_tokens) if answer is not None else None
    return None if new is None else (new, tuple(EditResult(item, EditStatus.APPLIED) for item in items))


def _first_usable(skill: Skill, items: Sequence[Edit], max_tokens: int) -> Changed | None:
    results: list[EditResult] = []
    chosen: Skill | None = None
    for item in items:
        new = _document(skill, item.content, max_tokens) if chosen is None else None
        results.append(
            EditResult(item, EditStatus.ERROR, "an earlier one was taken" if chosen else "it is empty or too long")
            if new is None
            else EditResult(item, EditStatus.APPLIED)
        )
        chosen = chosen or new
    return None if chosen is None else (chosen, tuple(results))


def _document(skill: Skill, text: str, max_tokens: int) -> Skill | None:
    """`text` in place of the body; front matter and regions stay whatever it says."""
    if not text.strip():
        return None
    new = skill.with_file(SKILL_FILE, with_body(skill.text, text))
    return None if max_tokens and rough_tokens(skill) < rough_tokens(new) > max_tokens else new
