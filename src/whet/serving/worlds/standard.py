"""A world by hand: one episode as a standard MCP server, made with the official library, for any MCP client.

The client sees the brief and the tools. There is no tool that ends the episode: whoever started the server ends it, by
closing its input or with Ctrl-C, and the verdict is told there.
"""

from __future__ import annotations

import asyncio
import socket
import sys
from collections.abc import AsyncGenerator, Callable, Generator
from contextlib import asynccontextmanager, contextmanager
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any, cast

import uvicorn

from whet.core import ConfigError, WhetError
from whet.serving.worlds.hub import Hub
from whet.serving.worlds.seat import Episode, Seat
from whet.serving.worlds.wire import Refusal, Reset

if TYPE_CHECKING:
    from mcp.server.lowlevel import Server

_PROMPT = "task"
_LINE_BYTES = 1 << 20


@asynccontextmanager
async def by_hand(
    hub: Hub, reset: Reset, answer: Callable[[], str], judged: Callable[[Episode], None]
) -> AsyncGenerator[Server[Any]]:
    """An MCP server of one episode. At the end of the block it is judged by what `answer` then gives."""
    _require_mcp()
    seat = hub.sit()
    episode, _ = await hub.reset(seat, reset)
    try:
        yield _server(hub.world.name, seat, episode)
    finally:
        try:
            await seat.judge(answer())
        finally:
            judged(episode)
            await hub.leave(seat, "it was played")


async def over_stdio(server: Server[Any]) -> None:
    """Until the client closes our input, or this is cancelled."""
    from mcp.server.stdio import stdio_server

    # The library reads in a thread that nothing can cancel; a pipe that the loop reads can be left at any time.
    loop = asyncio.get_running_loop()
    lines = asyncio.StreamReader(limit=_LINE_BYTES)
    transport, _ = await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(lines), sys.stdin)
    try:
        async with stdio_server(stdin=cast("Any", _texts(lines))) as (read, write):
            await server.run(read, write, server.create_initialization_options())
    finally:
        transport.close()


async def _texts(lines: asyncio.StreamReader) -> AsyncGenerator[str]:
    async for line in lines:
        yield line.decode("utf-8", "replace")


async def over_http(server: Server[Any], host: str, port: int, started: Callable[[str], None]) -> None:
    """Until this is cancelled."""
    app = server.streamable_http_app(host=host)
    http = _Http(uvicorn.Config(app, log_level="warning", access_log=False, ws="none"))
    with listening(host, port) as listener:
        started(f"http://{host}:{listener.getsockname()[1]}/mcp")
        running = asyncio.create_task(http.serve(sockets=[listener]))
        try:
            await asyncio.shield(running)
        finally:
            http.should_exit = True
            await running


def listening(host: str, port: int) -> socket.socket:
    try:
        return socket.create_server((host, port))
    except OSError as error:
        raise WhetError(f"port {port} of {host} cannot be listened on: {error.strerror}", hint="Try another") from error


class _Http(uvicorn.Server):
    @contextmanager
    def capture_signals(self) -> Generator[None]:
        """Ctrl-C is left to whoever runs the loop."""
        yield


def _server(world: str, seat: Seat, episode: Episode) -> Server[Any]:
    import mcp_types as types
    from mcp.server.lowlevel import Server

    brief = episode.session.brief.text

    async def list_tools(ctx: object, params: object) -> types.ListToolsResult:
        tools = [
            types.Tool(name=tool.name, description=tool.description, input_schema=tool.parameters)
            for tool in episode.session.tools
        ]
        return types.ListToolsResult(tools=tools)

    async def call_tool(ctx: object, params: types.CallToolRequestParams) -> types.CallToolResult:
        try:
            answer = await seat.call(params.name, params.arguments or {}, token=episode.token)
        except Refusal as refusal:
            return types.CallToolResult(content=[types.TextContent(text=refusal.message)], is_error=True)
        return types.CallToolResult(content=[types.TextContent(text=answer.text)], is_error=answer.fault is not None)

    async def list_prompts(ctx: object, params: object) -> types.ListPromptsResult:
        return types.ListPromptsResult(prompts=[types.Prompt(name=_PROMPT, description="What is to be done")])

    async def get_prompt(ctx: object, params: types.GetPromptRequestParams) -> types.GetPromptResult:
        said = types.PromptMessage(role="user", content=types.TextContent(text=brief))
        return types.GetPromptResult(messages=[said])

    return Server(
        world,
        version="1",
        instructions=brief,
        on_list_tools=list_tools,
        on_call_tool=call_tool,
        on_list_prompts=list_prompts,
        on_get_prompt=get_prompt,
    )


def _require_mcp() -> None:
    if find_spec("mcp") is None:
        raise ConfigError("the MCP server needs the package mcp", hint="pip install 'whet[mcp]'")
