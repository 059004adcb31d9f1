"""Over real connections: OpenAI's clients, activations under load, slow and broken callers, and the end."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import AsyncGenerator, Generator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from typing import Any

import httpx
import openai
import pytest
from gateway_house import WORLD, House, house, skilled

from whet.core import ModelReply, SystemClock, Usage, fingerprint
from whet.models import resolve
from whet.models.transport import AioTransport
from whet.registry import Base, Draft, open_registry
from whet.serving.gateway import Limits, Listening, Passing, serving
from whet.testing.endpoint import StandInEndpoint, StandInRequest

pytestmark = [pytest.mark.slow, pytest.mark.timeout(180)]

REMOTE = Base("openai/small", fingerprint("base", "openai/small"))
QUESTION: Any = [{"role": "user", "content": "Where?"}]


def echo(request: StandInRequest) -> ModelReply:
    head = request.body["messages"][0]
    return ModelReply(f"{head['content']} | {request.last_text}", usage=Usage(3, 2))


@asynccontextmanager
async def listening(home: Path, *, latency: float = 0.0, **kwargs: Any) -> AsyncGenerator[tuple[House, str]]:
    async with StandInEndpoint(echo, latency=latency) as endpoint, AioTransport() as transport:
        provider = resolve("openai/small", base_url=f"{endpoint.base_url}/v1", environ={})
        upstream = Passing(provider, REMOTE, transport, SystemClock())
        async with house(home, upstream=upstream, **kwargs) as made:
            made.publish(skilled("First."), base=REMOTE, channel="stable")
            async with serving(made.gateway, made.switchboard, Listening(grace=5.0)) as address:
                yield made, address


async def test_activations_and_rollbacks_under_load_are_seen_within_a_second_and_fail_nobody(tmp_path: Path) -> None:
    async with listening(tmp_path, latency=0.05) as (made, address):
        seen: list[tuple[float, float, str]] = []
        ended = asyncio.Event()

        async def ask_on(number: int) -> None:
            client = openai.AsyncOpenAI(base_url=f"{address}/v1", api_key="none", max_retries=0)
            async with client:
                while not ended.is_set():
                    begun = time.monotonic()
                    stream = await client.chat.completions.create(model=WORLD, messages=QUESTION, stream=True)
                    said = [chunk async for chunk in stream]
                    text = "".join(chunk.choices[0].delta.content or "" for chunk in said)
                    record = said[0].system_fingerprint
                    assert text.endswith(" | Where?")
                    assert {chunk.system_fingerprint for chunk in said} == {record}
                    seen.append((begun, time.monotonic(), str(record)))

        changes: list[tuple[float, str]] = []
        async with asyncio.TaskGroup() as group:
            for number in range(8):
                group.create_task(ask_on(number))
            for number in range(3):
                await asyncio.sleep(1.5)
                record = made.publish(skilled(f"Number {number}."), base=REMOTE, channel="stable")
                changes.append((time.monotonic(), record.id))
            await asyncio.sleep(1.5)
            back = made.registry.rollback(WORLD, REMOTE.fingerprint)
            changes.append((time.monotonic(), back.record))
            await asyncio.sleep(1.5)
            ended.set()
    for place, (at, record) in enumerate(changes):
        until = changes[place + 1][0] if place + 1 < len(changes) else float("inf")
        later = {record for begun, end, record in seen if begun > at + 1.0 and end < until}
        assert later == {record}
    assert len(seen) > 50


async def test_the_official_client_in_its_ordinary_form(tmp_path: Path) -> None:
    async with listening(tmp_path) as (_, address):

        def ask() -> tuple[str | None, str]:
            with openai.OpenAI(base_url=f"{address}/v1", api_key="none") as client:
                whole = client.chat.completions.create(model=WORLD, messages=QUESTION)
                with client.chat.completions.create(model=WORLD, messages=QUESTION, stream=True) as stream:
                    pieces = [chunk.choices[0].delta.content or "" for chunk in stream]
                assert next(iter(client.models.list())).id == WORLD
                return whole.choices[0].message.content, "".join(pieces)

        assert await asyncio.to_thread(ask) == ("First. | Where?", "First. | Where?")


async def test_slow_and_broken_callers_harm_no_other(tmp_path: Path) -> None:
    limits = Limits(body_seconds=1.0, at_once=4)
    async with listening(tmp_path, limits=limits) as (made, address):
        port = int(address.rpartition(":")[2])
        head = b"POST /v1/chat/completions HTTP/1.1\r\nhost: localhost\r\ncontent-length: 500\r\n\r\n"
        held: list[asyncio.StreamWriter] = []
        readers: list[asyncio.StreamReader] = []
        for sent in (
            b"POST /v1/chat",
            head,
            head + b'{"model":',
            b"\0\xff nonsense\r\n\r\n",
            b"GET / HTTP/9\r\n\r\n",
        ) * 8:
            reader, writer = await asyncio.open_connection("127.0.0.1", port)
            writer.write(sent)
            held.append(writer)
            readers.append(reader)
        async with httpx.AsyncClient(base_url=address) as client:
            for _ in range(20):
                answer = await client.post("/v1/chat/completions", json={"model": WORLD, "messages": QUESTION})
                assert answer.status_code == 200
            first = await asyncio.wait_for(readers[1].readline(), 10)
            assert b"408" in first
            for writer in held:
                writer.transport.abort()
            assert (await client.get("/healthz")).status_code == 200
        assert made.gateway.turnstile.inside == 0


async def test_who_leaves_is_waited_for_no_longer(tmp_path: Path) -> None:
    async with listening(tmp_path, latency=3.0) as (made, address):
        async with httpx.AsyncClient(base_url=address) as client:
            body = {"model": WORLD, "messages": QUESTION, "stream": True}
            with pytest.raises(httpx.ReadTimeout):
                await client.post("/v1/chat/completions", json=body, timeout=0.5)
        left = time.monotonic()
        while made.gateway.turnstile.inside:
            await asyncio.sleep(0.02)
        assert time.monotonic() - left < 1.0


async def test_at_the_end_what_was_begun_is_answered_and_no_more_is_taken(tmp_path: Path) -> None:
    async with httpx.AsyncClient() as client:
        async with listening(tmp_path, latency=1.0) as (made, address):
            body = {"model": WORLD, "messages": QUESTION}
            begun = asyncio.create_task(client.post(f"{address}/v1/chat/completions", json=body))
            while made.gateway.turnstile.inside == 0:
                await asyncio.sleep(0.01)
        assert begun.done()
        assert (await begun).status_code == 200
        with pytest.raises(httpx.ConnectError):
            await client.get(f"{address}/healthz")


@contextmanager
def whet_serve(home: Path, *arguments: str, **environ: str) -> Generator[tuple[subprocess.Popen[str], dict[str, Any]]]:
    """The command itself, with what it prints first."""
    whole = {**os.environ, "WHET_HOME": str(home), "WHET_API_KEYS": "", "PYTHONUNBUFFERED": "1", **environ}
    command = [sys.executable, "-m", "whet", "serve", "--port", "0", "--json", *arguments]
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=whole, cwd=home
    ) as ran:
        assert ran.stdout is not None
        first = ran.stdout.readline()
        assert first, ran.stderr.read() if ran.stderr else ""
        try:
            yield ran, json.loads(first)
        finally:
            ran.kill()


@pytest.fixture
def upstream_url() -> Generator[str]:
    """A stand-in in a thread of its own, for processes that are asked from this one."""
    ready, ended, place = threading.Event(), threading.Event(), dict[str, str]()

    async def run() -> None:
        async with StandInEndpoint(echo, latency=0.5) as endpoint:
            place["url"] = f"{endpoint.base_url}/v1"
            ready.set()
            while not ended.is_set():
                await asyncio.sleep(0.02)

    thread = threading.Thread(target=lambda: asyncio.run(run()))
    thread.start()
    ready.wait()
    yield place["url"]
    ended.set()
    thread.join()


def test_the_command_serves_follows_and_ends_cleanly(tmp_path: Path, upstream_url: str) -> None:
    options = ("--upstream", upstream_url, "--kind", "openai", "--model", "small")
    with whet_serve(tmp_path, *options, WHET_API_KEYS="secret") as (process, told):
        assert told["serving"] == {"openai/small": "base"}
        with open_registry(tmp_path, SystemClock()) as registry:
            record = registry.publish(Draft(skilled("Be brief."), WORLD, REMOTE))
            registry.activate(record.id, force=True)
        time.sleep(1.0)
        with openai.OpenAI(base_url=f"{told['address']}/v1", api_key="secret", max_retries=0) as client:
            answer = client.chat.completions.create(model=WORLD, messages=QUESTION)
            assert answer.system_fingerprint == record.id
            late: list[Any] = []
            asking = threading.Thread(
                target=lambda: late.append(client.chat.completions.create(model=WORLD, messages=QUESTION))
            )
            asking.start()
            time.sleep(0.25)
            process.send_signal(signal.SIGINT)
            asking.join()
        assert late[0].choices[0].message.content == "Be brief. | Where?"
        out, err = process.communicate(timeout=20)
        assert process.returncode == 0
        assert "ending: 1 request under way" in err
        assert [json.loads(line)["status"] for line in out.splitlines()] == [200, 200]


def test_what_cannot_be_served_is_one_line_and_exit_code_2(tmp_path: Path) -> None:
    for arguments, said in (
        (("--host", "0.0.0.0"), "no keys"),
        (("--base", "local/nothing"), "nothing"),
        (("--upstream", "http://127.0.0.1:1/v1"), "--kind"),
        (("--redact", "x.py:y"), "--capture"),
    ):
        environ = {**os.environ, "WHET_HOME": str(tmp_path), "WHET_API_KEYS": ""}
        command = [sys.executable, "-m", "whet", "serve", "--port", "0", *arguments]
        done = subprocess.run(command, capture_output=True, text=True, env=environ, cwd=tmp_path, timeout=60)
        assert done.returncode == 2
        assert said in done.stderr
        assert len(done.stderr.splitlines()) == 1
