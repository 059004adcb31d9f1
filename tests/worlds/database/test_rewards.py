from __future__ import annotations

import pytest

from whet.core import Act, End, Failure, FailureKind, Solution, Split, Task, Trajectory, Verdict
from whet.worlds.database import DatabaseWorld, Rewards, RewardType, ScenarioSettings, reward, reward_of, reward_type
from whet.worlds.pack import pack
from whet.worlds.solving import play

PASSED, PARTLY, FAILED = Verdict(True, 1.0), Verdict(False, 0.5), Verdict(False, 0.0)


@pytest.mark.parametrize(
    ("verdict", "malformed", "kind", "worth"),
    [
        (PASSED, 0, RewardType.COMPLETE, 1.0),
        (PASSED, 2, RewardType.COMPLETE, 1.0),
        (PARTLY, 0, RewardType.INCOMPLETE, 0.1),
        (PARTLY, 1, RewardType.FORMAT_ERROR, -1.0),
        (FAILED, 0, RewardType.OTHER, 0.0),
        (FAILED, 1, RewardType.FORMAT_ERROR, -1.0),
    ],
)
def test_a_reward_goes_by_the_verdict_and_the_calls(
    verdict: Verdict, malformed: int, kind: RewardType, worth: float
) -> None:
    assert reward_type(verdict, malformed=malformed) is kind
    assert reward(verdict, malformed=malformed) == worth


def test_rewards_can_be_set() -> None:
    rewards = Rewards(complete=5, incomplete=2, format_error=-3, others=-0.5)
    assert [reward(each, rewards) for each in (PASSED, PARTLY, FAILED)] == [5, 2, -0.5]
    assert reward(FAILED, rewards, malformed=1) == -3


def trajectory(verdict: Verdict | None, faults: int = 0) -> Trajectory:
    failure = None if verdict else Failure(FailureKind.WORLD, "broke")
    return Trajectory("p", "t", Split.TRAIN, 0, (), "", End.ANSWERED, verdict, failure, tool_faults=faults)


def test_a_trajectory_counts_calls_that_never_reached_the_session_and_a_failure_is_worth_nothing_at_all() -> None:
    assert reward_of(trajectory(PARTLY)) == 0.1
    assert reward_of(trajectory(PARTLY, faults=1)) == -1.0
    assert reward_of(trajectory(None)) is None


def world() -> DatabaseWorld:
    return pack(ScenarioSettings(scenarios=("shop",)))


@pytest.mark.parametrize(
    ("act", "kind"),
    [
        (Act("get_order", {"order_id": 99_999}), "others"),
        (Act("get_order", {"order_id": "99"}), "format_error"),
        (Act("get_order", {}), "format_error"),
        (Act("get_order", {"order_id": 1, "why": "so"}), "format_error"),
    ],
)
async def test_an_honest_not_found_costs_nothing_and_a_malformed_call_does(act: Act, kind: str) -> None:
    made = world()
    session = await made.open(made.tasks(Split.TRAIN)[0], 0)
    verdict = await play(session, Solution((act,), "There is no such order."))
    assert verdict.facts["reward_type"] == kind


async def test_an_unknown_tool_is_a_format_error() -> None:
    made = world()
    session = await made.open(made.tasks(Split.TRAIN)[0], 0)
    assert (await session.call("get_ordr", {})).text.startswith(
        "there is no tool 'get_ordr'. Did you mean 'get_order'?"
    )
    assert (await session.judge("")).facts["reward_type"] == "format_error"


def late_return(made: DatabaseWorld) -> Task:
    return next(task for split in Split for task in made.tasks(split) if "/return_late/" in task.id)


async def test_half_of_what_was_asked_is_incomplete_and_outweighed_by_what_was_not() -> None:
    made = pack(ScenarioSettings(scenarios=("library",)))
    task = late_return(made)
    *half, charge = made.known_good(task).acts
    verdict = await play(await made.open(task, 0), Solution(tuple(half)))
    assert (verdict.soft, verdict.facts["reward_type"]) == (0.5, "incomplete")
    too_much = Act(charge.tool, {**charge.arguments, "cents": 9_999})
    verdict = await play(await made.open(task, 0), Solution((*half, too_much)))
    assert (verdict.soft, verdict.facts["reward_type"]) == (0.0, "others")
