"""Plays a world's tasks through a gateway, as a user of it would: by the official `openai` client, over HTTP."""

from __future__ import annotations

import asyncio
import socket
import sys
import time
from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager
from importlib.util import find_spec
from pathlib import Path

import msgspec

from whet.core import End, Task, Trajectory, Usage, WhetError, World
from whet.core.messages import assistant, user

AT_ONCE = 8
_STARTING_SECONDS = 120.0


class Answered(msgspec.Struct, frozen=True):
    text: str
    usage: Usage
    seconds: float


@asynccontextmanager
async def gateway_for(model: str, log: Path) -> AsyncGenerator[str]:
    """`whet serve` on a free port of this machine, for as long as the block runs. Gives its address."""
    port = _free_port()
    command = (sys.executable, "-m", "whet", "serve", "--base", model, "--port", str(port), "--plain")
    with log.open("wb") as written:
        process = await asyncio.create_subprocess_exec(*command, stdout=written, stderr=written)
    try:
        await _until_open(port, process, log)
        yield f"http://127.0.0.1:{port}/v1"
    finally:
        if process.returncode is None:
            process.terminate()
        await process.wait()


async def _until_open(port: int, process: asyncio.subprocess.Process, log: Path) -> None:
    end = time.monotonic() + _STARTING_SECONDS
    while time.monotonic() < end and process.returncode is None:
        try:
            _, writer = await asyncio.open_connection("127.0.0.1", port)
        except OSError:
            await asyncio.sleep(0.1)
        else:
            writer.close()
            await writer.wait_closed()
            return
    raise WhetError("the gateway did not start", hint=f"What it said is in {log}.")


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


async def play_through(
    address: str, world: World, tasks: Sequence[Task], *, at_once: int = AT_ONCE
) -> list[tuple[Trajectory, float]]:
    """Each task once, with the seconds of its call; in the order of `tasks`."""
    if find_spec("openai") is None:
        raise WhetError("the gateway is asked by the official client", hint="pip install openai")
    from openai import AsyncOpenAI

    places = asyncio.Semaphore(at_once)
    async with AsyncOpenAI(base_url=address, api_key="none-is-asked-for") as client:

        async def answer(brief: str) -> Answered:
            async with places:
                began = time.monotonic()
                reply = await client.chat.completions.create(
                    model=world.name, messages=[{"role": "user", "content": brief}]
                )
                seconds = time.monotonic() - began
            used = reply.usage
            usage = Usage(used.prompt_tokens, used.completion_tokens) if used else Usage()
            return Answered(reply.choices[0].message.content or "", usage, seconds)

        async def play(task: Task) -> tuple[Trajectory, float]:
            session = await world.open(task, seed=0)
            try:
                brief = session.brief.text
                answered = await answer(brief)
                verdict = await session.judge(answered.text)
            finally:
                await session.close()
            said = (user(brief), assistant(answered.text))
            played = Trajectory(
                "", task.id, task.split, 0, said, answered.text, End.ANSWERED, verdict, usage=answered.usage, turns=1
            )
            return played, answered.seconds

        async with asyncio.TaskGroup() as playing:
            played = [playing.create_task(play(task)) for task in tasks]
    return [one.result() for one in played]
