"""What a configuration says about one role: which model, where, how it answers and how it is called."""

from __future__ import annotations

import math
from typing import TypeVar

import msgspec

from whet.core import Effort, Sampling
from whet.models.providers import EndpointOptions

K = TypeVar("K", bound=msgspec.Struct)


class CallSettings(EndpointOptions, frozen=True, omit_defaults=True, forbid_unknown_fields=True, kw_only=True):
    """How patiently and how densely an endpoint is called."""

    max_in_flight: int = 64
    """Calls at once at most; fewer while the endpoint pushes back."""
    timeout: float = 300.0
    """Seconds that one sending may take."""
    retries: int = 6
    """Sendings after a failed first one, before the run stops."""
    send_late_again: bool = True
    """Send a call a second time when it takes far longer than its like; both count as spent."""
    send_purpose: bool = False
    """Name each call's purpose and key in the headers x-whet-purpose and x-whet-key."""
    stream: bool = False
    """Receive answers piece by piece, for endpoints that drop connections on which nothing moves."""

    def __post_init__(self) -> None:
        if self.max_in_flight < 1:
            raise ValueError("`max_in_flight` is at least 1")
        if not 0 < self.timeout < math.inf:
            raise ValueError("`timeout` is more than 0, and not without end")
        if self.retries < 0:
            raise ValueError("`retries` is at least 0")


class RoleSettings(CallSettings, frozen=True, omit_defaults=True, forbid_unknown_fields=True, kw_only=True):
    """One role: target, optimizer, expert or judge."""

    model: str = ""
    """`provider/name`, such as "openai/gpt-5.5"; without an endpoint: "scripted/file.py:function" or a .jsonl file."""
    base_url: str = ""
    """Where the endpoint is, if not at the provider's usual address."""
    max_tokens: int = 2048
    """Tokens that one answer may have; it is also what a call is reserved for under a cap."""
    temperature: float | None = None
    """Left to the endpoint if not given."""
    top_p: float | None = None
    """Left to the endpoint if not given."""
    stop: tuple[str, ...] = ()
    """Texts at which an answer ends."""
    effort: Effort | None = None
    """How long a reasoning model may think: none, minimal, low, medium, high, xhigh."""
    thinking: bool | None = None
    """For models whose thinking is switched on or off."""

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.max_tokens < 1:
            raise ValueError("`max_tokens` is at least 1")

    @property
    def sampling(self) -> Sampling:
        return Sampling(self.max_tokens, self.temperature, self.top_p, self.stop, self.effort, self.thinking)
