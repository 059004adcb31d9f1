"""Servers that speak OpenAI's wire: asked as an evaluation asks them, and their answers handed on as they come."""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager, suppress
from pathlib import Path

import msgspec
from msgspec import Raw

from whet.core import (
    AdapterRef,
    BadReply,
    Clock,
    EndpointBusy,
    ModelReply,
    Policy,
    Rendering,
    RequestRefused,
    WhetError,
)
from whet.models.providers import Provider
from whet.models.transport import HttpStream, Transport
from whet.models.wires import OpenAIWire
from whet.models.wires.base import EventReader
from whet.models.wires.thinking import ThinkFilter
from whet.registry import Base
from whet.serving.gateway.replies import DONE, marked, marked_event, whole, without_thoughts
from whet.serving.gateway.upstreams import Call, Spent, merged

_MOST_AT_ONCE = 512
_LOAD_SECONDS = 120.0


class Passing:
    """An OpenAI-compatible server, for policies without an adapter."""

    def __init__(self, provider: Provider, base: Base, transport: Transport, clock: Clock) -> None:
        self._provider = provider
        self._base = base
        self._transport = transport
        self._clock = clock
        self._url = provider.wire.url(provider.base_url, provider.ref.name, stream=False)
        self._thinks = isinstance(provider.wire, OpenAIWire) and provider.wire.think_tags
        """Thoughts may stand in the answers; an evaluation judges what is left without them, so users get that too."""
        self._secret = ""
        self._headers: dict[str, str] | None = None

    @property
    def base(self) -> Base:
        return self._base

    @property
    def most_at_once(self) -> int:
        return _MOST_AT_ONCE

    async def prepare(self, policy: Policy, adapter: Path | None) -> None:
        _refuse_plain(policy)
        if policy.adapter is not None:
            raise RequestRefused(
                f"{self._provider.ref} cannot be asked with an adapter",
                hint="Adapters are served by the embedded model or by vLLM.",
            )

    async def relay(self, call: Call, spent: Spent) -> bytes:
        async with self._model(call) as model:
            body = await self._post(call, model)
        if self._thinks and b"think>" in body:
            reply = self._provider.wire.decode(body)
            spent.usage = reply.usage
            return whole(call.stamp, reply)
        answer, spent.usage = marked(body, call.stamp)
        return answer

    async def reply(self, call: Call) -> ModelReply:
        async with self._model(call) as model:
            return self._provider.wire.decode(await self._post(call, model))

    async def relay_events(self, call: Call, spent: Spent) -> AsyncGenerator[bytes]:
        events = EventReader()
        thoughts = ThinkFilter() if self._thinks else None
        async with self._model(call) as model, self._stream(call, model) as stream:
            async for chunk in stream.chunks():
                written: list[bytes] = []
                for event in events.feed(chunk):
                    event = without_thoughts(event, thoughts) if thoughts else event
                    said, used = marked_event(event, call.stamp, usage=call.asked.wants_usage)
                    spent.usage = used or spent.usage
                    written.append(said)
                if joined := b"".join(written):
                    yield joined
                if joined.endswith(DONE):
                    return
        raise BadReply("the upstream's stream broke off before its end")

    async def pieces(self, call: Call) -> AsyncGenerator[str | ModelReply]:
        decoder = self._provider.wire.stream()
        async with self._model(call) as model, self._stream(call, model) as stream:
            async for chunk in stream.chunks():
                if text := "".join(decoder.feed(chunk)):
                    yield text
        yield decoder.finish()

    @asynccontextmanager
    async def _model(self, call: Call) -> AsyncGenerator[str]:
        """The name to ask for, for as long as it is asked."""
        yield self._provider.ref.name

    async def _post(self, call: Call, model: str) -> bytes:
        body = self._body(call, model, stream=False)
        reply = await self._transport.post(self._url, await self._all_headers(), body, call.timeout)
        if reply.status != 200:
            wall = self._clock.wall()
            raise self._provider.wire.refusal(reply.status, reply.headers, reply.body, secret=self._secret, wall=wall)
        return reply.body

    @asynccontextmanager
    async def _stream(self, call: Call, model: str) -> AsyncGenerator[HttpStream]:
        body = self._body(call, model, stream=True)
        async with self._transport.stream(self._url, await self._all_headers(), body, call.timeout) as stream:
            if stream.status != 200:
                raise self._provider.wire.refusal(
                    stream.status, stream.headers, await stream.read(), secret=self._secret, wall=self._clock.wall()
                )
            yield stream

    def _body(self, call: Call, model: str, *, stream: bool) -> bytes:
        body = self._provider.wire.encode(model, call.request, stream=stream)
        kept = self._kept(call)
        return merged(body, kept) if kept else body

    def _kept(self, call: Call) -> dict[str, Raw]:
        """Tools go over as they were written where the model is told of any, and with them how to choose."""
        kept = call.asked.extras
        as_written = ["tools", "tool_choice"] if call.request.tools else []
        if call.request.schema == call.asked.schema and "response_format" in call.asked.kept:
            as_written.append("response_format")
        return {**kept, **{name: call.asked.kept[name] for name in as_written if name in call.asked.kept}}

    async def _all_headers(self) -> dict[str, str]:
        secret = await self._provider.credential.secret()
        if self._headers is None or secret != self._secret:
            self._secret = secret
            self._headers = self._provider.wire.headers(secret)
        return self._headers


