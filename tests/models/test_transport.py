"""Bytes over real connections: what arrives, what breaks, and in whose words."""

import asyncio
import gzip
import subprocess
import sys
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager

import pytest

from whet.core import BadReply, EndpointTimeout, EndpointUnreachable, ModelReply
from whet.models.transport import AioTransport
from whet.testing.endpoint import StandInEndpoint, StandInFault, StandInRequest

BODY = b'{"messages": [{"content": "hi"}], "model": "m"}'
SECRET = {"Authorization": "Bearer private-0123456789"}
PATH = "/v1/chat/completions"


@asynccontextmanager
async def raw_server(
    handle: Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]],
) -> AsyncIterator[str]:
    """A server that speaks by hand, for replies that no web server would send."""

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            await reader.readuntil(b"\r\n\r\n")
            await handle(reader, writer)
            await writer.drain()
        except ConnectionError:
            pass
        finally:
            writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    try:
        yield f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
    finally:
        server.close()


def sending(reply: bytes) -> Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]:
    async def handle(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(reply)

    return handle


async def drained(transport: AioTransport, url: str, then: Exception | None = None) -> None:
    async with transport.stream(url, SECRET, BODY, 5.0) as stream:
        async for _ in stream.chunks():
            pass
        if then is not None:
            raise then


async def test_a_reply_comes_with_status_headers_and_body() -> None:
    fault = StandInFault(418, {"X-Mood": "short"}, b"tea")
    async with StandInEndpoint(lambda request: fault) as endpoint, AioTransport() as transport:
        reply = await transport.post(endpoint.base_url + PATH, SECRET, BODY, 5.0)
    assert (reply.status, reply.body, reply.headers["x-mood"]) == (418, b"tea", "short")
    assert endpoint.requests[0].headers["authorization"] == SECRET["Authorization"]
    assert "cookie" not in endpoint.requests[0].headers


async def test_calls_share_connections_and_are_not_limited_here() -> None:
    everyone = asyncio.Event()

    async def answer(request: StandInRequest) -> ModelReply:
        if request.number == 199:
            everyone.set()
        await everyone.wait()
        return ModelReply("x")

    async with StandInEndpoint(answer) as endpoint, AioTransport() as transport:
        await asyncio.gather(*(transport.post(endpoint.base_url + PATH, {}, BODY, 30.0) for _ in range(200)))
        assert endpoint.most_in_flight == 200
        for _ in range(3):
            await transport.post(endpoint.base_url + PATH, {}, BODY, 5.0)


async def test_no_answer_in_time_is_a_timeout() -> None:
    never = asyncio.Event()

    async def answer(request: StandInRequest) -> ModelReply:
        await never.wait()
        return ModelReply("")

    async with StandInEndpoint(answer) as endpoint, AioTransport() as transport:
        with pytest.raises(EndpointTimeout) as caught:
            await transport.post(endpoint.base_url + PATH, SECRET, BODY, 0.05)
        with pytest.raises(EndpointTimeout):
            async with transport.stream(endpoint.base_url + PATH, SECRET, BODY, 0.05):
                pass
        never.set()
    assert "private" not in str(caught.value)


@pytest.mark.parametrize(
    ("reply", "kind"),
    [
        (b"", EndpointUnreachable),
        (b"hello, this is not HTTP\r\n\r\n", EndpointUnreachable),
        (b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nshort", EndpointUnreachable),
        (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nshort\r\n", EndpointUnreachable),
        (b"HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nContent-Length: 5\r\n\r\nnogzi", EndpointUnreachable),
    ],
)
async def test_broken_connections_are_said_plainly(reply: bytes, kind: type[Exception]) -> None:
    async with raw_server(sending(reply)) as url, AioTransport() as transport:
        with pytest.raises(kind) as caught:
            await transport.post(url + PATH, SECRET, BODY, 5.0)
        with pytest.raises(kind):
            await drained(transport, url + PATH)
    assert "127.0.0.1" in str(caught.value)
    assert "private" not in str(caught.value)


async def test_a_dropped_connection_is_unreachable() -> None:
    async with StandInEndpoint(lambda request: StandInFault(drop=True)) as endpoint, AioTransport() as transport:
        with pytest.raises(EndpointUnreachable):
            await transport.post(endpoint.base_url + PATH, SECRET, BODY, 5.0)


async def test_a_reply_cut_off_is_unreachable() -> None:
    fault = StandInFault(cut_after=40, reply=ModelReply("x" * 100))
    async with StandInEndpoint(lambda request: fault) as endpoint, AioTransport() as transport:
        with pytest.raises(EndpointUnreachable, match="within the reply"):
            await transport.post(endpoint.base_url + PATH, SECRET, BODY, 5.0)


async def test_nobody_there_is_unreachable() -> None:
    async with StandInEndpoint(lambda request: ModelReply("")) as endpoint:
        gone = endpoint.base_url
    async with AioTransport() as transport:
        with pytest.raises(EndpointUnreachable, match="no connection"):
            await transport.post(gone + PATH, SECRET, BODY, 5.0)
        with pytest.raises(EndpointUnreachable, match="no such host"):
            await transport.post("http://no-such-host.invalid/v1", SECRET, BODY, 5.0)


async def test_a_reply_has_a_largest_size_also_once_unpacked() -> None:
    bomb = StandInFault(200, {"Content-Encoding": "gzip"}, gzip.compress(b"0" * 1_000_000))
    async with (
        StandInEndpoint(lambda request: bomb) as endpoint,
        AioTransport(max_reply_bytes=999_999) as small,
        AioTransport(max_reply_bytes=1_000_000) as large,
    ):
        url = endpoint.base_url + PATH
        assert len((await large.post(url, {}, BODY, 5.0)).body) == 1_000_000
        with pytest.raises(BadReply, match="larger"):
            await small.post(url, {}, BODY, 5.0)
        with pytest.raises(BadReply, match="larger"):
            await drained(small, url)
        # The connection with the rest of the reply in it is not used again.
        assert (await large.post(url, {}, BODY, 5.0)).status == 200


async def test_a_redirect_is_not_followed_with_the_key() -> None:
    async with StandInEndpoint(lambda request: ModelReply("stolen")) as elsewhere:
        fault = StandInFault(307, {"Location": elsewhere.base_url + PATH}, b"")
        async with StandInEndpoint(lambda request: fault) as endpoint, AioTransport() as transport:
            reply = await transport.post(endpoint.base_url + PATH, SECRET, BODY, 5.0)
    assert reply.status == 307
    assert elsewhere.requests == []


async def test_what_the_reader_of_a_stream_raises_is_left_alone() -> None:
    async with StandInEndpoint(lambda request: ModelReply("x")) as endpoint, AioTransport() as transport:
        with pytest.raises(OSError, match="mine"):
            await drained(transport, endpoint.base_url + PATH, OSError("mine"))


async def test_a_closed_transport_opens_again() -> None:
    async with StandInEndpoint(lambda request: ModelReply("x")) as endpoint, AioTransport() as transport:
        await transport.post(endpoint.base_url + PATH, {}, BODY, 5.0)
        await transport.close()
        assert (await transport.post(endpoint.base_url + PATH, {}, BODY, 5.0)).status == 200


@pytest.mark.parametrize(
    "module", ["whet.models.transport", "whet.models.providers", "whet.models.prices", "whet.models.credentials"]
)
def test_importing_loads_neither_aiohttp_nor_azure(module: str) -> None:
    check = f"import sys, {module}; sys.exit(bool({{'aiohttp', 'azure', 'yarl'}} & set(sys.modules)))"
    assert subprocess.run([sys.executable, "-c", check], check=False).returncode == 0
