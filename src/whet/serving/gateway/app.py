"""The gateway as an ASGI application: from a request to the policy that answers it, and back."""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import AsyncGenerator, Callable, Coroutine, Mapping
from contextlib import aclosing
from typing import Any

import msgspec

from whet.core import Clock, ModelReply, WhetError
from whet.rollout.render import render
from whet.serving.gateway import replies
from whet.serving.gateway.asked import Asked, read_chat, read_text
from whet.serving.gateway.capture import Capture, said
from whet.serving.gateway.exchange import EVENTS, JSON, TEXT, Exchange, Gone, Headers, Receive, Scope, Send
from whet.serving.gateway.guarding import Guard
from whet.serving.gateway.metrics import Done, Labels, Metrics
from whet.serving.gateway.refusal import Refusal, refusal_of
from whet.serving.gateway.rendering import Render, request_of, with_calls, written_tools
from whet.serving.gateway.routes import Chosen
from whet.serving.gateway.switchboard import Switchboard
from whet.serving.gateway.turnstile import Limits, Turnstile
from whet.serving.gateway.upstreams import Call, Relay, Spent, Upstream

_CHAT, _TEXT = "/v1/chat/completions", "/v1/completions"
_LEFT = 499
_NO_SCHEMAS: Mapping[str, dict[str, Any]] = {}
_MOST_KEPT = 4 * 1024 * 1024
"""Bytes of a stream that are kept to capture it."""


def _unheard(done: Done) -> None:
    pass


