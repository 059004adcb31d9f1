"""`whet world serve` as a process: for trainers, and one task by hand from any MCP client."""

from __future__ import annotations

import asyncio
import re
import signal
import sys
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from aiohttp import ClientSession
from mcp import Client, StdioServerParameters
from mcp.client.stdio import stdio_client

pytestmark = pytest.mark.slow

WORLD = '''
from whet.core import ToolResult
from whet.worlds import tool, world


@world("counter", split_ratio={"train": 1})
class Counter:
    """Count to three."""

    def tasks(self):
        return [{"id": f"to-{goal}", "goal": goal} for goal in (2, 3)]

    def start(self):
        return [0]

    def brief(self, task):
        return f"Count to {task.inputs['goal']}."

    @tool
    def add(self, state: list, by: int = 1) -> str:
        """Count on."""
        state[0] += by
        return str(state[0])

    def judge(self, state, task, answer):
        return state[0] == task.inputs["goal"] and answer.strip() in ("", "done")
'''


@pytest.fixture
def world(tmp_path: Path) -> Path:
    path = tmp_path / "counter.py"
    path.write_text(WORLD, "utf-8")
    return path


@asynccontextmanager
async def whet(
    *arguments: str | Path, stdin: int = asyncio.subprocess.DEVNULL
) -> AsyncGenerator[asyncio.subprocess.Process]:
    pipe = asyncio.subprocess.PIPE
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "whet", "world", "serve", *arguments, stdin=stdin, stdout=pipe, stderr=pipe
    )
    try:
        async with asyncio.timeout(30):
            yield process
    finally:
        if process.returncode is None:
            process.kill()
        await process.communicate()


async def test_it_serves_until_ctrl_c(world: Path) -> None:
    async with whet(world, "--port", "0") as process, ClientSession() as http:
        assert process.stdout is not None
        url = re.search(r"http://\S+", (await process.stdout.readline()).decode())
        assert url is not None
        async with http.get(f"{url[0]}/metadata") as reply:
            assert (await reply.json())["name"] == "counter"
        process.send_signal(signal.SIGINT)
        assert await process.wait() == 0


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["--host", "0.0.0.0"], "could reset and judge. Add --token"),
        (["--task", "to-2"], "Add --mcp or --stdio"),
        (["--stdio", "--task", "to-9"], "there is no task 'to-9'"),
    ],
)
async def test_what_cannot_be_served_is_told_in_one_line(world: Path, arguments: list[str], says: str) -> None:
    async with whet(world, *arguments) as process:
        _, err = await process.communicate()
        assert process.returncode == 2
        assert says in err.decode()
        assert "Traceback" not in err.decode()


async def test_a_task_is_played_over_stdio_and_the_verdict_is_told_on_the_servers_side(
    world: Path, tmp_path: Path
) -> None:
    answer, log = tmp_path / "answer.txt", tmp_path / "log.txt"
    arguments = ["-m", "whet", "world", "serve", str(world), "--stdio", "--task", "to-3", "--answer", str(answer)]
    server = StdioServerParameters(command=sys.executable, args=arguments)
    with log.open("w") as errors:
        async with Client(stdio_client(server, errlog=errors)) as client:
            assert client.instructions == "Count to 3."
            prompt = await client.get_prompt("task")
            assert prompt.messages[0].content.text == "Count to 3."
            assert [tool.name for tool in (await client.list_tools()).tools] == ["add"]
            assert (await client.call_tool("add", {"by": 3})).content[0].text == "3"
            for name in ("judge", "answer", "close", "reset"):
                assert (await client.call_tool(name, {})).is_error
            answer.write_text("done\n")
    assert "task to-3: passed (1.00)" in log.read_text()


async def test_a_task_is_played_over_http_and_ctrl_c_ends_it(world: Path) -> None:
    async with whet(world, "--mcp", "--port", "0") as process:
        assert process.stderr is not None
        url = (await process.stderr.readline()).decode().strip()
        async with Client(url) as client:
            assert (await client.call_tool("add", {"by": 2})).content[0].text == "2"
        async with Client(url, mode="legacy") as client:
            assert client.instructions == "Count to 2."
        process.send_signal(signal.SIGINT)
        _, err = await process.communicate()
        assert "task to-2: passed" in err.decode()
        assert process.returncode == 0


async def test_ctrl_c_ends_it_over_stdio_too(world: Path) -> None:
    async with whet(world, "--stdio", stdin=asyncio.subprocess.PIPE) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.write(
            b'{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},'
            b'"clientInfo":{"name":"hand","version":"1"}}}\n'
        )
        assert b"Count to 2." in await process.stdout.readline()
        process.send_signal(signal.SIGINT)
        assert process.stderr is not None
        assert "task to-2: failed" in (await process.stderr.read()).decode()
        assert await process.wait() == 0
