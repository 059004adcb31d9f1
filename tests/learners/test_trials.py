"""Edits tried alone before the gate: what helps goes on, what does nothing or harm stays behind."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

import msgspec
import pytest
from learning import STEP, ScriptedOptimizer, advisor, merged, policy, reflection, trajectory

from whet.core import (
    EditStatus,
    End,
    ModelRequest,
    Policy,
    Proposal,
    Purpose,
    Ruling,
    Split,
    Task,
    Trajectory,
    Verdict,
    assistant,
    user,
)
from whet.learners.skill import SkillLearner, SkillSettings, UpdateMode

RULE, USELESS, HARMFUL = "Name the code.", "Think well.", "Say nothing."
TASKS = [Task(f"task-{number}", Split.TRAIN, {"n": number}) for number in range(6)]


class Course:
    """A batch that an agent passes if its skill holds the rule and nothing harmful; some failures are chance."""

    def __init__(self, first: Sequence[bool], chance_failures: Sequence[str] = ()) -> None:
        self.first = first
        self.chance_failures = chance_failures
        self.played: list[tuple[str, str, int]] = []

    async def play(self, policy: Policy, tasks: Sequence[Task], sample: int) -> Sequence[Trajectory]:
        self.played += [(policy.skill.text, task.id, sample) for task in tasks]
        return [self._played(policy, task) for task in tasks]

    def evidence(self) -> list[asyncio.Future[Trajectory]]:
        loop = asyncio.get_running_loop()
        arrived: list[asyncio.Future[Trajectory]] = [loop.create_future() for _ in self.first]
        for number, future in enumerate(arrived):
            future.set_result(trajectory(number, hard=self.first[number]))
        return arrived

    def _played(self, policy: Policy, task: Task) -> Trajectory:
        text = policy.skill.text
        passes = task.id in self.chance_failures or (RULE in text and HARMFUL not in text)
        said = (user("do it"), assistant("done"))
        verdict = Verdict(passes, float(passes))
        return Trajectory(policy.fingerprint, task.id, Split.TRAIN, 1, said, "", End.ANSWERED, verdict)


async def proposed(
    course: Course, *contents: str, settings: SkillSettings | None = None, learner: SkillLearner | None = None
) -> Proposal:
    learner = learner or SkillLearner(
        advisor(optimizer(*contents)), settings or SkillSettings(try_edits=2), course.play
    )
    return await learner.propose(policy(), TASKS[: len(course.first)], course.evidence(), STEP)


def optimizer(*contents: str) -> ScriptedOptimizer:
    def reply(purpose: Purpose, request: ModelRequest) -> str:
        return merged(*contents) if purpose.startswith("merge") else reflection(*contents, summary="wrong")

    return ScriptedOptimizer(reply)


async def test_only_edits_that_help_where_they_came_from_reach_the_gate() -> None:
    proposal = await proposed(Course([False] * 3), USELESS, RULE, HARMFUL)
    assert proposal.candidate is not None
    assert proposal.candidate.skill.text == f"# Skill\n\n{RULE}\n"
    left_out = [result.edit.content for result in proposal.edits if result.status is EditStatus.LEFT_OUT]
    assert left_out == [USELESS, HARMFUL]


async def test_what_spoils_the_others_is_left_out_though_it_helped_alone() -> None:
    class Lucky(Course):
        """The harmful edit mends the first task when it is alone: by chance."""

        def _played(self, policy: Policy, task: Task) -> Trajectory:
            alone = HARMFUL in policy.skill.text and RULE not in policy.skill.text and task.id == "task-0"
            played = super()._played(policy, task)
            return msgspec.structs.replace(played, verdict=Verdict(True, 1.0)) if alone else played

    proposal = await proposed(Lucky([False] * 2), RULE, HARMFUL)
    assert proposal.candidate is not None
    assert proposal.candidate.skill.text == f"# Skill\n\n{RULE}\n"
    left_out = {result.edit.content: result.note for result in proposal.edits if result.status is EditStatus.LEFT_OUT}
    assert "the others no longer did" in left_out[HARMFUL]


async def test_without_trials_all_of_them_go_together() -> None:
    proposal = await proposed(Course([False] * 3), USELESS, RULE, HARMFUL, settings=SkillSettings())
    assert proposal.candidate is not None
    assert HARMFUL in proposal.candidate.skill.text
    assert all(result.status is EditStatus.APPLIED for result in proposal.edits)


async def test_a_failure_that_does_not_come_again_proves_no_edit() -> None:
    course = Course([False, False], chance_failures=["task-0", "task-1"])
    proposal = await proposed(course, USELESS)
    assert (proposal.candidate, proposal.skipped) == (None, "skip_no_help")
    assert "did not come again" in proposal.edits[0].note


async def test_an_edit_is_tried_on_no_more_tasks_than_asked_and_under_the_chance_of_the_second_try() -> None:
    course = Course([False] * 5)
    await proposed(course, RULE)
    of_edit = [(task, sample) for text, task, sample in course.played if RULE in text]
    assert len(of_edit) == 2
    assert {sample for _, _, sample in course.played} == {1}


async def test_what_passed_is_not_played_again() -> None:
    course = Course([True, False, True])
    await proposed(course, RULE)
    assert {task for _, task, _ in course.played} == {"task-1"}


async def test_lessons_of_successes_are_not_tried() -> None:
    course = Course([True, True])
    proposal = await proposed(course, USELESS)
    assert proposal.candidate is not None
    assert course.played == []


async def test_the_optimizer_is_told_next_time_what_helped_with_nothing() -> None:
    course, model = Course([False] * 2), optimizer(USELESS)
    learner = SkillLearner(advisor(model), SkillSettings(try_edits=1), course.play)
    first = await proposed(course, learner=learner)
    await learner.conclude(policy(), first, None, [done.result() for done in course.evidence()], STEP)
    await proposed(course, learner=learner)
    told = model.prompts(Purpose.REFLECT_FAILURE)[-1]
    assert "tried alone and helped with none" in told
    assert USELESS in told


async def test_what_a_trial_left_out_is_not_said_to_be_rejected() -> None:
    course, model = Course([False] * 2), optimizer(USELESS, RULE)
    learner = SkillLearner(advisor(model), SkillSettings(try_edits=1), course.play)
    proposal = await proposed(course, learner=learner)
    rejected = Ruling(False, False, 0.1, 0.2, 0.2, "worse")
    await learner.conclude(policy(), proposal, rejected, [done.result() for done in course.evidence()], STEP)
    await proposed(course, learner=learner)
    told = model.prompts(Purpose.REFLECT_FAILURE)[-1]
    tried, _, alone = told.partition("tried alone")
    assert RULE in tried.partition("took the score")[2]
    assert USELESS in alone
    assert RULE not in alone.partition("##")[0]


@pytest.mark.parametrize("mode", [UpdateMode.REWRITE, UpdateMode.FULL_REWRITE])
def test_whole_documents_cannot_be_tried_edit_by_edit(mode: UpdateMode) -> None:
    with pytest.raises(ValueError, match='set `update` = "patch"'):
        SkillSettings(try_edits=1, update=mode)


async def test_several_proposals_share_the_second_tries() -> None:
    course = Course([False] * 3)
    await proposed(course, RULE, settings=SkillSettings(try_edits=1, proposals=3, screen_tasks=1))
    second = [(task, sample) for text, task, sample in course.played if RULE not in text]
    assert sorted(second) == [(f"task-{number}", 1) for number in range(3)]
