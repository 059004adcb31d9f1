"""One WebSocket to an OpenEnv server: a question, its answer, and never the answer to another question.

A link whose answer is late, unreadable or cancelled is lost: whatever still comes over it is not read, and its episode
ends as a fault of the world.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

import msgspec

from whet.core import WorldFault

if TYPE_CHECKING:
    import aiohttp


class Answer(msgspec.Struct, frozen=True):
    type: str
    data: dict[str, Any] = {}


_decode = msgspec.json.Decoder(Answer).decode


class Link:
    """Made by `connect`, closed by whoever made it."""

    def __init__(self, where: str, session: aiohttp.ClientSession, socket: aiohttp.ClientWebSocketResponse) -> None:
        self._where = where
        self._session = session
        self._socket = socket
        self._turn = asyncio.Lock()
        self._lost = ""

    @property
    def lost(self) -> str:
        """Why nothing can be asked any more."""
        return self._lost

    async def ask(self, kind: str, data: object, seconds: float) -> Answer:
        """The answer, which may be an error of the server's. Raises WorldFault if there is none."""
        async with self._turn:
            if self._lost:
                raise WorldFault(f"{self._where}: the episode is lost: {self._lost}")
            try:
                async with asyncio.timeout(seconds):
                    return await self._exchange({"type": kind, "data": data})
            except TimeoutError:
                await self._lose(f"a {kind} was not answered within {seconds:g} s")
                raise WorldFault(f"{self._where}: {self._lost}; the episode is lost") from None
            except BaseException:
                await self._lose(f"a {kind} was not answered")
                raise

    async def close(self) -> None:
        """Says goodbye, where there is still somebody to say it to."""
        if not self._lost:
            self._lost = "it was closed"
            try:
                async with asyncio.timeout(1.0):
                    await self._socket.send_str('{"type":"close"}')
                    await self._socket.close()
            except (TimeoutError, ConnectionError):
                pass
        await self._session.close()

    async def _exchange(self, message: dict[str, Any]) -> Answer:
        import aiohttp

        try:
            await self._socket.send_str(_text(message))
            received = await self._socket.receive()
        except (ConnectionError, aiohttp.ClientError) as error:
            raise WorldFault(f"{self._where}: the connection broke: {error}") from error
        if received.type is not aiohttp.WSMsgType.TEXT:
            raise WorldFault(f"{self._where}: the server closed the connection ({_why(received, self._socket)})")
        try:
            return _decode(received.data)
        except (ValueError, RecursionError) as error:
            raise WorldFault(f"{self._where}: the answer is not one of this wire: {error}") from error

    async def _lose(self, why: str) -> None:
        """Without a handshake, which a stuck server would not take part in."""
        self._lost = why
        await self._session.close()


async def connect(url: str, headers: dict[str, str], *, seconds: float, frame_bytes: int) -> Link:
    import aiohttp

    where = urlsplit(url).netloc
    session = aiohttp.ClientSession(headers=headers, cookie_jar=aiohttp.DummyCookieJar())
    try:
        async with asyncio.timeout(seconds):
            socket = await session.ws_connect(url, max_msg_size=frame_bytes, compress=0)
    except (TimeoutError, OSError, aiohttp.ClientError) as error:
        await session.close()
        raise WorldFault(f"{where} cannot be reached: {error or 'no answer in time'}", hint="Is it running?") from error
    except BaseException:
        await session.close()
        raise
    return Link(where, session, socket)


def _text(message: dict[str, Any]) -> str:
    try:
        return msgspec.json.encode(message).decode()
    except UnicodeEncodeError as error:
        raise WorldFault(f"what was to be sent is not Unicode: {error}") from error


def _why(received: aiohttp.WSMessage, socket: aiohttp.ClientWebSocketResponse) -> str:
    code: object = socket.close_code
    said: object = received.extra
    return f"code {code}, {said}" if said else f"code {code}"
