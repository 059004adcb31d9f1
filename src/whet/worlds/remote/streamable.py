"""An MCP server by its address: each message is an HTTP request, answered by JSON or by a stream of events."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from contextlib import aclosing
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from whet.core import WorldFault
from whet.worlds.remote.rpc import PROTOCOL, Message, own_answer, read_message

if TYPE_CHECKING:
    import aiohttp

_SESSION = "Mcp-Session-Id"


class HttpChannel:
    """One session with a server."""

    def __init__(self, url: str, headers: dict[str, str], frame_bytes: int) -> None:
        import aiohttp

        self._url = url
        self._where = urlsplit(url).netloc
        self._frame_bytes = frame_bytes
        self._headers = {
            "Content-Type": "application/json",
            "Accept": "application/json, text/event-stream",
            "MCP-Protocol-Version": PROTOCOL,
            **headers,
        }
        # How long anything may take is decided by whoever asks.
        self._http = aiohttp.ClientSession(
            timeout=aiohttp.ClientTimeout(total=None), cookie_jar=aiohttp.DummyCookieJar()
        )

    async def exchange(self, call_id: int, message: bytes) -> Message:
        async with aclosing(self._answers(message)) as answers:
            async for answer in answers:
                if answer.id == call_id and not answer.method:
                    return answer
                own = own_answer(answer)
                if own is not None:
                    await self.send(own)
        raise WorldFault(f"{self._where}: the request was not answered")

    async def send(self, message: bytes) -> None:
        async with aclosing(self._answers(message)) as answers:
            async for _ in answers:
                pass

    async def close(self) -> None:
        import aiohttp

        try:
            if _SESSION in self._headers:
                async with asyncio.timeout(2.0), self._http.delete(self._url, headers=self._headers):
                    pass
        except (TimeoutError, aiohttp.ClientError):
            pass  # The server ends what nobody uses.
        finally:
            await self._http.close()

    async def _answers(self, message: bytes) -> AsyncGenerator[Message]:
        import aiohttp

        try:
            async with self._http.post(self._url, data=message, headers=self._headers) as reply:
                self._headers[_SESSION] = reply.headers.get(_SESSION, self._headers.get(_SESSION, ""))
                if not self._headers[_SESSION]:
                    del self._headers[_SESSION]
                if reply.status >= 400:
                    raise WorldFault(f"{self._where} answers {reply.status}: {(await reply.text())[:200]}")
                async for answer in self._read(reply):
                    yield answer
        except aiohttp.ClientError as error:
            raise WorldFault(f"{self._where} cannot be reached: {error}", hint="Is it running?") from error

    async def _read(self, reply: aiohttp.ClientResponse) -> AsyncGenerator[Message]:
        streamed = reply.content_type == "text/event-stream"
        async for part in self._events(reply) if streamed else self._whole(reply):
            answer = read_message(part)
            if answer is not None:
                yield answer

    async def _whole(self, reply: aiohttp.ClientResponse) -> AsyncGenerator[bytes]:
        parts: list[bytes] = []
        async for part in reply.content.iter_any():
            parts.append(part)
            self._check(sum(map(len, parts)))
        yield b"".join(parts)

    async def _events(self, reply: aiohttp.ClientResponse) -> AsyncGenerator[bytes]:
        """The data of each event."""
        waiting = b""
        async for part in reply.content.iter_any():
            waiting = (waiting + part).replace(b"\r\n", b"\n")
            self._check(len(waiting))
            *events, waiting = waiting.split(b"\n\n")
            for event in events:
                data = [line[5:].removeprefix(b" ") for line in event.split(b"\n") if line.startswith(b"data:")]
                if data:
                    yield b"\n".join(data)

    def _check(self, size: int) -> None:
        if size > self._frame_bytes:
            raise WorldFault(f"{self._where}: an answer is longer than {self._frame_bytes} bytes")
