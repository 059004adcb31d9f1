"""Reminders for an agent that has the right rule and did not follow it. Pure but for compacting, which asks once."""

from __future__ import annotations

import re
from collections.abc import Sequence

from whet.core import SKILL_FILE, Purpose, Skill
from whet.learners.skill.answers import ConsolidateAnswer
from whet.learners.skill.optimizer import Optimizer
from whet.learners.skill.regions import APPENDIX, region, with_region, without_markers

_HEADING = "## Reminders"
_BULLET = re.compile(r"^[-*]\s+")


def notes_in(text: str) -> tuple[str, ...]:
    lines = (line.strip() for line in region(text, APPENDIX).splitlines())
    return tuple(_BULLET.sub("", line) for line in lines if line and not line.startswith("#"))


def distinct(notes: Sequence[str]) -> tuple[str, ...]:
    """Each once: notes that differ only in case, space or trailing punctuation are the same."""
    seen: dict[str, str] = {}
    for note in notes:
        line = " ".join(without_markers(note).split())
        key = line.casefold().rstrip(" .;:,!?_-")
        if key:
            seen.setdefault(key, line)
    return tuple(seen.values())


def with_notes(skill: Skill, notes: Sequence[str]) -> Skill:
    """The skill with exactly these reminders."""
    if not notes:
        return skill
    lines = "\n".join(f"- {note}" for note in notes)
    return skill.with_file(SKILL_FILE, with_region(skill.text, APPENDIX, f"{_HEADING}\n{lines}"))


def add_notes(skill: Skill, notes: Sequence[str]) -> Skill:
    before = notes_in(skill.text)
    after = distinct((*before, *notes))
    return skill if after == before else with_notes(skill, after)


async def consolidate(optimizer: Optimizer, skill: Skill, above: int) -> Skill:
    """One call that says the same in fewer reminders; what is empty or not shorter is refused."""
    notes = notes_in(skill.text)
    if above == 0 or len(notes) <= above:
        return skill
    inputs = {"skill": skill.text, "notes": "\n".join(f"- {note}" for note in notes)}
    answer = await optimizer.ask(
        Purpose.CONSOLIDATE, inputs, ConsolidateAnswer, place="", instead="the reminders stay as they are"
    )
    fewer = distinct(answer.appendix_notes) if answer is not None else ()
    shorter = sum(map(len, fewer)) < sum(map(len, notes))
    return with_notes(skill, fewer) if fewer and shorter and len(fewer) <= len(notes) else skill
