"""The tools of an MCP server as a world: a task file says what is to be done, a scorer or a function what counts."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated
from weakref import WeakKeyDictionary

import msgspec

from whet.core import (
    Brief,
    ConfigError,
    Json,
    Model,
    Session,
    Split,
    Task,
    ToolResult,
    ToolSpec,
    Verdict,
    WorldFault,
    fingerprint,
)
from whet.worlds.authoring import AuthoredWorld
from whet.worlds.jsonl import JsonlSettings, JsonlWorld
from whet.worlds.marking import world
from whet.worlds.remote.foreign import Toolbox
from whet.worlds.remote.rpc import Channel, McpClient
from whet.worlds.remote.stdio import start
from whet.worlds.remote.streamable import HttpChannel

Seconds = Annotated[float, msgspec.Meta(gt=0)]


class McpSettings(JsonlSettings, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Which server gives the tools; the tasks and the scorer are those of `jsonl`."""

    command: tuple[str, ...] = ()
    """The server as a command, such as `["python", "server.py"]`. Each session has a process of its own."""
    env: tuple[str, ...] = ()
    """Names of the environment variables that the command is given. It sees no others, not even `PATH`."""
    url: str = ""
    """Or the server's address, such as `http://127.0.0.1:9000/mcp`."""
    token_env: str = ""
    """The environment variable that holds a token for `url`, sent as `Authorization: Bearer`."""
    tools: tuple[str, ...] = ()
    """The tools that the agent may use. Left out: all that the server has."""
    sessions: Annotated[int, msgspec.Meta(ge=1)] = 16
    """Most sessions at once."""
    connect_seconds: Seconds = 30.0
    """How long the server may take to start and to list its tools."""
    call_seconds: Seconds = 60.0
    """How long a call may take. An episode whose answer is later is lost, and played again."""
    frame_megabytes: Annotated[int, msgspec.Meta(ge=1)] = 16
    """The longest answer that is read."""

    def __post_init__(self) -> None:
        super().__post_init__()
        if bool(self.command) == bool(self.url):
            raise ValueError('give either a command (["python", "server.py"]) or a url')


@world("mcp")
class McpWorld:
    """Any MCP server as the tools, with a task file and a scorer."""

    name = "mcp"

    def __init__(self, settings: McpSettings, base_dir: Path, judge: Model | None) -> None:
        self._settings = settings
        self._base_dir = base_dir
        self._environment = {name: _value(name, "env") for name in settings.env}
        self._headers = (
            {"Authorization": f"Bearer {_value(settings.token_env, 'token_env')}"} if settings.token_env else {}
        )
        self._questions = AuthoredWorld("mcp", JsonlWorld(settings, base_dir, judge), splits=settings)
        deciding = (list(settings.command), settings.url, sorted(settings.tools))
        self._fingerprint = fingerprint("world", "mcp 1", self._questions.fingerprint, deciding)
        self._places: WeakKeyDictionary[asyncio.AbstractEventLoop, asyncio.Semaphore] = WeakKeyDictionary()

    @property
    def fingerprint(self) -> str:
        return self._fingerprint

    def tasks(self, split: Split) -> Sequence[Task]:
        return self._questions.tasks(split)

    def known_good(self, task: Task) -> str | None:
        return self._questions.known_good(task)

    def secrets(self, task: Task) -> tuple[str, ...]:
        return self._questions.secrets(task)

    async def aclose(self) -> None:
        await self._questions.aclose()

    async def open(self, task: Task, seed: int) -> Session:
        places = self._places.setdefault(asyncio.get_running_loop(), asyncio.Semaphore(self._settings.sessions))
        question = await self._questions.open(task, seed)
        await places.acquire()
        try:
            client = McpClient(self._where, await self._channel())
        except BaseException:
            places.release()
            raise
        session = McpSession(self._where, question, client, self._settings, places)
        try:
            await session.begin()
        except BaseException:
            await session.close()
            raise
        return session

    @property
    def _where(self) -> str:
        return f"the MCP server {self._settings.url or self._settings.command[0]}"

    async def _channel(self) -> Channel:
        settings = self._settings
        longest = settings.frame_megabytes << 20
        if settings.url:
            return HttpChannel(settings.url, self._headers, longest)
        return await start(settings.command, self._base_dir, self._environment, longest)


class McpSession:
    """A question to be answered with a server's tools."""

    def __init__(
        self, where: str, question: Session, client: McpClient, settings: McpSettings, places: asyncio.Semaphore
    ) -> None:
        self._where = where
        self._question = question
        self._client = client
        self._settings = settings
        self._places = places
        self._toolbox = Toolbox([], where)
        self._fault = ""
        self._closed = False

    @property
    def brief(self) -> Brief:
        return self._question.brief

    @property
    def tools(self) -> Sequence[ToolSpec]:
        return self._toolbox.specs

    async def begin(self) -> None:
        await self._client.begin(self._settings.connect_seconds)
        listed = await self._client.tools(self._settings.connect_seconds)
        self._toolbox = Toolbox(listed, self._where, self._settings.tools)

    async def call(self, name: str, arguments: dict[str, Json]) -> ToolResult:
        self._must_be_whole()
        problem = self._toolbox.problem(name, arguments)
        if problem is not None:
            return problem
        try:
            return await self._client.call(name, arguments, self._settings.call_seconds)
        except WorldFault as fault:
            self._fault = fault.message
            raise

    async def judge(self, answer: str) -> Verdict:
        self._must_be_whole()
        return await self._question.judge(answer)

    async def close(self) -> None:
        if self._closed:
            return
        self._closed = True
        try:
            await self._client.close()
        finally:
            self._places.release()
            await self._question.close()

    def _must_be_whole(self) -> None:
        """What is left of an episode that broke is never judged: it would be scored as if the agent had failed."""
        lost = self._fault or self._client.lost
        if lost:
            raise WorldFault(f"{self._where}: the episode is lost: {lost}")


def _value(name: str, setting: str) -> str:
    value = os.environ.get(name)
    if value is None:
        raise ConfigError(f"world.{setting}: the environment variable {name} is not set")
    return value
