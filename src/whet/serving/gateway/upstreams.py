"""Who answers: a model within the process, or a server that speaks OpenAI's wire."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import aclosing
from pathlib import Path
from typing import Any, Protocol, runtime_checkable

import msgspec
from msgspec import Raw

from whet.core import AdapterRef, ModelReply, ModelRequest, Policy, Sampling, Usage, user
from whet.registry import Base
from whet.serving.gateway.asked import Asked
from whet.serving.gateway.refusal import Refusal
from whet.serving.gateway.replies import Stamp
from whet.training.adapters import Shelf


class Call(msgspec.Struct, frozen=True):
    """One request to a model, rendered, with what the caller said besides."""

    request: ModelRequest
    asked: Asked
    stamp: Stamp
    timeout: float


class Spent(msgspec.Struct):
    """What a call used, as far as it became known."""

    usage: Usage | None = None


class Upstream(Protocol):
    @property
    def base(self) -> Base:
        """Which model it is, as the registry names it."""
        ...

    @property
    def most_at_once(self) -> int:
        """Calls that are worth sending at once."""
        ...

    async def prepare(self, policy: Policy, adapter: Path | None) -> None:
        """Make it ready to answer at once. Raises a WhetError where it cannot."""
        ...

    async def reply(self, call: Call) -> ModelReply: ...

    def pieces(self, call: Call) -> AsyncGenerator[str | ModelReply]:
        """Text as it arrives, and at the end the whole answer."""
        ...


@runtime_checkable
class Relay(Upstream, Protocol):
    """An upstream whose answers have the form already and are handed on as they come."""

    async def relay(self, call: Call, spent: Spent) -> bytes: ...

    def relay_events(self, call: Call, spent: Spent) -> AsyncGenerator[bytes]: ...


class Sends(Protocol):
    """What of an embedded model is needed here."""

    async def send(self, request: ModelRequest, timeout: float, headers: dict[str, str]) -> ModelReply: ...

    def stream(self, request: ModelRequest) -> AsyncGenerator[str | ModelReply]: ...


_WARM_SECONDS = 120.0
_HARMLESS = frozenset(
    {"user", "metadata", "store", "service_tier", "parallel_tool_calls", "safety_identifier", "prompt_cache_key"}
)
"""Fields that change nothing of an answer."""
_NOTHING = (b"null", b"0", b"0.0", b"false", b"{}", b"[]", b"1")


class Local:
    """The embedded model, with an adapter a request."""

    def __init__(self, model: Sends, base: Base, shelf: Shelf, *, most_at_once: int) -> None:
        self._model = model
        self._base = base
        self._shelf = shelf
        self._most_at_once = most_at_once
        self._started = False

    @property
    def base(self) -> Base:
        return self._base

    @property
    def most_at_once(self) -> int:
        return self._most_at_once

    async def prepare(self, policy: Policy, adapter: Path | None) -> None:
        """The model is started, and an adapter loaded, by answering once."""
        if policy.adapter is not None and adapter is not None:
            self._shelf.know(policy.adapter, adapter)
        elif self._started:
            return
        await self._model.send(_first_word(policy.adapter), _WARM_SECONDS, {})
        self._started = True

    async def reply(self, call: Call) -> ModelReply:
        _refuse_unknown(call.asked)
        return await self._model.send(call.request, call.timeout, {})

    async def pieces(self, call: Call) -> AsyncGenerator[str | ModelReply]:
        _refuse_unknown(call.asked)
        async with aclosing(self._model.stream(call.request)) as pieces:
            async for piece in pieces:
                yield piece


def _first_word(adapter: AdapterRef | None) -> ModelRequest:
    return ModelRequest((user("a"),), sampling=Sampling(max_tokens=1), plain=True, adapter=adapter)


def _refuse_unknown(asked: Asked) -> None:
    """What would change the answer and cannot be done is refused rather than left out."""
    for name, raw in asked.extras.items():
        if name not in _HARMLESS and bytes(raw).strip() not in _NOTHING:
            message = f"{name[:60]!r} is not something that this model can do"
            raise Refusal(400, message, param=name[:60], code="unsupported_parameter")
    if asked.tools and not _may_choose(asked.tool_choice):
        raise Refusal(400, "this model chooses itself whether it calls a tool", param="tool_choice")


def _may_choose(choice: Any) -> bool:
    return choice in (None, "auto", "none")


def merged(body: bytes, kept: dict[str, Raw]) -> bytes:
    """A body with fields that stay as their caller wrote them."""
    return msgspec.json.encode(msgspec.json.decode(body, type=dict[str, Raw]) | kept)
