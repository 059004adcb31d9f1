"""One call to a model: what is asked, what comes back, what it costs, what it is for."""

from __future__ import annotations

from enum import StrEnum
from typing import Any, Protocol

import msgspec

from whet.core.messages import Message, ToolCall, ToolSpec, assistant


class Purpose(StrEnum):
    """Why a call is made. The ledger, the store and every report count by it."""

    ROLLOUT = "rollout"
    ASSESS = "assess"
    JUDGE = "judge"
    EXPERT = "expert"
    REFLECT_FAILURE = "reflect_failure"
    REFLECT_SUCCESS = "reflect_success"
    MERGE_FAILURE = "merge_failure"
    MERGE_SUCCESS = "merge_success"
    MERGE_FINAL = "merge_final"
    RANK = "rank"
    BUDGET = "budget"
    REWRITE = "rewrite"
    SLOW_UPDATE = "slow_update"
    MEMORY = "memory"
    CONSOLIDATE = "consolidate"
    TIDY = "tidy"
    MAKE = "make"
    CHECK = "check"
    PEER = "peer"
    """Another trainer's own question, in a comparison."""


class Priority(StrEnum):
    """Who goes first when an endpoint's places are few."""

    CRITICAL = "critical"
    """Something waits for it: the batch of this step, its reflection, its gate."""
    BACKGROUND = "background"
    """Needed only at the end, such as the starting policy's test rollouts."""


class Effort(StrEnum):
    """How long a reasoning model may think."""

    NONE = "none"
    MINIMAL = "minimal"
    LOW = "low"
    MEDIUM = "medium"
    HIGH = "high"
    XHIGH = "xhigh"


class Sampling(msgspec.Struct, frozen=True, forbid_unknown_fields=True, gc=False):
    """How a model answers. None leaves a setting to the endpoint; `max_tokens` always bounds the answer."""

    max_tokens: int = 2048
    temperature: float | None = None
    top_p: float | None = None
    stop: tuple[str, ...] = ()
    effort: Effort | None = None
    thinking: bool | None = None
    """For models whose thinking is switched rather than graded (Qwen)."""


class AdapterRef(msgspec.Struct, frozen=True, gc=False):
    """LoRA weights by content, with the identity of the base model that they fit."""

    fingerprint: str
    base: str
    """The base model's fingerprint: its weights and its chat template."""
    condition: str = ""
    """What a prompt must say to get the adapter's best; empty unless it learned from play of several qualities."""


class ModelRequest(msgspec.Struct, frozen=True, gc=False):
    """Named by its content, so nothing of it is left out where it is written: see `content_key`."""

    messages: tuple[Message, ...]
    tools: tuple[ToolSpec, ...] = ()
    sampling: Sampling = Sampling()
    seed: int | None = None
    schema: dict[str, Any] | None = None
    """A JSON schema that the answer must follow, for providers that can hold a model to one."""
    plain: bool = False
    """Send the messages' texts as one text to go on with, without the model's chat template."""
    adapter: AdapterRef | None = None
    """LoRA weights that the answer is made with."""

    @property
    def as_text(self) -> str:
        """What a plain request says."""
        return "\n\n".join(message.text for message in self.messages)


class Usage(msgspec.Struct, frozen=True, omit_defaults=True, gc=False):
    """Tokens of one or more calls; cached ones are part of the input, reasoning ones of the output."""

    input_tokens: int = 0
    output_tokens: int = 0
    cached_tokens: int = 0
    reasoning_tokens: int = 0

    def __add__(self, other: Usage) -> Usage:
        return Usage(
            self.input_tokens + other.input_tokens,
            self.output_tokens + other.output_tokens,
            self.cached_tokens + other.cached_tokens,
            self.reasoning_tokens + other.reasoning_tokens,
        )


class Finish(StrEnum):
    STOP = "stop"
    LENGTH = "length"
    TOOL_CALLS = "tool_calls"
    FILTERED = "filtered"


class ModelReply(msgspec.Struct, frozen=True, omit_defaults=True, gc=False):
    text: str
    tool_calls: tuple[ToolCall, ...] = ()
    finish: Finish = Finish.STOP
    usage: Usage | None = None
    """None where the endpoint does not say; the ledger then estimates."""
    served_by: str = ""
    """The model's name as the endpoint reports it."""
    reasoning: str = ""
    """What a reasoning model thought, kept out of the answer."""

    def as_message(self) -> Message:
        return assistant(self.text, self.tool_calls)


class ModelRef(msgspec.Struct, frozen=True, gc=False):
    """Which model, not where it is reached: a server that moves to another port is still the same model."""

    provider: str
    name: str

    def __str__(self) -> str:
        return f"{self.provider}/{self.name}"


class Model(Protocol):
    """Who thinks, as everything above `models` sees it: recorded, limited, paid for."""

    @property
    def ref(self) -> ModelRef: ...

    async def complete(
        self,
        request: ModelRequest,
        *,
        purpose: Purpose,
        salt: bytes = b"",
        priority: Priority = Priority.CRITICAL,
    ) -> ModelReply:
        """Answer `request`. The same request with the same salt is answered once and remembered."""
        ...
