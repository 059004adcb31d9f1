"""The sockets: two listeners on aiohttp, one for trainers and one for agents.

The agents' listener has a single path, which holds an episode's token; the code behind it cannot reset, judge or look
at a state. Nothing here knows what a message means.
"""

from __future__ import annotations

import asyncio
import hmac
import re
from collections.abc import AsyncGenerator, Awaitable, Callable, Coroutine, Generator
from contextlib import asynccontextmanager, contextmanager
from typing import Any

import msgspec
from aiohttp import WSCloseCode, WSMessage, WSMsgType, web

from whet.core import WhetError
from whet.serving.worlds.control import answer_frame, answer_request
from whet.serving.worlds.hub import Hub
from whet.serving.worlds.rpc import agent_call, control_call
from whet.serving.worlds.seat import Seat
from whet.serving.worlds.wire import SERVER_ERROR, Code, Refusal, RpcError, encode, error_reply, rpc_error

_LOCAL = ("127.0.0.1", "localhost", "::1", "[::1]")
_PORT = re.compile(r":\d+$")
_JSON = "application/json"
_MOMENT_SECONDS = 0.5
"""From when on a socket is read while its last frame is being answered."""
_Answer = Callable[[Seat, "bytes | str"], Awaitable["bytes | None"]]


class Place(msgspec.Struct, frozen=True):
    """Where a server listens. Port 0 is any free one."""

    host: str = "127.0.0.1"
    port: int = 0
    agent_port: int | None = 0
    """None: agents have no listener of their own."""
    token: str = ""
    """If it is not empty, the control plane answers under `/TOKEN/`, or to this token in the header, and not else."""


class Running(msgspec.Struct, frozen=True):
    """Where the two planes are reached."""

    url: str
    agent_url: str


@asynccontextmanager
async def serving(hub: Hub, place: Place) -> AsyncGenerator[Running]:
    """A server for as long as the block runs; at its end every session is closed."""
    control = _ControlPlane(hub, place)
    runners: list[web.ServerRunner] = []
    try:
        agents = ""
        if place.agent_port is not None:
            agents = await _listen(_AgentPlane(hub, place).answer, hub, place.host, place.agent_port, runners)
        url = await _listen(control.answer, hub, place.host, place.port, runners)
        hub.agent_base = agents
        reaping = asyncio.create_task(hub.end_idle())
        try:
            yield Running(f"{url}/{place.token}" if place.token else url, agents)
        finally:
            reaping.cancel()
            await asyncio.wait([reaping])
    finally:
        # Sockets first: calls of a world that never ends are cancelled with whoever made them.
        hub.dismiss_all()
        for runner in runners:
            await runner.cleanup()
        await hub.close()


async def _listen(
    handler: Callable[[web.BaseRequest], Awaitable[web.StreamResponse]],
    hub: Hub,
    host: str,
    port: int,
    runners: list[web.ServerRunner],
) -> str:
    loop = asyncio.get_running_loop()

    def make(message: Any, payload: Any, protocol: Any, writer: Any, task: Any) -> web.BaseRequest:
        return web.BaseRequest(message, payload, protocol, writer, task, loop, client_max_size=hub.limits.frame_bytes)

    runner = web.ServerRunner(web.Server(handler, request_factory=make, access_log=None), shutdown_timeout=2.0)
    await runner.setup()
    runners.append(runner)
    try:
        await web.TCPSite(runner, host, port).start()
    except OSError as error:
        raise WhetError(f"port {port} of {host} cannot be listened on: {error.strerror}", hint="Try another") from error
    name = f"[{host}]" if ":" in host else host
    return f"http://{name}:{runner.addresses[0][1]}"


