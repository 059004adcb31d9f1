"""Who acts: everything that decides how an agent behaves, frozen and named by its content."""

from __future__ import annotations

from enum import StrEnum
from functools import cached_property

import msgspec

from whet.core.calls import AdapterRef, ModelRef, Sampling
from whet.core.content import fingerprint
from whet.core.skill import Skill


class ToolMode(StrEnum):
    NATIVE = "native"
    """The endpoint's own tool calls."""
    TEXT = "text"
    """Calls written as text, for models without tool calls."""


class Rendering(StrEnum):
    CHAT = "chat"
    """Messages, in the model's own chat template."""
    PLAIN = "plain"
    """One text that the model goes on with, for models that learned more from text than from chats."""


class Harness(msgspec.Struct, frozen=True):
    """How a policy is driven."""

    kind: str = "chat"
    max_turns: int = 50
    """Model calls an episode may take."""
    max_episode_tokens: int = 200_000
    """Tokens an episode may use, in and out, before it is ended and judged as it stands."""
    tool_mode: ToolMode = ToolMode.NATIVE
    rendering: Rendering = Rendering.CHAT
    constrained: bool = False
    """Hold the model to the task's answer schema, where there is one and the endpoint can."""


class Policy(msgspec.Struct, frozen=True, dict=True):
    model: ModelRef
    sampling: Sampling = Sampling()
    skill: Skill = Skill({})
    adapter: AdapterRef | None = None
    harness: Harness = Harness()

    def with_skill(self, skill: Skill) -> Policy:
        return msgspec.structs.replace(self, skill=skill)

    def with_rendering(self, rendering: Rendering) -> Policy:
        return msgspec.structs.replace(self, harness=msgspec.structs.replace(self.harness, rendering=rendering))

    def with_adapter(self, adapter: AdapterRef | None) -> Policy:
        return msgspec.structs.replace(self, adapter=adapter)

    @cached_property
    def fingerprint(self) -> str:
        return fingerprint("policy", self.model, self.sampling, self.skill.files, self.adapter, self.harness)
