"""One HTTP request and its answer over ASGI: reads within bounds, writes within bounds, knows when the caller left."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, MutableMapping
from functools import cached_property
from typing import Any

from whet.serving.gateway.refusal import Refusal
from whet.serving.gateway.turnstile import Limits

Scope = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]
Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]
Headers = list[tuple[bytes, bytes]]

JSON = (b"content-type", b"application/json")
TEXT = (b"content-type", b"text/plain; version=0.0.4; charset=utf-8")
EVENTS = (b"content-type", b"text/event-stream; charset=utf-8")


class Gone(Exception):
    """The caller has left, or takes nothing any more."""


class Exchange:
    def __init__(self, scope: Scope, receive: Receive, send: Send, limits: Limits) -> None:
        self.method: str = scope["method"]
        self.path: str = scope["path"]
        self._scope = scope
        self._receive = receive
        self._send = send
        self._limits = limits
        self.status = 0
        """What was sent; 0 until then."""

    @cached_property
    def headers(self) -> dict[bytes, bytes]:
        return dict(self._scope["headers"])

    async def body(self) -> bytes:
        """Raises Refusal where it is too large or too slow, Gone where it breaks off."""
        most = self._limits.body_bytes
        if _said_length(self.headers) > most:
            raise _too_large(most)
        try:
            async with asyncio.timeout(self._limits.body_seconds):
                return await self._read(most)
        except TimeoutError:
            seconds = self._limits.body_seconds
            raise Refusal(408, f"the request did not arrive within {seconds:g} s", code="request_timeout") from None

    async def _read(self, most: int) -> bytes:
        parts: list[bytes] = []
        size = 0
        while True:
            message = await self._receive()
            if message["type"] == "http.disconnect":
                raise Gone
            parts.append(message.get("body", b""))
            size += len(parts[-1])
            if size > most:
                raise _too_large(most)
            if not message.get("more_body"):
                return b"".join(parts)

    async def until_gone(self) -> None:
        """Returns once the caller has left. Only after the body was read."""
        while (await self._receive())["type"] != "http.disconnect":
            pass

    async def answer(self, status: int, body: bytes, headers: Headers) -> None:
        await self.start(status, [*headers, (b"content-length", str(len(body)).encode())])
        await self._write({"type": "http.response.body", "body": body})

    async def start(self, status: int, headers: Headers) -> None:
        self.status = status
        await self._write({"type": "http.response.start", "status": status, "headers": headers})

    async def write(self, piece: bytes) -> None:
        """Waits while the caller has not taken what is before it."""
        await self._write({"type": "http.response.body", "body": piece, "more_body": True})

    async def end(self) -> None:
        await self._write({"type": "http.response.body", "body": b""})

    async def _write(self, message: MutableMapping[str, Any]) -> None:
        try:
            async with asyncio.timeout(self._limits.send_seconds):
                await self._send(message)
        except (TimeoutError, OSError):
            raise Gone from None


def _said_length(headers: dict[bytes, bytes]) -> int:
    said = headers.get(b"content-length", b"")
    return int(said) if said.isdigit() and len(said) < 19 else 0


def _too_large(most: int) -> Refusal:
    return Refusal(413, f"a request has {most:,} bytes at most", code="request_too_large")
