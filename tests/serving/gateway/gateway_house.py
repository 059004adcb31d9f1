"""A gateway over a registry of its own, with a model that answers as told."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import httpx
import openai

from whet.core import Clock, ModelRef, ModelReply, ModelRequest, Policy, Skill, SystemClock, Usage
from whet.registry import Base, Draft, Record, Registry, open_registry
from whet.serving.gateway import Gateway, Local, Switchboard
from whet.serving.gateway.upstreams import Upstream
from whet.training.adapters import Shelf

BASE = Base("local/small", "b" * 32)
WORLD = "grid_ctf"
REF = ModelRef("local", "small")


def last_word(request: ModelRequest) -> ModelReply:
    """Says back what was said last, and under which skill."""
    head = request.messages[0].text if request.messages[0].speaker == "system" else "no skill"
    return ModelReply(f"{head} | {request.messages[-1].text}", usage=Usage(7, 3))


class Told:
    """Stands for an embedded model."""

    def __init__(self, answer: Callable[[ModelRequest], ModelReply] = last_word) -> None:
        self._answer = answer
        self.requests: list[ModelRequest] = []
        self.warmed: list[ModelRequest] = []
        """Sent before anybody asked."""
        self.open = asyncio.Event()
        self.open.set()
        self.cancelled = 0

    async def send(self, request: ModelRequest, timeout: float, headers: dict[str, str]) -> ModelReply:
        if request.sampling.max_tokens > 1:
            self.requests.append(request)
        else:
            self.warmed.append(request)
        try:
            await self.open.wait()
        except asyncio.CancelledError:
            self.cancelled += 1
            raise
        return self._answer(request)

    async def stream(self, request: ModelRequest) -> AsyncGenerator[str | ModelReply]:
        reply = await self.send(request, 1.0, {})
        for start in range(0, len(reply.text), 5):
            yield reply.text[start : start + 5]
        yield reply


def skilled(text: str, **kwargs: Any) -> Policy:
    return Policy(REF, skill=Skill.from_text(text), **kwargs)


class House:
    """Publishes with a connection of its own, as another process does."""

    def __init__(self, gateway: Gateway, switchboard: Switchboard, registry: Registry, model: Told) -> None:
        self.gateway = gateway
        self.switchboard = switchboard
        self.registry = registry
        self.model = model
        self.http = httpx.AsyncClient(transport=httpx.ASGITransport(gateway), base_url="http://localhost")
        self.openai = openai.AsyncOpenAI(
            base_url="http://localhost/v1", api_key="none", http_client=self.http, max_retries=0
        )

    def publish(
        self, policy: Policy, *, world: str = WORLD, channel: str = "", base: Base = BASE, adapter: Path | None = None
    ) -> Record:
        record = self.registry.publish(Draft(policy, world, base, adapter=adapter))
        if channel:
            self.registry.activate(record.id, channel=channel, force=True)
        return record

    async def ask(self, text: str, model: str = WORLD, **kwargs: Any) -> httpx.Response:
        body = {"model": model, "messages": [{"role": "user", "content": text}], **kwargs}
        return await self.http.post("/v1/chat/completions", json=body)


@asynccontextmanager
async def house(
    home: Path,
    *,
    model: Told | None = None,
    upstream: Upstream | None = None,
    clock: Clock | None = None,
    most_at_once: int = 16,
    **kwargs: Any,
) -> AsyncGenerator[House]:
    clock = clock or SystemClock()
    model = model or Told()
    answering = upstream or Local(model, BASE, Shelf(), most_at_once=most_at_once)
    with open_registry(home, clock) as followed, open_registry(home, clock) as ours:
        switchboard = Switchboard(followed, answering, Policy(REF), clock, lambda line: None)
        gateway = Gateway(switchboard, answering, clock, **kwargs)
        made = House(gateway, switchboard, ours, model)
        try:
            yield made
        finally:
            await made.http.aclose()
            await switchboard.close()
