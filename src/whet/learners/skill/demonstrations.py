"""Learning without a strong model: verified examples, and rules read off what the verifier said.

It is a lever of its own for small models, and a baseline for the optimizer: whatever reads trajectories ought to do
better than showing some of them.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Awaitable, Sequence
from random import Random

from whet.core import (
    SKILL_FILE,
    Edit,
    EditResult,
    EditStatus,
    Policy,
    Proposal,
    Rendering,
    Ruling,
    Skill,
    Source,
    Step,
    Task,
    Trajectory,
    seed_from,
)
from whet.learners.skill.budget import edit_budget
from whet.learners.skill.epoch import EpochEnd, Play
from whet.learners.skill.patcher import rough_tokens
from whet.learners.skill.regions import append_position, without_markers
from whet.learners.skill.screening import most_promising
from whet.learners.skill.settings import SkillSettings

EXAMPLES = "## Examples"
RULES = "## Rules"
_BLANK = re.compile(r"\n\s*\n")
_LONGEST = 600
"""Letters of a task or an answer that an example shows."""


class Demonstrator:
    """The same questions as `SkillLearner`, answered by showing what was right."""

    def __init__(self, settings: SkillSettings, play: Play) -> None:
        self._settings = settings
        self._play = play

    async def propose(
        self, incumbent: Policy, tasks: Sequence[Task], evidence: Sequence[Awaitable[Trajectory]], step: Step
    ) -> Proposal:
        played = [await trajectory for trajectory in evidence]
        budget = edit_budget(self._settings, step.number, step.total)
        if not self._settings.try_renderings or EXAMPLES in incumbent.skill.text:
            return self._shown(incumbent, played, budget, step)
        # Which of the two a small model follows better cannot be told beforehand; its first examples decide it.
        proposals = [self._shown(incumbent.with_rendering(rendering), played, budget, step) for rendering in Rendering]
        shown = {task for proposal in proposals for done in proposal.edits for task in done.edit.tasks}
        unseen = sorted(tasks, key=lambda task: task.id in shown)
        return await most_promising(proposals, unseen[: self._settings.screen_tasks], self._play)

    def _shown(self, incumbent: Policy, played: Sequence[Trajectory], budget: int | None, step: Step) -> Proposal:
        shown = [one for one in played if not (self._settings.failure_only and one.hard)]
        plain = incumbent.harness.rendering is Rendering.PLAIN
        # What a model goes on with must look like what came before; a rule would be the last thing that it read.
        items = _examples(shown, step.key, plain=plain) + ([] if plain else _rules(played))
        fresh = [item for item in items if item.content not in incumbent.skill.text][:budget]
        if not fresh:
            return Proposal(None, skipped="skip_no_patches", budget=budget)
        skill = incumbent.skill
        results: list[EditResult] = []
        for item in fresh:
            changed = _with(skill, item, self._settings.examples)
            too_long = self._settings.max_tokens and rough_tokens(changed) > self._settings.max_tokens
            results.append(EditResult(item, EditStatus.ERROR if too_long else EditStatus.APPLIED))
            skill = skill if too_long else changed
        if skill.fingerprint == incumbent.skill.fingerprint:
            return Proposal(None, tuple(results), skipped="skip_no_change", budget=budget)
        return Proposal(incumbent.with_skill(skill), tuple(results), "verified examples", budget=budget)

    async def conclude(
        self,
        current: Policy,
        proposal: Proposal,
        ruling: Ruling | None,
        trajectories: Sequence[Trajectory],
        step: Step,
    ) -> Policy:
        return current

    async def join(self, start: Policy, one: Sequence[Edit], other: Sequence[Edit], key: bytes) -> Proposal:
        return Proposal(None, skipped="skip_off")

    async def tidy(self, current: Policy, key: bytes) -> Proposal:
        return Proposal(None, skipped="skip_off")

    async def end_epoch(self, end: EpochEnd, tasks: Sequence[Task]) -> Proposal:
        return Proposal(None, skipped="skip_off")


def _examples(played: Sequence[Trajectory], step: bytes, *, plain: bool) -> list[Edit]:
    """What failed and has a right answer goes first, then what was passed best; kinds in turn, so none is forgotten."""
    order = list(played)
    Random(seed_from(step, "examples")).shuffle(order)
    order.sort(key=lambda trajectory: (trajectory.hard, -trajectory.soft))
    seen: Counter[str] = Counter()
    ranked: list[tuple[int, int, Edit]] = []
    for position, trajectory in enumerate(order):
        shown = _shown(trajectory, plain=plain)
        if shown is not None:
            ranked.append((seen[trajectory.kind], position, shown))
            seen[trajectory.kind] += 1
    return [edit for _, _, edit in sorted(ranked, key=lambda item: item[:2])]


def _shown(played: Trajectory, *, plain: bool) -> Edit | None:
    verdict = played.verdict
    told = played.messages[0].text.strip() if played.messages else ""
    right = (verdict.reference or (played.answer if verdict.hard else "")).strip() if verdict else ""
    if not told or not right or len(right) > _LONGEST or len(played.messages) > 2:
        return None
    if len(told) > _LONGEST:
        # What tells one task of a world from another mostly stands at its end.
        told = f"… {told[-_LONGEST:]}"
    source = Source.SUCCESS if played.hard else Source.FAILURE
    # A model that goes on with a text is shown the very text that it is to write.
    told, right = (_BLANK.sub("\n", text) for text in (told, right))
    content = without_markers(f"{told} {right}" if plain else f"Task: {told}\nAnswer: {right}")
    return Edit("append", EXAMPLES, content, source=source, support=1, tasks=(played.task,))


def _rules(played: Sequence[Trajectory]) -> list[Edit]:
    """What the verifier said to more than one failure is worth telling beforehand."""
    told: dict[str, list[str]] = {}
    for one in played:
        if one.verdict is not None and not one.verdict.hard and one.verdict.feedback:
            text = " ".join(without_markers(one.verdict.feedback).split())
            told.setdefault(text, []).append(one.task)
    often = [(text, tasks) for text, tasks in told.items() if len(tasks) > 1 and len(text) <= _LONGEST]
    often.sort(key=lambda said: -len(said[1]))
    return [
        Edit("append", RULES, f"- Avoid this: {text}", source=Source.FAILURE, support=len(tasks), tasks=tuple(tasks))
        for text, tasks in often
    ]


def _with(skill: Skill, item: Edit, most: int) -> Skill:
    """Under its heading; the oldest example makes room for a new one."""
    text = skill.text
    end = append_position(text)
    body, regions = text[:end], text[end:]
    sections = _sections(body)
    items = sections.get(item.target, [])
    items = [*items, item.content]
    if item.target == EXAMPLES:
        items = items[max(0, len(items) - most) :]
    sections[item.target] = items
    head = sections.pop("", [""])[0]
    written = [head.rstrip()] if head.strip() else []
    written += [f"{title}\n\n" + "\n\n".join(members) for title, members in sections.items() if members]
    tail = f"\n{regions}" if regions else ""
    return skill.with_file(SKILL_FILE, "\n\n".join(written) + "\n" + tail)


def _sections(body: str) -> dict[str, list[str]]:
    """The document before our headings, and the items under each of them."""
    sections: dict[str, list[str]] = {}
    places = sorted((body.find(f"{title}\n\n"), title) for title in (RULES, EXAMPLES) if f"{title}\n\n" in body)
    ends = [place for place, _ in places[1:]] + [len(body)] if places else []
    sections[""] = [body[: places[0][0]] if places else body]
    for (place, title), end in zip(places, ends, strict=True):
        inside = body[place + len(title) : end].strip()
        sections[title] = [item for item in inside.split("\n\n") if item]
    return sections
