"""From trajectories to a proposal, whatever the order in which they and the answers arrive."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Sequence
from random import Random

import pytest
from learning import STEP, ScriptedOptimizer, learner, optimizer, policy, reflection, trajectory

from whet.core import ModelRequest, Proposal, Purpose, Source, Trajectory
from whet.learners.skill import MergeAnswer, Schedule, SkillSettings
from whet.testing import FakeClock, coach

SETTINGS = SkillSettings(minibatch_size=3, merge_size=2, learning_rate=2, schedule=Schedule.CONSTANT)


async def proposed(
    model: ScriptedOptimizer, passed: Sequence[bool], settings: SkillSettings = SETTINGS, text: str = "# Skill\n"
) -> Proposal:
    loop = asyncio.get_running_loop()
    evidence: list[asyncio.Future[Trajectory]] = [loop.create_future() for _ in passed]
    for number, hard in enumerate(passed):
        evidence[number].set_result(trajectory(number, hard=hard))
    return await learner(model, settings).propose(policy(text), [], evidence, STEP)


@pytest.mark.parametrize("seed", range(6))
async def test_a_proposal_is_the_same_for_every_order_of_arrival(seed: int) -> None:
    passed = [number % 4 == 0 for number in range(25)]

    async def run(chance: Random | None) -> tuple[Proposal, list[tuple[Purpose, ModelRequest, bytes]]]:
        clock = FakeClock()
        advise = coach(harmful=0.1)

        async def slowly(request: ModelRequest) -> str:
            await clock.sleep(chance.uniform(0, 5) if chance else 1.0)
            return advise(request)

        model = ScriptedOptimizer(lambda purpose, request: slowly(request))

        async def arrive(number: int) -> Trajectory:
            await clock.sleep(chance.uniform(0, 5) if chance else 0.0)
            return trajectory(number, hard=passed[number])

        evidence = [asyncio.create_task(arrive(number)) for number in range(len(passed))]
        proposing = asyncio.create_task(learner(model, SETTINGS).propose(policy(), [], evidence, STEP))
        await clock.advance(200.0)
        return await proposing, sorted(model.asked, key=lambda asked: asked[2])

    usual, asked = await run(None)
    assert usual.candidate is not None
    assert len({purpose for purpose, _, _ in asked}) >= 4
    assert await run(Random(seed)) == (usual, asked)


async def test_reflections_may_propose_no_more_than_the_budget() -> None:
    model = ScriptedOptimizer(lambda purpose, request: reflection("a", "b", "c", summary="type"))
    proposal = await proposed(model, [False] * 3)
    assert [result.edit.content for result in proposal.edits] == ["a", "b"]
    assert all(result.edit.source is Source.FAILURE and result.edit.support == 3 for result in proposal.edits)
    assert [pattern.failure_type for pattern in proposal.patterns] == ["type"]
    assert proposal.candidate is not None
    assert proposal.candidate.skill.text == "# Skill\n\na\n\nb\n"


async def test_a_budget_of_nothing_changes_nothing() -> None:
    settings = SkillSettings(learning_rate=0)
    proposal = await proposed(ScriptedOptimizer(lambda purpose, request: reflection("a")), [False] * 3, settings)
    assert (proposal.candidate, proposal.skipped) == (None, "skip_no_patches")


@pytest.mark.parametrize("passed", [[False, True], [False], [True], []])
async def test_reflections_that_propose_nothing_are_a_step_that_is_skipped(passed: list[bool]) -> None:
    proposal = await proposed(ScriptedOptimizer(lambda purpose, request: reflection()), passed)
    assert (proposal.candidate, proposal.edits, proposal.skipped) == (None, (), "skip_no_patches")


async def test_edits_that_change_nothing_are_no_candidate() -> None:
    answer = json.dumps({"patch": {"edits": [{"op": "replace", "target": "not there", "content": "x"}]}})
    proposal = await proposed(ScriptedOptimizer(lambda purpose, request: answer), [False])
    assert (proposal.candidate, proposal.skipped, len(proposal.edits)) == (None, "skip_no_change", 1)


async def test_successes_can_be_left_out() -> None:
    model = ScriptedOptimizer(lambda purpose, request: reflection("a"))
    settings = SkillSettings(failure_only=True)
    await proposed(model, [True, True, False], settings)
    assert model.purposes() == ["reflect_failure"]


def ranking(answer: str) -> ScriptedOptimizer:
    """Two minibatches of failures propose two edits each, joined as they are; then `answer` ranks."""

    def reply(purpose: Purpose, request: ModelRequest) -> str:
        if purpose is Purpose.RANK:
            return answer
        if purpose is Purpose.MERGE_FAILURE:
            return json.dumps({"edits": [{"op": "append", "content": content} for content in "abcd"]})
        return reflection("a", "b")

    return ScriptedOptimizer(reply)


@pytest.mark.parametrize(
    ("answer", "chosen"),
    [
        ('{"selected_indices": [3, 1]}', "db"),
        ('{"selected_indices": [3, 3, 9, -1, 1, 0]}', "db"),
        ('{"selected_indices": [2]}', "c"),
        ('{"selected_indices": [7, 8]}', "ab"),
        ('{"selected_indices": []}', "ab"),
        ("the last ones", "ab"),
    ],
)
async def test_the_optimizer_chooses_and_what_it_cannot_have_meant_is_dropped(answer: str, chosen: str) -> None:
    proposal = await proposed(ranking(answer), [False] * 6)
    assert "".join(result.edit.content for result in proposal.edits) == chosen


async def test_within_the_budget_nothing_is_ranked() -> None:
    model = ranking('{"selected_indices": [0]}')
    settings = SkillSettings(minibatch_size=3, learning_rate=4, schedule=Schedule.CONSTANT)
    assert len((await proposed(model, [False] * 6, settings)).edits) == 4
    assert "rank" not in model.purposes()


async def test_an_unusable_answer_is_asked_for_once_more_with_the_error() -> None:
    answers = iter(["no idea", reflection("better")])
    model = ScriptedOptimizer(lambda purpose, request: next(answers))
    proposal = await proposed(model, [False])
    assert [result.edit.content for result in proposal.edits] == ["better"]
    (_, first, salt), (_, second, same_salt) = model.asked
    assert second.messages[0] == first.messages[0]
    assert second.messages[1].text == "no idea"
    assert "there is no JSON object in it" in second.messages[2].text
    assert (salt == same_salt, first.seed == second.seed) == (True, False)
    assert proposal.fallbacks == ()


async def test_an_answer_that_stays_unusable_is_recorded_with_what_was_done_instead() -> None:
    def reply(purpose: Purpose, request: ModelRequest) -> str:
        return "no" if purpose is Purpose.REFLECT_FAILURE else reflection("kept")

    model = ScriptedOptimizer(reply)
    proposal = await proposed(model, [False, True])
    assert model.purposes().count("reflect_failure") == 2
    assert [result.edit.content for result in proposal.edits] == ["kept"]
    (fallback,) = proposal.fallbacks
    assert fallback.startswith("reflect_failure 0: unusable twice")
    assert "teaches nothing" in fallback


async def test_what_was_done_instead_is_told_in_the_order_of_what_was_asked() -> None:
    async def ask(order: Sequence[str]) -> tuple[str, ...]:
        asking = optimizer(ScriptedOptimizer(lambda purpose, request: "no"))
        inputs = {"skill": "", "patches": "", "form": ""}
        for place in order:
            await asking.ask(Purpose.MERGE_FAILURE, inputs, MergeAnswer, place=place, instead="joined")
        return asking.fallbacks

    assert await ask("123") == await ask("312")


async def test_the_skill_is_sent_once_in_each_request() -> None:
    model = ScriptedOptimizer(lambda purpose, request: reflection("a"))
    await proposed(model, [False] * 8, text="# A skill with a name of its own\n")
    assert all(text.count("# A skill with a name of its own") == 1 for text in model.prompts(Purpose.REFLECT_FAILURE))
