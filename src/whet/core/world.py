"""Where agents act. The agent reaches `brief`, `tools` and `call`; only the trainer's side reaches `judge`."""

from __future__ import annotations

import math
from collections.abc import Sequence
from enum import StrEnum
from functools import cached_property
from typing import Any, Protocol, runtime_checkable

import msgspec

from whet.core.content import Json, fingerprint
from whet.core.messages import ImagePart, ToolSpec


class Split(StrEnum):
    TRAIN = "train"
    SELECTION = "selection"
    TEST = "test"
    CONFIRM = "confirm"


class Task(msgspec.Struct, frozen=True, dict=True):
    """One problem. `inputs` may be shown to an agent, so the answer key is never in it: the world keeps that."""

    id: str
    split: Split
    inputs: dict[str, Json]
    kind: str = ""
    """A task type, for scores by type."""

    @cached_property
    def fingerprint(self) -> str:
        """By content, not by id: the same inputs under another id are the same task."""
        return fingerprint("task", self.inputs)


class Brief(msgspec.Struct, frozen=True, omit_defaults=True, gc=False):
    """What the agent is told. An empty text is an error of the world."""

    text: str
    images: tuple[ImagePart, ...] = ()
    answer_schema: dict[str, Any] | None = None
    """A JSON schema of the answer, where the world has one."""


class ToolFault(StrEnum):
    """What went wrong with a tool call, as the engine and rewards need to tell it apart."""

    UNKNOWN_TOOL = "unknown_tool"
    INVALID_ARGUMENTS = "invalid_arguments"
    REFUSED = "refused"
    """The tool ran and says no: an answer like "customer not found"."""


class ToolResult(msgspec.Struct, frozen=True, omit_defaults=True, gc=False):
    text: str
    fault: ToolFault | None = None
    ends: bool = False
    """The episode is over with this call, as when a game is decided."""


class Verdict(msgspec.Struct, frozen=True, omit_defaults=True, gc=False):
    """What the world says of a finished session. `scored=False` is a fault of ours: retried, never counted as 0."""

    hard: bool
    soft: float
    feedback: str = ""
    """For learners; the part before the first colon names the reason."""
    facts: dict[str, Json] = {}
    reference: str = ""
    """The right answer, where the world shows it to learners."""
    scored: bool = True

    def __post_init__(self) -> None:
        if not (math.isfinite(self.soft) and 0.0 <= self.soft <= 1.0):
            raise ValueError(f"a verdict's soft score is between 0 and 1, not {self.soft}")


class Act(msgspec.Struct, frozen=True, gc=False):
    """One call of a tool, with arguments that are already parsed."""

    tool: str
    arguments: dict[str, Json] = {}


class Solution(msgspec.Struct, frozen=True, gc=False):
    """A scripted way through a task: what is done, in order, and what is answered at the end."""

    acts: tuple[Act, ...] = ()
    answer: str = ""


class Session(Protocol):
    """One live, isolated try at one task. Single use: after `judge` or `close` it is over."""

    @property
    def brief(self) -> Brief: ...

    @property
    def tools(self) -> Sequence[ToolSpec]: ...

    async def call(self, name: str, arguments: dict[str, Json]) -> ToolResult: ...

    async def judge(self, answer: str) -> Verdict:
        """Ends the session. Raises WorldFault where the world itself broke."""
        ...

    async def close(self) -> None:
        """Ends it without a verdict; always called, also after `judge`."""
        ...


@runtime_checkable
class ForkableSession(Session, Protocol):
    """A session that can be branched: the fork starts where this one stands, and neither sees what the other does."""

    async def fork(self) -> Session: ...


class World(Protocol):
    """A family of tasks and the state they play out in."""

    @property
    def name(self) -> str: ...

    @property
    def fingerprint(self) -> str:
        """Changes whenever a verdict could: tasks, answer keys, scoring."""
        ...

    def tasks(self, split: Split) -> Sequence[Task]: ...

    async def open(self, task: Task, seed: int) -> Session: ...


@runtime_checkable
class HeldWorld(World, Protocol):
    """A world that holds processes or connections while it is played. They are started when first needed, and again
    after `aclose`."""

    async def aclose(self) -> None: ...
