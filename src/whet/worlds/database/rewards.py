"""What a try is worth to a learner that wants one number: decided by what is known of it, never by words in messages.

A verdict's `soft` lies between 0 and 1; a reward may be below 0, so it goes by the kind that the verdict names.
"""

from __future__ import annotations

from enum import StrEnum

import msgspec

from whet.core import Trajectory, Verdict

FACT = "reward_type"
"""Where a verdict names its kind, among its facts."""


class RewardType(StrEnum):
    COMPLETE = "complete"
    INCOMPLETE = "incomplete"
    """Part of what was asked is done, and more right than wrong."""
    FORMAT_ERROR = "format_error"
    """It failed, and called a tool that there is not or with arguments that do not fit."""
    OTHER = "others"
    """It failed in any other way. A tool that says no ("there is no such customer") costs nothing of itself."""


class Rewards(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """How much each kind is worth."""

    complete: float = 1.0
    incomplete: float = 0.1
    format_error: float = -1.0
    others: float = 0.0


REWARDS = Rewards()


def reward_type(verdict: Verdict, *, malformed: int = 0) -> RewardType:
    """The kind of a try with so many malformed calls."""
    if verdict.hard:
        return RewardType.COMPLETE
    if malformed or verdict.facts.get(FACT) == RewardType.FORMAT_ERROR:
        return RewardType.FORMAT_ERROR
    return RewardType.INCOMPLETE if verdict.soft > 0 else RewardType.OTHER


def reward(verdict: Verdict, rewards: Rewards = REWARDS, *, malformed: int = 0) -> float:
    kind = reward_type(verdict, malformed=malformed)
    return float(getattr(rewards, kind))


def reward_of(trajectory: Trajectory, rewards: Rewards = REWARDS) -> float | None:
    """None: there is no verdict, so there is nothing to learn from.

    Some malformed calls never reach a session, because the agent's loop answers them; the trajectory counts them all.
    """
    if trajectory.verdict is None:
        return None
    return reward(trajectory.verdict, rewards, malformed=trajectory.tool_faults)
