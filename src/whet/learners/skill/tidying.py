"""Proposes what can go: deletions, and replacements that say the same in fewer words."""

from __future__ import annotations

from whet.core import Policy, Proposal, Purpose
from whet.learners.skill.answers import TidyAnswer
from whet.learners.skill.optimizer import Optimizer
from whet.learners.skill.patcher import apply_edits, rough_tokens


async def tidied(optimizer: Optimizer, current: Policy) -> Proposal:
    """A candidate with a shorter skill, or none."""
    if not current.skill.text.strip():
        return Proposal(None, skipped="skip_no_patches")
    answer = await optimizer.ask(
        Purpose.TIDY, {"skill": current.skill.text}, TidyAnswer, place="", instead="nothing is tidied"
    )
    if answer is None or not answer.edits:
        return Proposal(None, skipped="skip_no_patches", fallbacks=optimizer.fallbacks)
    skill, results = apply_edits(current.skill, [edit.as_edit() for edit in answer.edits])
    shorter = rough_tokens(skill) < rough_tokens(current.skill)
    return Proposal(
        current.with_skill(skill) if shorter else None,
        results,
        answer.reasoning,
        skipped="" if shorter else "skip_no_change",
        fallbacks=optimizer.fallbacks,
    )
