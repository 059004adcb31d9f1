"""Several candidates for one step: the most promising on a small shared sample goes to the gate."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from whet.core import Policy, Proposal, Task
from whet.learners.skill.epoch import Play


async def most_promising(proposals: Sequence[Proposal], tasks: Sequence[Task], play: Play) -> Proposal:
    """The one whose candidate does best on `tasks`; of equals the shorter skill, then the earlier proposal."""
    candidates = {p.candidate.fingerprint: p.candidate for p in reversed(proposals) if p.candidate is not None}
    if len(candidates) < 2:
        return next((proposal for proposal in proposals if proposal.candidate is not None), proposals[0])
    async with asyncio.TaskGroup() as playing:
        scores = {name: playing.create_task(_score(policy, tasks, play)) for name, policy in candidates.items()}

    def promise(proposal: Proposal) -> tuple[float, int]:
        candidate = proposal.candidate
        if candidate is None:
            return (-1.0, 0)
        return (scores[candidate.fingerprint].result(), -sum(map(len, candidate.skill.files.values())))

    return max(proposals, key=promise)


async def _score(policy: Policy, tasks: Sequence[Task], play: Play) -> float:
    played = await play(policy, tasks, 0)
    return sum(one.hard + one.soft for one in played) / max(1, len(played))