class Gateway:
    """Everything that answers, in one event loop. `on_done` is told of each request when it is over.

    `schemas` are what the answers of a world are held to where its policy is constrained and the caller says no other.
    """

    def __init__(
        self,
        switchboard: Switchboard,
        upstream: Upstream,
        clock: Clock,
        *,
        guard: Guard = Guard(),  # noqa: B008 (frozen)
        limits: Limits = Limits(),  # noqa: B008 (frozen)
        canary: float = 0.0,
        capture: Capture | None = None,
        schemas: Mapping[str, dict[str, Any]] = _NO_SCHEMAS,
        renderer: Render = render,
        on_done: Callable[[Done], None] = _unheard,
    ) -> None:
        self._switchboard = switchboard
        self._upstream = upstream
        self._clock = clock
        self._guard = guard
        self._limits = limits
        self._canary = canary
        self._capture = capture
        self._schemas = schemas
        self._render = renderer
        self._on_done = on_done
        self.metrics = Metrics()
        self.turnstile = Turnstile(limits.at_once or upstream.most_at_once, limits.waiting)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http":
            await self._http(Exchange(scope, receive, send, self._limits))
        elif scope["type"] == "websocket":
            await send({"type": "websocket.close"})

    async def _http(self, exchange: Exchange) -> None:
        work = _Work()
        started = self._clock.now()
        try:
            await self._dispatch(exchange, work)
        except Refusal as refusal:
            await self._refuse(exchange, refusal, work)
        except WhetError as error:
            await self._refuse(exchange, refusal_of(error), work)
        except Gone:
            work.left = True
        finally:
            if exchange.path in (_CHAT, _TEXT):
                status = _LEFT if work.left else exchange.status or 500
                seconds = self._clock.now() - started
                done = Done(work.labels, exchange.path, status, seconds, work.spent.usage)
                self.metrics.add(done)
                self._on_done(done)

    async def _dispatch(self, exchange: Exchange, work: _Work) -> None:
        match exchange.method, exchange.path:
            case "GET", "/healthz":
                await self._health(exchange)
            case "GET", "/metrics":
                self._guard.check(exchange.headers)
                await exchange.answer(200, self.metrics.text(self._gauges()), [TEXT])
            case "GET", "/v1/models":
                self._guard.check(exchange.headers)
                await exchange.answer(200, self._models(), [JSON])
            case "GET", path if path.startswith("/v1/models/"):
                self._guard.check(exchange.headers)
                await self._model(exchange, path.removeprefix("/v1/models/"))
            case "POST", path if path in (_CHAT, _TEXT):
                self._guard.check(exchange.headers)
                await self._ask(exchange, work)
            case _, path if path in (_CHAT, _TEXT, "/healthz", "/metrics", "/v1/models"):
                raise Refusal(405, f"{path} is not asked with {exchange.method[:20]}")
            case _:
                raise Refusal(404, "there is nothing at this path", code="unknown_url")

    async def _refuse(self, exchange: Exchange, refusal: Refusal, work: _Work) -> None:
        """Once an answer has begun, as its last event."""
        try:
            if exchange.status == 0:
                await exchange.answer(refusal.status, refusal.body, [JSON, *refusal.headers])
            else:
                exchange.status = refusal.status
                await exchange.write(replies.error_event(refusal.body))
                await exchange.end()
        except Gone:
            work.left = True

    async def _ask(self, exchange: Exchange, work: _Work) -> None:
        body = await exchange.body()
        asked = read_chat(body) if exchange.path == _CHAT else read_text(body)
        key = exchange.headers.get(b"x-request-id", b"").decode("latin-1")[:200] or secrets.token_hex(12)
        chosen = await self._switchboard.choose(asked.model, key, self._canary)
        work.labels = Labels(chosen.route.world, chosen.route.record, chosen.channel)
        await _unless_gone(self._answer(exchange, asked, chosen, key, work), exchange, work)

    async def _answer(self, exchange: Exchange, asked: Asked, chosen: Chosen, key: str, work: _Work) -> None:
        try:
            async with asyncio.timeout(self._limits.seconds), self.turnstile.turn():
                await self._call(exchange, asked, chosen, key, work)
        except TimeoutError:
            message = f"there was no whole answer within {self._limits.seconds:g} s"
            raise Refusal(504, message, code="timeout") from None

    async def _call(self, exchange: Exchange, asked: Asked, chosen: Chosen, key: str, work: _Work) -> None:
        route = chosen.route
        request = request_of(route.policy, asked, self._schemas.get(route.world), self._render)
        created = int(self._clock.wall())
        stamp = replies.Stamp(f"chatcmpl-{key[:48]}", created, asked.model, route.record, asked.chat)
        call = Call(request, asked, stamp, self._limits.seconds)
        headers: Headers = [(b"x-whet-policy", route.record.encode()), (b"x-request-id", key.encode("latin-1"))]
        if chosen.channel:
            headers.append((b"x-whet-channel", chosen.channel.encode()))
        if asked.stream:
            await self._stream(exchange, self._events(call, chosen, work), [EVENTS, *headers], call, chosen)
            return
        answer = await self._whole(call, chosen, work)
        self._keep(call, chosen, answer)
        await exchange.answer(200, answer, [JSON, *headers])

    async def _whole(self, call: Call, chosen: Chosen, work: _Work) -> bytes:
        if isinstance(self._upstream, Relay) and _as_it_comes(call, chosen):
            return await self._upstream.relay(call, work.spent)
        reply = await self._upstream.reply(call)
        work.spent.usage = reply.usage
        return replies.whole(call.stamp, _called(call, chosen, reply))

    async def _stream(
        self, exchange: Exchange, events: AsyncGenerator[bytes], headers: Headers, call: Call, chosen: Chosen
    ) -> None:
        """Nothing is sent before the first event, so that what fails before it has a status of its own."""
        kept: list[bytes] = []
        size = 0
        async with aclosing(events):
            async for event in events:
                if exchange.status == 0:
                    await exchange.start(200, [*headers, (b"cache-control", b"no-cache")])
                await exchange.write(event)
                size += len(event)
                if self._capture is not None and size < _MOST_KEPT:
                    kept.append(event)
        await exchange.end()
        self._keep(call, chosen, b"".join(kept))

    async def _events(self, call: Call, chosen: Chosen, work: _Work) -> AsyncGenerator[bytes]:
        if isinstance(self._upstream, Relay) and _as_it_comes(call, chosen):
            async with aclosing(self._upstream.relay_events(call, work.spent)) as events:
                async for event in events:
                    yield event
            return
        if written_tools(chosen.route.policy, call.asked):
            # Calls within the text are known at its end only.
            reply = await self._upstream.reply(call)
            work.spent.usage = reply.usage
            done = with_calls(reply)
            yield b"".join(replies.events(call.stamp, [done.text], done, usage=call.asked.wants_usage))
            return
        pending, told = replies.first_event(call.stamp), 0
        async with aclosing(self._upstream.pieces(call)) as pieces:
            async for piece in pieces:
                if isinstance(piece, str):
                    told += len(piece)
                    yield pending + replies.piece_event(call.stamp, piece)
                else:
                    work.spent.usage = piece.usage
                    # What was held back until it was clear that it is no thinking, or all of an answer with calls.
                    rest = replies.piece_event(call.stamp, piece.text[told:]) if piece.text[told:] else b""
                    last = replies.last_events(call.stamp, piece, usage=call.asked.wants_usage)
                    yield pending + rest + b"".join(last)
                pending = b""

    def _keep(self, call: Call, chosen: Chosen, answer: bytes) -> None:
        if self._capture is None:
            return
        named = {"model": call.asked.model, "world": chosen.route.world, "policy": chosen.route.record}
        head = {"at": self._clock.wall(), "id": call.stamp.id, **named, "channel": chosen.channel}
        try:
            self._capture.add(head | said(call.asked.kept, answer, stream=call.asked.stream))
        except WhetError:
            self.metrics.captures_failed += 1

    async def _health(self, exchange: Exchange) -> None:
        table = self._switchboard.table
        troubles = {name: route.trouble for name, route in table.names() if route.trouble}
        well = not troubles and not self._switchboard.trouble
        said: dict[str, Any] = {"status": "ok" if well else "degraded"}
        try:
            self._guard.check(exchange.headers)
        except Refusal:
            pass  # Whether it is well may be known to all; what is served, to those with a key.
        else:
            said |= {
                "base": self._upstream.base.name,
                "registry": self._switchboard.trouble or "ok",
                "serving": {name: route.record for name, route in table.names() if not route.trouble},
                "troubles": troubles,
            }
        await exchange.answer(200 if well else 503, msgspec.json.encode(said), [JSON])

    def _gauges(self) -> dict[str, float]:
        return {
            "whet_requests_in_flight": float(self.turnstile.inside),
            "whet_requests_waiting": float(self.turnstile.waiting),
            "whet_policies_in_trouble": float(sum(bool(r.trouble) for _, r in self._switchboard.table.names())),
        }

    def _models(self) -> bytes:
        models = [_model(name, route.record) for name, route in self._switchboard.table.names()]
        return msgspec.json.encode({"object": "list", "data": models})

    async def _model(self, exchange: Exchange, name: str) -> None:
        chosen = await self._switchboard.choose(name, "", 0.0)
        await exchange.answer(200, msgspec.json.encode(_model(name, chosen.route.record)), [JSON])


