"""Verified examples in the form that the model goes on with, and the rendering that suits it."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from learning import STEP

from whet.core import (
    End,
    ModelRef,
    Policy,
    Proposal,
    Rendering,
    Skill,
    Split,
    Task,
    Trajectory,
    Verdict,
    assistant,
    user,
)
from whet.learners.skill import Demonstrator, Schedule, SkillSettings

SETTINGS = SkillSettings(learning_rate=8, schedule=Schedule.CONSTANT)
CHAT = Policy(ModelRef("local", "small"))
PLAIN = CHAT.with_rendering(Rendering.PLAIN)


def tried(number: int, *, hard: bool) -> Trajectory:
    verdict = Verdict(hard, float(hard), "wrong: no" if not hard else "right", reference=f"answer {number}")
    said = (user(f"Question: {number}\nAnswer:"), assistant("?"))
    return Trajectory("p", f"t{number}", Split.TRAIN, 0, said, "?", End.ANSWERED, verdict)


async def proposed(policy: Policy, tries: Sequence[Trajectory], settings: SkillSettings = SETTINGS) -> Proposal:
    """Plays of a model that passes what is plain, and nothing else."""

    async def play(candidate: Policy, tasks: Sequence[Task], sample: int) -> Sequence[Trajectory]:
        suits = candidate.harness.rendering is Rendering.PLAIN
        return [tried(number, hard=suits) for number, _ in enumerate(tasks)]

    async def there(one: Trajectory) -> Trajectory:
        return one

    tasks = [Task(one.task, Split.TRAIN, {}) for one in tries]
    evidence = [asyncio.ensure_future(there(one)) for one in tries]
    return await Demonstrator(settings, play).propose(policy, tasks, evidence, STEP)


async def test_a_model_that_goes_on_with_a_text_is_shown_that_text() -> None:
    made = await proposed(PLAIN, [tried(1, hard=False)])
    assert made.candidate is not None
    assert "Question: 1\nAnswer: answer 1" in made.candidate.skill.text
    assert "Task:" not in made.candidate.skill.text
    chat = await proposed(CHAT, [tried(1, hard=False)])
    assert chat.candidate is not None
    assert "Task: Question: 1\nAnswer:\nAnswer: answer 1" in chat.candidate.skill.text


async def test_a_text_to_go_on_with_ends_in_examples_and_not_in_rules() -> None:
    same = [tried(number, hard=False) for number in (1, 2)]
    chat, plain = await proposed(CHAT, same), await proposed(PLAIN, same)
    assert chat.candidate is not None
    assert plain.candidate is not None
    assert "Avoid this" in chat.candidate.skill.text
    assert "Avoid this" not in plain.candidate.skill.text


async def test_failures_alone_are_shown_if_that_is_asked_for() -> None:
    tries = [tried(1, hard=False), tried(2, hard=True)]
    alone = await proposed(PLAIN, tries, SkillSettings(failure_only=True))
    both = await proposed(PLAIN, tries)
    assert [done.edit.tasks for done in alone.edits] == [("t1",)]
    assert {done.edit.tasks for done in both.edits} == {("t1",), ("t2",)}


async def test_the_rendering_that_suits_the_model_is_found_with_its_first_examples() -> None:
    settings = SkillSettings(try_renderings=True)
    made = await proposed(CHAT, [tried(1, hard=False)], settings)
    assert made.candidate is not None
    assert made.candidate.harness.rendering is Rendering.PLAIN


async def test_a_skill_with_examples_keeps_its_rendering() -> None:
    settings = SkillSettings(try_renderings=True)
    first = await proposed(CHAT.with_skill(Skill({})), [tried(1, hard=False)], settings)
    assert first.candidate is not None
    again = await proposed(first.candidate, [tried(1, hard=False)], settings)
    assert again.candidate is None
    assert again.skipped == "skip_no_patches"


async def test_the_oldest_examples_make_room() -> None:
    settings = SkillSettings(examples=2, learning_rate=8, schedule=Schedule.CONSTANT)
    made = await proposed(PLAIN, [tried(number, hard=False) for number in range(5)], settings)
    assert made.candidate is not None
    assert made.candidate.skill.text.count("Answer: answer") == 2
