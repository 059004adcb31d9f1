"""A chat-completions server that costs next to nothing, so that what a benchmark measures is the client.

It speaks the OpenAI wire over raw asyncio: HTTP/1.1, keep-alive, pipelining, no framework, no streaming. It knows
nothing of whet. `MockServer` starts it in a process of its own; run by hand it prints where it listens and serves
until it is ended. What it counted is at GET /stats; POST /reset starts the counts anew.
"""

from __future__ import annotations

import argparse
import asyncio
import importlib
import json
import os
import re
import signal
import subprocess
import sys
import time
import urllib.request
from collections import Counter, deque
from collections.abc import Callable
from dataclasses import dataclass, field
from hashlib import blake2b
from types import TracebackType
from typing import Any, Self

LONGEST_HEAD = 64 * 1024
LENGTH = re.compile(rb"\r\ncontent-length:[ \t]*(\d+)[ \t]*\r\n")
CALL_KEY = re.compile(rb"\r\nx-whet-key:[ \t]*([^\r]*?)[ \t]*\r\n")
PURPOSE = re.compile(rb"\r\nx-whet-purpose:[ \t]*([^\r]*?)[ \t]*\r\n")
NUMBER = re.compile(r"\d+")
FIELD = re.compile(r"`(\[\[ ## \w+ ## \]\])`")
"""Where a prompt asks for its answer under a heading, as dspy's does, the first heading named is the answer's."""

HONEST_USAGE = {"prompt_tokens": 30, "completion_tokens": 2, "total_tokens": 32}
ABSURD_USAGE = {"prompt_tokens": 987_654_321, "completion_tokens": 123_456_789, "total_tokens": 3}


@dataclass(frozen=True)
class Behaviour:
    """How calls are answered, and when."""

    latency: float
    slow_share: float
    slow_factor: float
    reply: str | None
    """The text of every answer; None answers by the rule: the last number in the prompt, plus one."""
    usage: dict[str, int]
    script: Callable[[list[dict[str, Any]], int | None], str] | None = None
    """Answers from the messages and the seed, in place of `reply` and of the rule."""

    def delay(self, digest: bytes) -> float:
        """The same body is always slow or never."""
        slow = int.from_bytes(digest, "big") < self.slow_share * 2**64
        return self.latency * self.slow_factor if slow else self.latency

    def completion(self, body: bytes) -> bytes:
        """Raises ValueError where the request is not one that this server can answer."""
        request = json.loads(body)
        try:
            messages = request["messages"]
            if request.get("stream"):
                raise ValueError("this server does not stream")
            text = self.answer(messages, request.get("seed"))
            model = request["model"]
        except (AttributeError, KeyError, TypeError) as fault:
            raise ValueError(f"not a chat-completions request: {fault!r}") from fault
        message = {"role": "assistant", "content": text, "refusal": None}
        return json.dumps(
            {
                "id": "chatcmpl-mock",
                "object": "chat.completion",
                "created": 1_700_000_000,
                "model": model,
                "choices": [{"index": 0, "message": message, "logprobs": None, "finish_reason": "stop"}],
                "usage": self.usage,
            }
        ).encode()

    def answer(self, messages: list[dict[str, Any]], seed: int | None) -> str:
        if self.script is not None:
            return self.script(messages, seed)
        return self.reply if self.reply is not None else next_number(messages)


def next_number(messages: list[dict[str, Any]]) -> str:
    """The last number in the last message that has one, plus one."""
    for message in reversed(messages):
        content = message["content"]
        text = content if isinstance(content, str) else " ".join(part.get("text", "") for part in content or ())
        numbers = NUMBER.findall(text)
        if numbers:
            answer = str(int(numbers[-1]) + 1)
            heading = FIELD.search(text)
            return f"{heading[1]}\n{answer}\n\n[[ ## completed ## ]]" if heading else answer
    return "there is no number in this prompt"


