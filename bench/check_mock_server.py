"""Shows that the mock server is not what a benchmark measures: its answers, its latency, its capacity.

The load comes from bare sockets, so one core can ask more than any client measured against the server does. Capacity
is requests by the server's own CPU seconds: what one core would carry, whoever else uses the machine meanwhile.
"""

from __future__ import annotations

import asyncio
import json
import os
import sys
import time
from collections.abc import Callable, Iterator
from statistics import median

from mock_server import MockServer

LATENCY_MS = 50.0
CONNECTIONS = 512
REQUESTS = 30_000
LEAST_CAPACITY = 6000.0
MOST_LATENESS_MS = 3.0
"""Of the median answer when asked one at a time: an event loop's timers count in whole milliseconds."""


def request(number: int) -> bytes:
    message = {"role": "user", "content": f"What is 1 + {number}?"}
    body = json.dumps({"model": "mock", "messages": [message]}).encode()
    head = b"POST /v1/chat/completions HTTP/1.1\r\nHost: mock\r\nX-Whet-Purpose: check\r\nContent-Length: %d\r\n\r\n"
    return head % len(body) + body


class Asker(asyncio.Protocol):
    """One connection: sends the next request when the last is answered, and knows nothing of the answers."""

    def __init__(self, requests: Iterator[bytes], done: asyncio.Future[None]) -> None:
        self.requests = requests
        self.done = done

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self.transport = transport
        self.ask()

    def data_received(self, data: bytes) -> None:
        if data.endswith(b"}"):
            self.ask()

    def ask(self) -> None:
        following = next(self.requests, None)
        if following is None:
            self.transport.close()
        else:
            self.transport.write(following)

    def connection_lost(self, exc: Exception | None) -> None:
        self.done.set_result(None)


async def load(port: int, requests: Iterator[bytes], connections: int) -> float:
    """Wall seconds that `connections` took to have all requests answered."""
    loop = asyncio.get_running_loop()
    started = time.perf_counter()
    ends: list[asyncio.Future[None]] = []
    for _ in range(connections):
        done: asyncio.Future[None] = loop.create_future()
        ends.append(done)
        await loop.create_connection(asker(requests, done), "127.0.0.1", port)
    await asyncio.gather(*ends)
    return time.perf_counter() - started


def asker(requests: Iterator[bytes], done: asyncio.Future[None]) -> Callable[[], Asker]:
    return lambda: Asker(requests, done)


async def read_answer(reader: asyncio.StreamReader) -> str:
    head = await reader.readuntil(b"\r\n\r\n")
    length = int(head.lower().split(b"content-length: ")[1].split(b"\r\n")[0])
    return json.loads(await reader.readexactly(length))["choices"][0]["message"]["content"]


async def pipelined(port: int, count: int) -> bool:
    """Many requests at once on one connection, cut into packets of 7 bytes: answered in the order asked."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    together = b"".join(request(number) for number in range(count))
    for start in range(0, len(together), 7):
        writer.write(together[start : start + 7])
        if start % 700 == 0:
            await writer.drain()
            await asyncio.sleep(0)
    answers = [await read_answer(reader) for _ in range(count)]
    writer.close()
    return answers == [str(number + 1) for number in range(count)]


async def delays(port: int, count: int) -> list[float]:
    """Milliseconds that each of `count` calls took, one after another."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    seen: list[float] = []
    for number in range(count):
        started = time.perf_counter()
        writer.write(request(number))
        await read_answer(reader)
        seen.append((time.perf_counter() - started) * 1000)
    writer.close()
    return seen


async def hang_up(port: int) -> None:
    _, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(request(0))
    await asyncio.sleep(LATENCY_MS / 5000)
    writer.transport.abort()
    await asyncio.sleep(LATENCY_MS / 500)


def check_answers(mock: MockServer) -> list[str]:
    problems: list[str] = []
    if not asyncio.run(pipelined(mock.port, 300)):
        problems.append("pipelined requests are not answered rightly and in order")
    mock.reset()
    asyncio.run(hang_up(mock.port))
    stats = mock.stats()
    if (stats["requests"], stats["abandoned"], stats["in_flight"], stats["purposes"]) != (1, 1, 0, {"check": 1}):
        problems.append(f"a client that hangs up is counted wrongly: {stats}")
    return problems


def check_latency(mock: MockServer) -> list[str]:
    seen = sorted(asyncio.run(delays(mock.port, 60)))
    print(f"latency, one at a time: median {median(seen):.2f} ms, least {seen[0]:.2f} ms, asked {LATENCY_MS:.0f} ms")
    problems: list[str] = []
    if seen[0] < LATENCY_MS - 0.5:
        problems.append("an answer came before it was due")
    if median(seen) > LATENCY_MS + MOST_LATENESS_MS:
        problems.append("answers come late")
    return problems


def check_slow_share(arguments: list[str]) -> list[str]:
    """The same calls are slow each time, and about as many as asked for."""
    with MockServer(*arguments, "--slow-share", "0.25", "--slow-factor", "3") as mock:
        twice = [[delay > 2 * LATENCY_MS for delay in asyncio.run(delays(mock.port, 40))] for _ in range(2)]
    print(f"slow calls: {sum(twice[0])} of 40 with a share of 0.25")
    problems: list[str] = []
    if twice[0] != twice[1]:
        problems.append("which calls are slow changes from run to run")
    if not 2 <= sum(twice[0]) <= 20:
        problems.append("the share of slow calls is not the one asked for")
    return problems


def check_capacity(mock: MockServer) -> list[str]:
    mock.reset()
    seconds = asyncio.run(load(mock.port, map(request, range(REQUESTS)), CONNECTIONS))
    stats = mock.stats()
    capacity = REQUESTS / stats["cpu_seconds"]
    print(
        f"capacity: {capacity:,.0f} requests/s of one core ({1e6 / capacity:.0f} us each)"
        f"; here {REQUESTS / seconds:,.0f}/s over {CONNECTIONS} connections, {stats['max_in_flight']} in flight at most"
    )
    problems: list[str] = []
    if capacity < LEAST_CAPACITY:
        problems.append(f"less than {LEAST_CAPACITY:,.0f} requests/s of one core")
    if (stats["answered"], stats["distinct_bodies"]) != (REQUESTS, REQUESTS):
        problems.append(f"{REQUESTS} distinct requests were counted as {stats}")
    return problems


def main() -> int:
    cores = sorted(os.sched_getaffinity(0))
    os.sched_setaffinity(0, {cores[0]})
    arguments = ["--latency-ms", str(LATENCY_MS), "--rule", "next-number", "--core", str(cores[-1])]
    with MockServer(*arguments) as mock:
        problems = [*check_answers(mock), *check_latency(mock), *check_capacity(mock)]
    problems += check_slow_share(arguments)
    for problem in problems:
        print(f"failed: {problem}", file=sys.stderr)
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
