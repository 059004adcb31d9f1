"""What a learner is: evidence in, a proposal out."""

from __future__ import annotations

from collections.abc import Awaitable, Sequence
from typing import Protocol

import msgspec

from whet.core.policy import Policy
from whet.core.ruling import Proposal
from whet.core.trajectory import Trajectory


class Step(msgspec.Struct, frozen=True):
    """Where in the training a proposal is made. `number` counts from 1 over the whole run."""

    number: int
    total: int
    epoch: int
    key: bytes
    """Names the step within its run: chance and calls that belong to it are derived from here."""


class Learner(Protocol):
    async def propose(self, incumbent: Policy, evidence: Sequence[Awaitable[Trajectory]], step: Step) -> Proposal:
        """Propose a change to `incumbent`.

        `evidence` is in task order and still arriving: a learner may begin on what is there, but what it proposes
        must not depend on the order of arrival.
        """
        ...
