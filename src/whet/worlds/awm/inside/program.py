"""A generated program in this process: executed once, then called directly, without a port or a client."""

from __future__ import annotations

import asyncio
import json
import sys
import types
from collections.abc import Awaitable, Callable
from typing import Any

import anyio.to_thread
from sqlalchemy.engine import Engine

from whet.worlds.awm.inside.messages import Call, Reply

App = Callable[[dict[str, Any], Callable[[], Awaitable[Any]], Callable[[Any], Awaitable[None]]], Awaitable[None]]
NAME = "generated_program"


class Program:
    """What the source defines. Its `app` is found by what it can do, not by its name alone."""

    def __init__(self, source: str) -> None:
        module = types.ModuleType(NAME)
        sys.modules[NAME] = module
        code = compile(source, f"<{NAME}>", "exec", dont_inherit=True)
        exec(code, module.__dict__)  # noqa: S102 (confined: that is what this room is for)
        self._module = module
        self.app = _app_of(module)

    def openapi(self) -> dict[str, Any]:
        return json.loads(json.dumps(self.app.openapi()))

    def doubled(self) -> list[str]:
        """Routes that stand twice under one path and method: the later one can never be reached."""
        seen: set[tuple[str, str]] = set()
        doubles: list[str] = []
        for route in self.app.routes:
            for method in sorted(getattr(route, "methods", None) or ()):
                place = (method, getattr(route, "path", ""))
                if place in seen and method != "HEAD":
                    doubles.append(f"{method} {place[1]}")
                seen.add(place)
        return doubles

    def let_go(self) -> None:
        """Closes connections: they belong to the process, or to the file, that opened them."""
        for value in list(vars(self._module).values()):
            if isinstance(value, Engine):
                value.dispose()


class Runner:
    """Runs the program's app in one event loop. Plain functions run in the loop's own thread: nothing else waits."""

    def __init__(self, app: Any) -> None:
        self._app: App = app
        self._loop = asyncio.new_event_loop()
        anyio.to_thread.run_sync = _at_once  # pyright: ignore[reportAttributeAccessIssue]

    def startup(self) -> None:
        """What the program does at its start, as far as it says so in the way of ASGI."""
        self._loop.run_until_complete(_started(self._app))

    def call(self, call: Call) -> Reply:
        return self._loop.run_until_complete(_called(self._app, call))

    def close(self) -> None:
        self._loop.close()


async def _at_once(function: Callable[..., Any], *arguments: Any, **_: Any) -> Any:
    return function(*arguments)


async def _started(app: App) -> None:
    told = asyncio.Event()

    async def receive() -> Any:
        if not told.is_set():
            told.set()
            return {"type": "lifespan.startup"}
        return await asyncio.get_running_loop().create_future()

    done = asyncio.Event()

    async def send(message: Any) -> None:
        if message["type"].startswith("lifespan.startup"):
            done.set()

    running = asyncio.ensure_future(app({"type": "lifespan", "asgi": {"version": "3.0"}, "state": {}}, receive, send))
    waiting = asyncio.ensure_future(done.wait())
    await asyncio.wait([running, waiting], return_when=asyncio.FIRST_COMPLETED)
    for task in (running, waiting):
        task.cancel()
    # An app that does not know lifespans raises, which in ASGI only means that it has none.
    await asyncio.gather(running, waiting, return_exceptions=True)


async def _called(app: App, call: Call) -> Reply:
    body = call.body or b""
    given = False
    status = 500
    chunks: list[bytes] = []

    async def receive() -> Any:
        nonlocal given
        if given:
            return {"type": "http.disconnect"}
        given = True
        return {"type": "http.request", "body": body, "more_body": False}

    async def send(message: Any) -> None:
        nonlocal status
        if message["type"] == "http.response.start":
            status = message["status"]
        elif message["type"] == "http.response.body":
            chunks.append(message.get("body", b""))

    headers = [(b"host", b"world"), (b"accept", b"application/json")]
    if call.body is not None:
        headers += [(b"content-type", b"application/json"), (b"content-length", str(len(body)).encode())]
    scope = {
        "type": "http",
        "asgi": {"version": "3.0", "spec_version": "2.3"},
        "http_version": "1.1",
        "method": call.method,
        "scheme": "http",
        "path": call.path,
        "raw_path": call.path.encode(),
        "query_string": call.query.encode(),
        "root_path": "",
        "headers": headers,
        "client": ("agent", 1),
        "server": ("world", 80),
        "state": {},
    }
    try:
        await app(scope, receive, send)
    except Exception as error:  # noqa: BLE001 (whatever a generated program raises is its answer: an error of its own)
        return Reply(500, f"{type(error).__name__}: {error}")
    return Reply(status, b"".join(chunks).decode("utf-8", "replace"))


def _app_of(module: types.ModuleType) -> Any:
    named = getattr(module, "app", None)
    candidates = [named, *vars(module).values()]
    for value in candidates:
        if callable(getattr(value, "openapi", None)) and hasattr(value, "routes"):
            return value
    raise RuntimeError("the program defines no FastAPI app")
