"""What a page shows that the report itself does not hold."""

from __future__ import annotations

import msgspec

from whet.store import FailureLine, SpendingLine
from whet.training import Comparison


class ChangedTask(msgspec.Struct, frozen=True):
    """A test task that the best policy does otherwise than the starting one."""

    task: str
    kind: str
    question: str
    before: str
    """The starting policy's answer."""
    after: str
    feedback: str
    """What the world said of the answer that did not pass."""


class Facts(msgspec.Struct, frozen=True):
    """It follows from what was played, as the report does: the same for a run that was killed and one that was not."""

    start_skill: dict[str, str] = {}
    skills: dict[str, dict[str, str]] = {}
    """Files of the policies that steps began with, by fingerprint."""
    changed: tuple[ChangedTask, ...] = ()
    """Some of the test tasks that the best policy does otherwise than the starting one."""
    kinds: dict[str, str] = {}
    """Of all of them, by task."""
    last: Comparison | None = None
    """The last policy against the starting one, where it is neither that nor the best."""
    note: str = ""
    """Why this is not the whole run."""


class Timing(msgspec.Struct, frozen=True):
    """It depends on when calls ended and how often they had to be sent: no two runs agree on it."""

    spending: tuple[SpendingLine, ...]
    seconds: float
    """How long processes worked on the run."""
    at: float
    """When something last happened, in seconds since 1970."""
    failures: int
    """Tries that ended without a verdict."""
    latest_failures: tuple[FailureLine, ...] = ()
