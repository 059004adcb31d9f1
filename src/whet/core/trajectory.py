"""What happened in a session."""

from __future__ import annotations

from enum import StrEnum

import msgspec

from whet.core.calls import Usage
from whet.core.messages import Message
from whet.core.world import Split, Verdict


class FailureKind(StrEnum):
    """Why there is no verdict: never the agent's fault, so never a 0."""

    MODEL = "model"
    WORLD = "world"
    JUDGE = "judge"


class Failure(msgspec.Struct, frozen=True, gc=False):
    kind: FailureKind
    message: str


class End(StrEnum):
    """How an episode ended."""

    ANSWERED = "answered"
    WORLD_ENDED = "world_ended"
    TURN_LIMIT = "turn_limit"
    TOKEN_LIMIT = "token_limit"
    FAILED = "failed"


class Trajectory(msgspec.Struct, frozen=True, omit_defaults=True, gc=False):
    """`messages` starts after the system message, which the policy's fingerprint already says."""

    policy: str
    task: str
    split: Split
    sample: int
    """Which of several tries at this task by this policy."""
    messages: tuple[Message, ...]
    answer: str
    end: End
    verdict: Verdict | None = None
    failure: Failure | None = None
    usage: Usage = Usage()
    turns: int = 0
    tool_faults: int = 0
    kind: str = ""

    @property
    def hard(self) -> float:
        return 1.0 if self.verdict is not None and self.verdict.hard else 0.0

    @property
    def soft(self) -> float:
        return 0.0 if self.verdict is None else self.verdict.soft
