"""The sockets: the application on uvicorn, which ends by answering what it has begun."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import AsyncGenerator, Generator
from contextlib import asynccontextmanager, closing, contextmanager

import msgspec
import uvicorn

from whet.core import WhetError
from whet.serving.gateway.app import Gateway
from whet.serving.gateway.switchboard import Switchboard

_BACKLOG = 2048


class Listening(msgspec.Struct, frozen=True):
    host: str = "127.0.0.1"
    port: int = 0
    """0 is any free one."""
    grace: float = 30.0
    """Seconds that requests under way have at the end."""


class _Quiet(uvicorn.Server):
    """Signals are the command line's."""

    @contextmanager
    def capture_signals(self) -> Generator[None]:
        yield


@asynccontextmanager
async def serving(gateway: Gateway, switchboard: Switchboard, where: Listening) -> AsyncGenerator[str]:
    """The gateway's address, for as long as the block runs. Then no more is accepted, and what was begun is ended."""
    with closing(_bind(where)) as listening:
        await switchboard.start()
        server = _Quiet(_config(gateway, where))
        following = asyncio.create_task(switchboard.follow())
        running = asyncio.create_task(server.serve(sockets=[listening]))
        try:
            while not server.started and not running.done():
                await asyncio.sleep(0.005)
            yield _address(where.host, listening)
        finally:
            server.should_exit = True
            await asyncio.wait([running])
            following.cancel()
            await asyncio.wait([following])
            await switchboard.close()
    running.result()
    if not following.cancelled():
        following.result()


def _config(gateway: Gateway, where: Listening) -> uvicorn.Config:
    return uvicorn.Config(
        gateway,
        http="h11",
        ws="none",
        lifespan="off",
        access_log=False,
        log_config=None,
        server_header=False,
        date_header=False,
        timeout_graceful_shutdown=max(1, round(where.grace)),
        timeout_keep_alive=75,
    )


def _bind(where: Listening) -> socket.socket:
    family = socket.AF_INET6 if ":" in where.host else socket.AF_INET
    listening = socket.socket(family, socket.SOCK_STREAM)
    listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listening.bind((where.host, where.port))
        listening.listen(_BACKLOG)
    except OSError as error:
        listening.close()
        message = f"port {where.port} of {where.host} cannot be listened on: {error.strerror}"
        raise WhetError(message, hint="Try another with --port.") from error
    listening.setblocking(False)
    return listening


def _address(host: str, listening: socket.socket) -> str:
    name = f"[{host}]" if ":" in host else host
    return f"http://{name}:{listening.getsockname()[1]}"
