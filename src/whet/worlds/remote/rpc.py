"""The client's side of MCP: a handshake, the list of tools, and calls, one after the other.

What carries the messages (a process's pipes, HTTP requests) is a channel. A call whose answer is late or unreadable
loses the connection, so that no answer is ever taken for another's.
"""

from __future__ import annotations

import asyncio
from typing import Any, Protocol, cast

import msgspec

from whet.core import Json, ToolFault, ToolResult, WorldFault
from whet.worlds.remote.foreign import tool_answer

PROTOCOL = "2025-11-25"
METHOD_NOT_FOUND = -32601
INVALID_PARAMS = -32602
_MOST_PAGES = 100


class Message(msgspec.Struct, frozen=True, omit_defaults=True):
    """What a peer sends: an answer to us, a request of its own, or something that wants no answer."""

    id: str | int | None = None
    method: str = ""
    result: Any = None
    error: dict[str, Any] | None = None


class Channel(Protocol):
    async def exchange(self, call_id: int, message: bytes) -> Message:
        """The answer to one request. Raises WorldFault if the peer is gone."""
        ...

    async def send(self, message: bytes) -> None:
        """What is not answered."""
        ...

    async def close(self) -> None: ...


class Refused(Exception):
    """The peer answered with an error."""

    def __init__(self, code: int, message: str) -> None:
        super().__init__(message)
        self.code = code


_decode = msgspec.json.Decoder(Message).decode


def read_message(raw: bytes | str) -> Message | None:
    """None for what is not a message: some servers print to where they should be speaking."""
    try:
        return _decode(raw)
    except (ValueError, RecursionError):
        return None


def own_answer(message: Message) -> bytes | None:
    """What we answer to a peer's own request: we are there, and have nothing that it could ask for."""
    if not message.method or message.id is None:
        return None
    if message.method == "ping":
        return msgspec.json.encode({"jsonrpc": "2.0", "id": message.id, "result": {}})
    error = {"code": METHOD_NOT_FOUND, "message": f"this client has no {message.method}"}
    return msgspec.json.encode({"jsonrpc": "2.0", "id": message.id, "error": error})


class McpClient:
    def __init__(self, where: str, channel: Channel) -> None:
        self._where = where
        self._channel = channel
        self._turn = asyncio.Lock()
        self._calls = 0
        self.lost = ""
        """Why nothing can be asked any more."""

    async def begin(self, seconds: float) -> None:
        """Shake hands."""
        about = {
            "protocolVersion": PROTOCOL,
            "capabilities": {},
            "clientInfo": {"name": "whet", "version": "1"},
        }
        await self._asked("initialize", about, seconds)
        await self._channel.send(b'{"jsonrpc":"2.0","method":"notifications/initialized"}')

    async def tools(self, seconds: float) -> list[object]:
        """All pages of the list."""
        found: list[object] = []
        cursor: object = None
        for _ in range(_MOST_PAGES):
            page = await self._asked("tools/list", {} if cursor is None else {"cursor": cursor}, seconds)
            tools: object = page.get("tools")
            if not isinstance(tools, list):
                raise WorldFault(f"{self._where}: its list of tools is no list")
            found += cast("list[object]", tools)
            cursor = page.get("nextCursor")
            if cursor is None:
                return found
        raise WorldFault(f"{self._where}: its list of tools has no end")

    async def call(self, name: str, arguments: dict[str, Json], seconds: float) -> ToolResult:
        try:
            result = await self._ask("tools/call", {"name": name, "arguments": arguments}, seconds)
        except Refused as refused:
            if refused.code == INVALID_PARAMS:
                return ToolResult(str(refused), ToolFault.INVALID_ARGUMENTS)
            raise WorldFault(f"{self._where}: the tool {name} failed: {refused} ({refused.code})") from refused
        return tool_answer(result)

    async def close(self) -> None:
        self.lost = self.lost or "it was closed"
        await self._channel.close()

    async def _asked(self, method: str, params: dict[str, Any], seconds: float) -> dict[str, Any]:
        try:
            return await self._ask(method, params, seconds)
        except Refused as refused:
            raise WorldFault(f"{self._where}: {method} failed: {refused} ({refused.code})") from refused

    async def _ask(self, method: str, params: dict[str, Any], seconds: float) -> dict[str, Any]:
        async with self._turn:
            if self.lost:
                raise WorldFault(f"{self._where}: the episode is lost: {self.lost}")
            self._calls += 1
            request = {"jsonrpc": "2.0", "id": self._calls, "method": method, "params": params}
            try:
                async with asyncio.timeout(seconds):
                    answer = await self._channel.exchange(self._calls, msgspec.json.encode(request))
            except TimeoutError:
                self.lost = f"{method} was not answered within {seconds:g} s"
                raise WorldFault(f"{self._where}: {self.lost}; the episode is lost") from None
            except BaseException:
                self.lost = f"{method} was not answered"
                raise
        if answer.error is not None:
            code: object = answer.error.get("code")
            raise Refused(code if isinstance(code, int) else 0, str(answer.error.get("message", "")))
        if not isinstance(answer.result, dict):
            self.lost = f"{method} was answered with no object"
            raise WorldFault(f"{self._where}: {self.lost}")
        return cast("dict[str, Any]", answer.result)