def _refuse_plain(policy: Policy) -> None:
    if policy.harness.rendering is Rendering.PLAIN:
        raise RequestRefused(
            "this policy is rendered plain, and servers are asked by chat", hint="The embedded model serves it."
        )


class _Loaded:
    """An adapter on the server: how many calls ask for it, and when it is there."""

    def __init__(self) -> None:
        self.users = 0
        self.lock = asyncio.Lock()
        self.there = False


class VLLM(Passing):
    """vLLM: an adapter is loaded over its own endpoint, once, and is from then on a model's name."""

    def __init__(
        self, provider: Provider, base: Base, transport: Transport, clock: Clock, *, most_adapters: int = 8
    ) -> None:
        super().__init__(provider, base, transport, clock)
        self._most = most_adapters
        self._files: dict[str, Path] = {}
        self._loaded: OrderedDict[str, _Loaded] = OrderedDict()

    @property
    def loaded(self) -> list[str]:
        """Names of the adapters that the server has, the longest unused first."""
        return [name for name, one in self._loaded.items() if one.there]

    async def prepare(self, policy: Policy, adapter: Path | None) -> None:
        _refuse_plain(policy)
        if policy.adapter is None or adapter is None:
            return
        if policy.adapter.base != self._base.fingerprint:
            raise RequestRefused("the adapter was made for another base model")
        self._files[policy.adapter.fingerprint] = adapter.parent
        async with self._held(policy.adapter):
            pass

    @asynccontextmanager
    async def _model(self, call: Call) -> AsyncGenerator[str]:
        adapter = call.request.adapter
        if adapter is None:
            yield self._provider.ref.name
            return
        async with self._held(adapter) as name:
            try:
                yield name
            except RequestRefused as error:
                if "404" not in error.message:
                    raise
                self._loaded[name].there = False
                raise EndpointBusy(
                    f"the server has lost adapter {name}, as after a restart; it is loaded again"
                ) from error

    @asynccontextmanager
    async def _held(self, adapter: AdapterRef) -> AsyncGenerator[str]:
        name = f"whet-{adapter.fingerprint[:24]}"
        one = self._loaded.setdefault(name, _Loaded())
        self._loaded.move_to_end(name)
        one.users += 1
        try:
            async with one.lock:
                if not one.there:
                    await self._load(name, adapter)
                    one.there = True
            await self._make_room()
            yield name
        finally:
            one.users -= 1
            if not one.there and not one.users:
                self._loaded.pop(name, None)

    async def _load(self, name: str, adapter: AdapterRef) -> None:
        folder = self._files.get(adapter.fingerprint)
        if folder is None:
            raise RequestRefused(f"adapter {adapter.fingerprint[:12]} is not known here")
        try:
            await self._tell("load_lora_adapter", {"lora_name": name, "lora_path": str(folder.resolve())})
        except RequestRefused as error:
            # The name is made of its content, so one of this name is this one.
            if "already" not in error.message:
                raise

    async def _make_room(self) -> None:
        """Unload the longest unused that nobody asks for now."""
        idle = [(name, one) for name, one in self._loaded.items() if one.there and not one.users]
        for name, one in idle[: max(0, len(self._loaded) - self._most)]:
            async with one.lock:
                if one.users or not one.there:
                    continue
                one.there = False
                with suppress(WhetError):  # What stays loaded takes room on the server, and nothing else.
                    await self._tell("unload_lora_adapter", {"lora_name": name})
                if not one.users:
                    self._loaded.pop(name, None)

    async def _tell(self, what: str, said: dict[str, str]) -> None:
        url = f"{self._provider.base_url}/{what}"
        reply = await self._transport.post(url, await self._all_headers(), msgspec.json.encode(said), _LOAD_SECONDS)
        if reply.status != 200:
            raise self._provider.wire.refusal(reply.status, reply.headers, reply.body, secret=self._secret)
