"""Several current policies at once: whatever is best at some selection task is worth keeping. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import combinations
from random import Random

import msgspec

from whet.core import Edit, Policy, seed_from


class Member(msgspec.Struct, frozen=True):
    policy: Policy
    scores: dict[str, float]
    """By selection task."""
    edits: tuple[Edit, ...] = ()
    """What led from the starting policy to this one."""

    @property
    def mean(self) -> float:
        return sum(self.scores.values()) / max(1, len(self.scores))


class Front:
    """Members of which none is beaten everywhere by another, in the order in which they joined."""

    def __init__(self, start: Policy) -> None:
        self.members: list[Member] = [Member(start, {})]
        self._merged: set[tuple[str, str]] = set()

    def measured(self, policy: Policy, scores: Mapping[str, float]) -> None:
        """The starting policy joins before it is measured, for the first step needs no more."""
        self.members = [
            msgspec.structs.replace(member, scores=dict(scores))
            if member.policy.fingerprint == policy.fingerprint
            else member
            for member in self.members
        ]

    def member(self, policy: Policy) -> Member | None:
        return next((one for one in self.members if one.policy.fingerprint == policy.fingerprint), None)

    def pick(self, key: bytes) -> Policy:
        """Who plays the next step: drawn by how many tasks each is best at."""
        weights = [len(tasks) for tasks in self._best_at()]
        if not any(weights):
            return self.members[0].policy
        return Random(seed_from(key, "parent")).choices(self.members, weights)[0].policy

    def join(self, candidate: Member) -> bool:
        """Whether it is better than all others at some task, or better on the whole; whoever it beats has to leave."""
        others = self.members
        best = {task: max(member.scores.get(task, 0.0) for member in others) for task in candidate.scores}
        ahead = any(score > best[task] for task, score in candidate.scores.items())
        if not ahead and candidate.mean <= max(member.mean for member in others):
            return False
        self.members = [member for member in others if not _beaten(member, candidate)] + [candidate]
        return True

    def complements(self) -> tuple[Member, Member] | None:
        """The two that together are best at the most, if that is more than either, and were not joined before."""
        pairs = [
            (_together(a, b) - max(a.mean, b.mean), -number, a, b)
            for number, (a, b) in enumerate(combinations(self.members, 2))
            if (a.policy.fingerprint, b.policy.fingerprint) not in self._merged
        ]
        gain, _, a, b = max(pairs, key=lambda pair: pair[:2], default=(0.0, 0, None, None))
        if gain <= 0.0 or a is None or b is None:
            return None
        self._merged.add((a.policy.fingerprint, b.policy.fingerprint))
        return a, b

    def _best_at(self) -> list[list[str]]:
        tasks = self.members[0].scores
        best = {task: max(member.scores.get(task, 0.0) for member in self.members) for task in tasks}
        return [[task for task in tasks if member.scores.get(task, 0.0) == best[task]] for member in self.members]


def _beaten(member: Member, by: Member) -> bool:
    """Nowhere better, and somewhere worse."""
    worse = any(member.scores.get(task, 0.0) < score for task, score in by.scores.items())
    return worse and all(member.scores.get(task, 0.0) <= score for task, score in by.scores.items())


def _together(a: Member, b: Member) -> float:
    scores = [max(score, b.scores.get(task, 0.0)) for task, score in a.scores.items()]
    return sum(scores) / max(1, len(scores))