@dataclass
class Counts:
    """What has been asked since the last reset."""

    requests: int = 0
    answered: int = 0
    abandoned: int = 0
    """Calls whose client hung up before the answer was due."""
    refused: int = 0
    in_flight: int = 0
    max_in_flight: int = 0
    bytes_received: int = 0
    bytes_sent: int = 0
    bodies: set[bytes] = field(default_factory=set)
    purposes: Counter[str] = field(default_factory=Counter)
    sendings: Counter[bytes] = field(default_factory=Counter)
    delays: dict[str, float] = field(default_factory=dict)
    """By a call's key: how long its first sending was made to wait."""
    cpu_before: float = field(default_factory=time.process_time)

    def reset(self) -> None:
        waiting = self.in_flight
        self.__init__(in_flight=waiting, max_in_flight=waiting)

    def summary(self) -> dict[str, Any]:
        return {
            "requests": self.requests,
            "answered": self.answered,
            "abandoned": self.abandoned,
            "refused": self.refused,
            "in_flight": self.in_flight,
            "max_in_flight": self.max_in_flight,
            "distinct_bodies": len(self.bodies),
            "bytes_received": self.bytes_received,
            "bytes_sent": self.bytes_sent,
            "purposes": dict(self.purposes),
            "cpu_seconds": round(time.process_time() - self.cpu_before, 4),
        }


@dataclass(eq=False, slots=True)
class Place:
    """One answer's place in the order in which its connection asked."""

    answer: bytes | None = None
    timer: asyncio.TimerHandle | None = None


class Connection(asyncio.Protocol):
    """Reads requests as they come, however they are cut into packets; answers in the order asked."""

    def __init__(self, behaviour: Behaviour, counts: Counts) -> None:
        self.behaviour = behaviour
        self.counts = counts
        self.received = bytearray()
        self.places: deque[Place] = deque()
        self.closing = False

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self.transport = transport

    def connection_lost(self, exc: Exception | None) -> None:
        for place in self.places:
            if place.timer is not None and place.answer is None:
                place.timer.cancel()
                self.counts.in_flight -= 1
                self.counts.abandoned += 1
        self.places.clear()

    def data_received(self, data: bytes) -> None:
        self.counts.bytes_received += len(data)
        self.received += data
        while not self.closing and (end := self.received.find(b"\r\n\r\n")) >= 0:
            head = bytes(self.received[: end + 2]).lower()
            if b"\r\ntransfer-encoding:" in head:
                return self.refuse(411, "send a content-length")
            length = LENGTH.search(head)
            total = end + 4 + (int(length[1]) if length else 0)
            if len(self.received) < total:
                return None
            body = bytes(self.received[end + 4 : total])
            del self.received[:total]
            self.closing = b"\r\nconnection: close\r\n" in head
            self.route(head, body)
        if len(self.received) > LONGEST_HEAD and b"\r\n\r\n" not in self.received:
            return self.refuse(431, "the head of this request is too long")
        return None

    def route(self, head: bytes, body: bytes) -> None:
        method, path = head.split(b" ", 2)[:2]
        if method == b"post" and path.endswith(b"/chat/completions"):
            self.complete(head, body)
        elif (method, path) == (b"get", b"/stats"):
            self.answer_now(200, json.dumps(self.counts.summary()).encode())
        elif (method, path) == (b"get", b"/delays"):
            self.answer_now(200, json.dumps(self.counts.delays).encode())
        elif (method, path) == (b"post", b"/reset"):
            self.counts.reset()
            self.answer_now(200, b"{}")
        else:
            self.answer_now(404, b'{"error": {"message": "there is nothing here"}}')

    def complete(self, head: bytes, body: bytes) -> None:
        counts = self.counts
        counts.requests += 1
        digest = blake2b(body, digest_size=8).digest()
        counts.bodies.add(digest)
        if purpose := PURPOSE.search(head):
            counts.purposes[purpose[1].decode("latin-1")] += 1
        if key := CALL_KEY.search(head):
            # A call that is sent again draws its luck anew, as at a real endpoint.
            counts.sendings[key[1]] += 1
            digest = blake2b(b"%b %d" % (key[1], counts.sendings[key[1]]), digest_size=8).digest()
            counts.delays.setdefault(key[1].decode("latin-1"), self.behaviour.delay(digest))
        try:
            completion = self.behaviour.completion(body)
        except ValueError as fault:
            counts.refused += 1
            return self.answer_now(400, json.dumps({"error": {"message": str(fault)}}).encode())
        counts.in_flight += 1
        counts.max_in_flight = max(counts.max_in_flight, counts.in_flight)
        place = Place()
        self.places.append(place)
        due = asyncio.get_running_loop().call_later
        place.timer = due(self.behaviour.delay(digest), self.fall_due, place, framed(200, completion))
        return None

    def fall_due(self, place: Place, answer: bytes) -> None:
        self.counts.in_flight -= 1
        self.counts.answered += 1
        place.answer = answer
        self.flush()

    def refuse(self, status: int, why: str) -> None:
        self.closing = True
        self.received.clear()
        self.counts.refused += 1
        self.answer_now(status, json.dumps({"error": {"message": why}}).encode())

    def answer_now(self, status: int, body: bytes) -> None:
        self.places.append(Place(framed(status, body)))
        self.flush()

    def flush(self) -> None:
        while self.places and (answer := self.places[0].answer) is not None:
            self.places.popleft()
            self.counts.bytes_sent += len(answer)
            self.transport.write(answer)
        if self.closing and not self.places:
            self.transport.close()


