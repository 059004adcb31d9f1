"""The same tasks played with two policies, and how each came out. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from enum import StrEnum

import msgspec

from whet.core import Trajectory
from whet.learners.skill.evidence import show_trajectories
from whet.learners.skill.settings import PairPolicy


class Change(StrEnum):
    REGRESSED = "regressed"
    PERSISTENT_FAIL = "persistent_fail"
    IMPROVED = "improved"
    STABLE_SUCCESS = "stable_success"


class Pair(msgspec.Struct, frozen=True):
    before: Trajectory
    after: Trajectory

    @property
    def change(self) -> Change:
        match bool(self.before.hard), bool(self.after.hard):
            case True, False:
                return Change.REGRESSED
            case False, True:
                return Change.IMPROVED
            case True, True:
                return Change.STABLE_SUCCESS
            case _:
                return Change.PERSISTENT_FAIL

    @property
    def changed(self) -> bool:
        return self.change in (Change.REGRESSED, Change.IMPROVED)


def kept(pairs: Sequence[Pair], policy: PairPolicy) -> tuple[Pair, ...]:
    match policy:
        case PairPolicy.MIXED:
            return tuple(pairs)
        case PairPolicy.CHANGED:
            return tuple(pair for pair in pairs if pair.changed)
        case PairPolicy.UNCHANGED:
            return tuple(pair for pair in pairs if not pair.changed)


def show_pairs(pairs: Sequence[Pair]) -> str:
    """By how they came out, what got worse first."""
    shown = [(change, [pair for pair in pairs if pair.change is change]) for change in Change]
    return "\n\n".join(
        f"### {change} ({len(members)})\n\n" + "\n\n".join(_show(pair) for pair in members)
        for change, members in shown
        if members
    )


def _show(pair: Pair) -> str:
    return f"Before:\n{show_trajectories([pair.before])}\n\nAfter:\n{show_trajectories([pair.after])}"