class _ControlPlane:
    def __init__(self, hub: Hub, place: Place) -> None:
        self._hub = hub
        self._place = place

    async def answer(self, request: web.BaseRequest) -> web.StreamResponse:
        path = self._inner_path(request)
        if path is None or not _from_here(request, self._place):
            return _refused(403, "this is not a place for you")
        if path == "/ws":
            return await self._socket(request, lambda seat, raw: answer_frame(self._hub, seat, raw))
        if path == "/mcp" and request.method == "GET" and "upgrade" in request.headers.get("connection", "").lower():
            return await self._socket(request, lambda seat, raw: control_call(self._hub, raw, seat), rpc=True)
        reply = await answer_request(self._hub, request.method, path, dict(request.query), await request.read())
        return web.Response(body=reply.body, status=reply.status, content_type=_JSON)

    def _inner_path(self, request: web.BaseRequest) -> str | None:
        token = self._place.token
        if not token or _same(request.headers.get("Authorization", "").removeprefix("Bearer "), token):
            return request.path
        first, _, rest = request.path.lstrip("/").partition("/")
        return f"/{rest}" if _same(first, token) else None

    async def _socket(self, request: web.BaseRequest, answer: _Answer, *, rpc: bool = False) -> web.StreamResponse:
        socket = web.WebSocketResponse(max_msg_size=self._hub.limits.frame_bytes, compress=False, heartbeat=30.0)
        if not socket.can_prepare(request).ok:
            return _refused(426, "this is a WebSocket")
        await socket.prepare(request)
        try:
            seat, own = self._taken(request.query.get("session_id", ""))
        except Refusal as refusal:
            error = RpcError(SERVER_ERROR, refusal.message)
            await _send(socket, rpc_error(None, error) if rpc else error_reply(refusal))
            await socket.close(code=WSCloseCode.TRY_AGAIN_LATER, message=refusal.code.value.encode())
            return socket
        try:
            await self._talk(socket, seat, answer)
        finally:
            seat.attached = False
            if own:
                await self._hub.leave(seat, "its connection was closed")
        await socket.close()
        return socket

    def _taken(self, named: str) -> tuple[Seat, bool]:
        """The seat that the client made before, or one of the socket's own."""
        seat = self._hub.seat(named) if named else self._hub.sit()
        if seat.attached:
            raise Refusal(Code.SESSION_ERROR, "another socket is attached to this session")
        seat.attached = True
        return seat, not named

    async def _talk(self, socket: web.WebSocketResponse, seat: Seat, answer: _Answer) -> None:
        """One frame after the other: an answer is sent before the next question is taken, so they cannot cross."""
        frames = _Frames(socket)
        try:
            async with asyncio.TaskGroup() as group:
                seat.on_gone = lambda: _start(group, _close(socket))
                while (frame := await frames.next()) is not None:
                    with frames.ahead():
                        said = await answer(seat, frame)
                    if said is None:
                        break
                    await _send(socket, said)
        except* ConnectionError:
            pass  # Whoever asked has left before the answer.
        finally:
            seat.on_gone = _nothing
            await frames.close()


class _Frames:
    """What a socket says. While the world takes its time the socket is read on, so that pings are answered."""

    def __init__(self, socket: web.WebSocketResponse) -> None:
        self._socket = socket
        self._loop = asyncio.get_running_loop()
        self._reading: asyncio.Task[WSMessage] | None = None

    async def next(self) -> bytes | str | None:
        """The next frame; None at the end of the connection."""
        if self._reading is None:
            message = await self._socket.receive()
        else:
            message, self._reading = await self._reading, None
        return message.data if message.type in (WSMsgType.TEXT, WSMsgType.BINARY) else None

    @contextmanager
    def ahead(self) -> Generator[None]:
        """Reading begins after a moment: most answers are there before, and do not pay for it."""
        timer = self._loop.call_later(_MOMENT_SECONDS, self._read)
        try:
            yield
        finally:
            timer.cancel()

    def _read(self) -> None:
        if self._reading is None:
            self._reading = self._loop.create_task(self._socket.receive())

    async def close(self) -> None:
        if self._reading is not None:
            self._reading.cancel()
            await asyncio.wait([self._reading])


async def _close(socket: web.WebSocketResponse) -> None:
    await socket.close(code=WSCloseCode.GOING_AWAY, message=b"the session has ended")


def _start(group: asyncio.TaskGroup, work: Coroutine[Any, Any, None]) -> None:
    group.create_task(work)


def _nothing() -> None:
    pass


class _AgentPlane:
    """One path, one method, one episode."""

    def __init__(self, hub: Hub, place: Place) -> None:
        self._hub = hub
        self._place = place

    async def answer(self, request: web.BaseRequest) -> web.StreamResponse:
        match request.path.strip("/").split("/"):
            case [token, "mcp"] if _from_here(request, self._place):
                pass
            case _:
                return _refused(404, "there is nothing here")
        if request.method != "POST":
            return _refused(405, "only POST")
        said = await agent_call(self._hub, token, await request.read())
        return web.Response(status=202) if said is None else web.Response(body=said, content_type=_JSON)


async def _send(socket: web.WebSocketResponse, said: bytes) -> None:
    await socket.send_frame(said, WSMsgType.TEXT)


def _same(given: str, token: str) -> bool:
    """In a time that does not tell how much of it is right."""
    return hmac.compare_digest(given.encode("utf-8", "surrogateescape"), token.encode())


def _from_here(request: web.BaseRequest, place: Place) -> bool:
    """Whether a page in somebody's browser could not have sent this: no foreign Origin, and no borrowed host name."""
    host = request.headers.get("Host", "")
    if place.host in _LOCAL and _PORT.sub("", host) not in _LOCAL:
        return False
    origin = request.headers.get("Origin")
    return origin is None or origin.partition("://")[2] == host


def _refused(status: int, why: str) -> web.Response:
    return web.Response(body=encode({"detail": why}), status=status, content_type=_JSON)
