"""Bytes over HTTP, and nothing more: no retries, no limits, no idea of what is in them.

`Transport` is the seam at which tests hand in a fake. aiohttp is imported when the first connection is made, since
most commands never make one.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import TYPE_CHECKING, Protocol
from urllib.parse import urlsplit

import msgspec

from whet.core import BadReply, EndpointTimeout, EndpointUnreachable

if TYPE_CHECKING:
    import aiohttp

MAX_REPLY_BYTES = 64 * 1024 * 1024
_DNS_SECONDS = 300
_KEEP_ALIVE_SECONDS = 60


class HttpReply(msgspec.Struct, frozen=True):
    status: int
    headers: Mapping[str, str]
    body: bytes


class HttpStream(Protocol):
    """A reply whose body is still arriving."""

    @property
    def status(self) -> int: ...

    @property
    def headers(self) -> Mapping[str, str]: ...

    def chunks(self) -> AsyncIterator[bytes]: ...

    async def read(self) -> bytes:
        """All that is left, as for an error's body."""
        ...


class Transport(Protocol):
    async def post(self, url: str, headers: Mapping[str, str], body: bytes, timeout: float) -> HttpReply:
        """Raises EndpointUnreachable, EndpointTimeout and BadReply; any status is a reply."""
        ...

    def stream(
        self, url: str, headers: Mapping[str, str], body: bytes, timeout: float
    ) -> AbstractAsyncContextManager[HttpStream]:
        """The same for a reply that is read as it arrives; `timeout` is for all of it."""
        ...

    async def close(self) -> None: ...


class AioTransport:
    """aiohttp with one pool of connections. How many calls run at once is decided elsewhere."""

    def __init__(self, *, max_reply_bytes: int = MAX_REPLY_BYTES) -> None:
        self._max_reply_bytes = max_reply_bytes
        self._session: aiohttp.ClientSession | None = None
        self._timeouts: dict[float, aiohttp.ClientTimeout] = {}

    async def __aenter__(self) -> AioTransport:
        return self

    async def __aexit__(self, *exc_info: object) -> None:
        await self.close()

    async def close(self) -> None:
        session, self._session = self._session, None
        if session is not None:
            await session.close()

    async def post(self, url: str, headers: Mapping[str, str], body: bytes, timeout: float) -> HttpReply:
        with _Failures(url):
            async with await self._request(url, headers, body, timeout) as response:
                content = await _read(response.content, self._max_reply_bytes)
                return HttpReply(response.status, response.headers, content)

    @asynccontextmanager
    async def stream(
        self, url: str, headers: Mapping[str, str], body: bytes, timeout: float
    ) -> AsyncGenerator[HttpStream]:
        with _Failures(url):
            response = await self._request(url, headers, body, timeout)
        async with response:
            yield _AioStream(response, url, self._max_reply_bytes)

    def _request(
        self, url: str, headers: Mapping[str, str], body: bytes, timeout: float
    ) -> Awaitable[aiohttp.ClientResponse]:
        session = self._session or self._open()
        limit = self._timeouts.get(timeout) or self._timeout(timeout)
        return session.post(url, data=body, headers=headers, timeout=limit, allow_redirects=False)

    def _open(self) -> aiohttp.ClientSession:
        import aiohttp

        connector = aiohttp.TCPConnector(limit=0, ttl_dns_cache=_DNS_SECONDS, keepalive_timeout=_KEEP_ALIVE_SECONDS)
        self._session = aiohttp.ClientSession(connector=connector, cookie_jar=aiohttp.DummyCookieJar())
        return self._session

    def _timeout(self, seconds: float) -> aiohttp.ClientTimeout:
        import aiohttp

        limit = self._timeouts[seconds] = aiohttp.ClientTimeout(total=seconds)
        return limit


class _AioStream:
    def __init__(self, response: aiohttp.ClientResponse, url: str, max_bytes: int) -> None:
        self._response = response
        self._url = url
        self._max_bytes = max_bytes

    @property
    def status(self) -> int:
        return self._response.status

    @property
    def headers(self) -> Mapping[str, str]:
        return self._response.headers

    async def chunks(self) -> AsyncIterator[bytes]:
        size = 0
        while chunk := await self._next():
            size += len(chunk)
            _check_size(size, self._max_bytes)
            yield chunk

    async def _next(self) -> bytes:
        with _Failures(self._url):
            return await self._response.content.readany()

    async def read(self) -> bytes:
        with _Failures(self._url):
            return await _read(self._response.content, self._max_bytes)


async def _read(content: aiohttp.StreamReader, max_bytes: int) -> bytes:
    """Counts what comes out of decompression, which a length in the headers does not tell."""
    chunks: list[bytes] = []
    size = 0
    while chunk := await content.readany():
        size += len(chunk)
        _check_size(size, max_bytes)
        chunks.append(chunk)
    return b"".join(chunks)


def _check_size(size: int, max_bytes: int) -> None:
    if size > max_bytes:
        raise BadReply(f"the endpoint's reply is larger than {max_bytes} bytes")


class _Failures:
    """Puts aiohttp's failures into whet's words. Its own texts may quote the request, so none is repeated.

    A class rather than a generator: every call passes through it.
    """

    __slots__ = ("_url",)

    def __init__(self, url: str) -> None:
        self._url = url

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: object) -> None:
        if error is None or not isinstance(error, Exception):
            return
        import aiohttp

        host = urlsplit(self._url).netloc
        if isinstance(error, TimeoutError):
            raise EndpointTimeout(f"no answer from {host} in time") from error
        if isinstance(error, aiohttp.ClientError | OSError):
            worked = not isinstance(error, aiohttp.ClientConnectorError)
            raise EndpointUnreachable(f"{host}: {_reason(error)}", worked=worked) from error


def _reason(error: Exception) -> str:
    import aiohttp

    match error:
        case aiohttp.ClientConnectorDNSError():
            return "no such host, or no network"
        case aiohttp.ClientSSLError():
            return "its certificate or encryption is not accepted"
        case aiohttp.ClientConnectorError(os_error=cause):
            return f"no connection ({cause.strerror or type(cause).__name__})"
        case aiohttp.ClientPayloadError():
            return "the connection broke within the reply"
        case aiohttp.ServerDisconnectedError():
            return "it closed the connection without a reply"
        case aiohttp.ClientResponseError():
            return "what it sent is not HTTP"
        case _:
            return f"the connection broke ({type(error).__name__})"