def framed(status: int, body: bytes) -> bytes:
    return b"HTTP/1.1 %d -\r\ncontent-type: application/json\r\ncontent-length: %d\r\n\r\n%b" % (
        status,
        len(body),
        body,
    )


async def serve(port: int, behaviour: Behaviour) -> None:
    counts = Counts()
    loop = asyncio.get_running_loop()
    ended = asyncio.Event()
    for signum in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(signum, ended.set)
    server = await loop.create_server(lambda: Connection(behaviour, counts), "127.0.0.1", port, backlog=4096)
    port = server.sockets[0].getsockname()[1]
    print(json.dumps({"port": port, "pid": os.getpid(), "base_url": f"http://127.0.0.1:{port}/v1"}), flush=True)
    await ended.wait()
    server.close()


class MockServer:
    """The server in a process of its own, as a context manager: `with MockServer("--latency-ms", "50") as mock`."""

    def __init__(self, *arguments: str) -> None:
        self.arguments = arguments

    def __enter__(self) -> Self:
        command = [sys.executable, os.path.abspath(__file__), *self.arguments]
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        assert self.process.stdout is not None
        where = json.loads(self.process.stdout.readline())
        self.port: int = where["port"]
        self.base_url: str = where["base_url"]
        return self

    def __exit__(
        self, kind: type[BaseException] | None, fault: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.process.terminate()
        self.process.wait()
        assert self.process.stdout is not None
        self.process.stdout.close()

    def stats(self) -> dict[str, Any]:
        return self.ask("GET", "/stats")

    def delays(self) -> dict[str, float]:
        return self.ask("GET", "/delays")

    def reset(self) -> None:
        self.ask("POST", "/reset")

    def ask(self, method: str, path: str) -> dict[str, Any]:
        direct = urllib.request.build_opener(urllib.request.ProxyHandler({}))
        request = urllib.request.Request(f"http://127.0.0.1:{self.port}{path}", method=method)
        with direct.open(request, timeout=10) as response:
            return json.load(response)


def load_script(place: str) -> Callable[[list[dict[str, Any]], int | None], str]:
    module, _, name = place.partition(":")
    return getattr(importlib.import_module(module), name)


def main() -> None:
    parser = argparse.ArgumentParser(description="A cheap OpenAI-compatible chat-completions server, for benchmarks.")
    parser.add_argument("--port", type=int, default=0, help="0 takes a free one; the port is printed as JSON")
    parser.add_argument("--latency-ms", type=float, default=50.0)
    parser.add_argument("--slow-share", type=float, default=0.0, help="of distinct bodies, such as 0.05")
    parser.add_argument("--slow-factor", type=float, default=10.0, help="how many times the latency a slow call takes")
    answers = parser.add_mutually_exclusive_group()
    answers.add_argument("--reply", default="ok", help="the text of every answer")
    answers.add_argument("--script", help="module:function that answers from the messages and the seed")
    answers.add_argument("--rule", choices=["next-number"], help="answer the last number in the prompt, plus one")
    parser.add_argument("--lie-usage", action="store_true", help="report token counts that cannot be true")
    parser.add_argument("--core", type=int, help="run on this core only")
    options = parser.parse_args()
    if options.core is not None:
        os.sched_setaffinity(0, {options.core})
    behaviour = Behaviour(
        latency=options.latency_ms / 1000,
        slow_share=options.slow_share,
        slow_factor=options.slow_factor,
        reply=None if options.rule else options.reply,
        usage=ABSURD_USAGE if options.lie_usage else HONEST_USAGE,
        script=load_script(options.script) if options.script else None,
    )
    asyncio.run(serve(options.port, behaviour))


if __name__ == "__main__":
    main()