class _Work:
    """What becomes known of a request on its way."""

    def __init__(self) -> None:
        self.labels = Labels()
        self.spent = Spent()
        self.left = False


async def _unless_gone(answering: Coroutine[Any, Any, None], exchange: Exchange, work: _Work) -> None:
    """Ends the answering when the caller leaves: nobody would read it, and it holds a place."""
    answer = asyncio.create_task(answering)
    gone = asyncio.create_task(exchange.until_gone())
    try:
        await asyncio.wait([answer, gone], return_when=asyncio.FIRST_COMPLETED)
        if not answer.done():
            work.left = True
    finally:
        for task in (gone, answer):
            if not task.done():
                task.cancel()
        await asyncio.wait([gone, answer])
    if work.left:
        raise Gone
    answer.result()


def _as_it_comes(call: Call, chosen: Chosen) -> bool:
    """Whether an upstream's answer has the form already that the caller wants."""
    return call.asked.chat and not written_tools(chosen.route.policy, call.asked)


def _called(call: Call, chosen: Chosen, reply: ModelReply) -> ModelReply:
    return with_calls(reply) if written_tools(chosen.route.policy, call.asked) else reply


def _model(name: str, record: str) -> dict[str, Any]:
    return {"id": name, "object": "model", "created": 0, "owned_by": "whet", "policy": record}
