"""The world server beside the servers of both OpenEnv packages: steps, tool calls, cold starts and memory in one run.

Every server says the same words back, in a process of its own, and is driven by the same client. Rates depend on who
else uses the machine, so the CPU time of the server stands beside them, and what is promised are ratios of one run.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import signal
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Awaitable, Callable, Generator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import aiohttp

from machine import RESULTS, table, write_results

BENCH = Path(__file__).resolve().parent
ROOT = BENCH.parent
PEERS = ("openenv-core", "openenv")
ROUNDS = 3
SESSIONS = 200
"""Opened at once, for the memory that one takes."""
STEP_RATIO, CALL_RATIO, COLD_SECONDS = 2.0, 15.0, 0.7

CALL = {"name": "say", "arguments": {"message": "hello"}}
TOOL_STEP = {"type": "step", "data": {"type": "call_tool", "tool_name": "say", "arguments": {"message": "hello"}}}
PLAIN_STEP = {"type": "step", "data": {"message": "hello"}}


@dataclass(frozen=True)
class Rate:
    per_second: float
    cpu_us: float
    """CPU time of the server for each."""


def command(name: str, kind: str, port: int) -> list[str]:
    if name == "whet":
        world = str(BENCH / "wire_peers" / "echo_world.py")
        return [sys.executable, "-m", "whet", "world", "serve", world, "--port", str(port), "--sessions", "400"]
    if name == "bare aiohttp":
        return [sys.executable, str(BENCH / "wire_peers" / "bare_socket.py"), str(port)]
    python = ROOT / ".venv-peers" / name / "bin" / "python"
    return [str(python), "-W", "ignore", str(BENCH / "wire_peers" / "openenv_echo.py"), kind, str(port)]


class Server:
    def __init__(self, process: subprocess.Popen[bytes], url: str, cold: float) -> None:
        self.process = process
        self.url = url
        self.cold = cold

    @property
    def cpu(self) -> float:
        fields = Path(f"/proc/{self.process.pid}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    @property
    def megabytes(self) -> float:
        lines = Path(f"/proc/{self.process.pid}/status").read_text().splitlines()
        return next(int(line.split()[1]) / 1024 for line in lines if line.startswith("VmRSS"))


@contextmanager
def server(name: str, kind: str = "plain") -> Generator[Server]:
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    began = time.perf_counter()
    process = subprocess.Popen(command(name, kind, port), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        url = f"http://127.0.0.1:{port}"
        while not answers(url):
            if process.poll() is not None or time.perf_counter() - began > 60:
                raise SystemExit(f"{name} does not start: {' '.join(command(name, kind, port))}")
            time.sleep(0.002)
        yield Server(process, url, time.perf_counter() - began)
    finally:
        process.send_signal(signal.SIGTERM)
        try:
            process.wait(10)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def answers(url: str) -> bool:
    try:
        with urllib.request.urlopen(f"{url}/health", timeout=5) as reply:
            return reply.status == 200
    except OSError:
        return False


async def exchange(link: aiohttp.ClientWebSocketResponse, message: str, times: int) -> None:
    for _ in range(times):
        await link.send_str(message)
        said = await link.receive(timeout=60)
        assert said.type is aiohttp.WSMsgType.TEXT, said
        assert '"error"' not in said.data or '"error":null' in said.data, said.data


async def steps(http: aiohttp.ClientSession, times: int, *, url: str, message: dict[str, Any]) -> None:
    async with http.ws_connect(f"{url}/ws", compress=0) as link:
        await exchange(link, '{"type":"reset","data":{}}', 1)
        await exchange(link, json.dumps(message), times)


async def socket_calls(http: aiohttp.ClientSession, times: int, *, url: str) -> None:
    async with http.ws_connect(f"{url}/mcp", compress=0) as link:
        await exchange(link, json.dumps({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": CALL}), times)


async def request_calls(http: aiohttp.ClientSession, times: int, *, url: str) -> None:
    async def rpc(method: str, params: dict[str, Any]) -> dict[str, Any]:
        body = {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}
        async with http.post(f"{url}/mcp", json=body) as reply:
            answer = await reply.json()
            assert "error" not in answer, answer
            return answer["result"]

    name = (await rpc("openenv/session/create", {}))["session_id"]
    for _ in range(times):
        await rpc("tools/call", {**CALL, "session_id": name})
    await rpc("openenv/session/close", {"session_id": name})


Work = Callable[[aiohttp.ClientSession, int], Awaitable[None]]
"""What a client does so many times."""


async def measured(at: Server, work: Work, times: int, width: int = 1) -> Rate:
    async with aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=0)) as http:
        await work(http, max(1, times // 20))
        began, cpu = time.perf_counter(), at.cpu
        await asyncio.gather(*(work(http, times) for _ in range(width)))
        seconds, used = time.perf_counter() - began, at.cpu - cpu
    done = times * width
    return Rate(done / seconds, used / done * 1e6)


async def session_kilobytes(at: Server) -> float:
    async with aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=0)) as http:
        before = at.megabytes
        links = [await http.ws_connect(f"{at.url}/ws", compress=0) for _ in range(SESSIONS)]
        for link in links:
            await exchange(link, '{"type":"reset","data":{}}', 1)
        taken = at.megabytes - before
        for link in links:
            await link.close()
    return taken * 1024 / SESSIONS


def best(rates: list[Rate]) -> Rate:
    """Of several rounds: whatever else runs on a machine makes numbers worse, never better."""
    return Rate(max(rate.per_second for rate in rates), min(rate.cpu_us for rate in rates))


def plain(names: tuple[str, ...], times: int) -> dict[str, dict[str, Any]]:
    """Steps, in rounds that take the servers in turn, so that all have the same weather; then memory and starts."""
    rows: dict[str, dict[str, Any]] = {}
    with ExitStack() as stack:
        at = {name: stack.enter_context(server(name)) for name in names}
        idle = {name: each.megabytes for name, each in at.items()}
        one: dict[str, list[Rate]] = {name: [] for name in names}
        many: dict[str, list[Rate]] = {name: [] for name in names}
        for _ in range(ROUNDS):
            for name, each in at.items():
                step = TOOL_STEP if name == "whet" else PLAIN_STEP
                work = partial(steps, url=each.url, message=step)
                one[name].append(asyncio.run(measured(each, work, times)))
                many[name].append(asyncio.run(measured(each, work, times // 20, 64)))
        for name, each in at.items():
            single, wide = best(one[name]), best(many[name])
            rows[name] = {
                "server": name,
                "steps/s": round(single.per_second),
                "CPU us": round(single.cpu_us),
                "steps/s x64": round(wide.per_second),
                "CPU us x64": round(wide.cpu_us),
                "idle MB": round(idle[name], 1),
                "KB/session": round(asyncio.run(session_kilobytes(each)), 1),
            }
    for name in names:
        rows[name]["cold s"] = round(min(cold_start(name) for _ in range(ROUNDS)), 3)
    return rows


def cold_start(name: str) -> float:
    with server(name) as at:
        return at.cold


def calls(names: tuple[str, ...], times: int) -> dict[str, dict[str, Any]]:
    """Calls of a tool in sixteen sessions at once, by each of the ways that the wire has."""
    ways: dict[str, Any] = {
        "step": partial(steps, message=TOOL_STEP),
        "socket": socket_calls,
        "request": request_calls,
    }
    rows: dict[str, dict[str, Any]] = {name: {"server": name} for name in names}
    with ExitStack() as stack:
        at = {name: stack.enter_context(server(name, "tools")) for name in names}
        for way, work in ways.items():
            rates: dict[str, list[Rate]] = {name: [] for name in names}
            for _ in range(ROUNDS):
                for name, each in at.items():
                    rates[name].append(asyncio.run(measured(each, partial(work, url=each.url), times, 16)))
            for name in names:
                rate = best(rates[name])
                rows[name] |= {f"by {way}/s": round(rate.per_second), f"CPU us by {way}": round(rate.cpu_us)}
    return rows


def promises(played: dict[str, dict[str, Any]], called: dict[str, dict[str, Any]]) -> list[dict[str, Any]]:
    """Against the faster of the two peers; CPU time says the same where the client is what is slow."""

    def ratio(rows: dict[str, dict[str, Any]], column: str) -> float:
        return rows["whet"][column] / max(rows[peer][column] for peer in PEERS)

    def saved(rows: dict[str, dict[str, Any]], column: str) -> float:
        return min(rows[peer][column] for peer in PEERS) / rows["whet"][column]

    found = [
        ("steps in one session", ratio(played, "steps/s"), saved(played, "CPU us"), STEP_RATIO),
        ("steps over 64 sessions", ratio(played, "steps/s x64"), saved(played, "CPU us x64"), STEP_RATIO),
        *(
            (f"tool calls {way}", ratio(called, f"{way}/s"), saved(called, f"CPU us {way}"), CALL_RATIO)
            for way in ("by step", "by socket", "by request")
        ),
    ]
    rows = [
        {
            "promise": what,
            "limit": f">= {limit:g} x",
            "rate": f"{rate:.1f} x",
            "CPU": f"{cpu:.1f} x less",
            "": kept(rate >= limit),
        }
        for what, rate, cpu, limit in found
    ]
    cold = played["whet"]["cold s"]
    told = {"promise": "cold start", "limit": f"< {COLD_SECONDS} s", "rate": f"{cold:.2f} s", "CPU": ""}
    return [*rows, {**told, "": kept(cold < COLD_SECONDS)}]


def kept(yes: bool) -> str:
    return "kept" if yes else "NOT KEPT"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--steps", type=int, default=4000)
    parser.add_argument("--calls", type=int, default=100)
    parser.add_argument("--results", type=Path, default=RESULTS)
    options = parser.parse_args()
    subprocess.run(
        ["make", "-s", "--old-file=.venv/.ready", *(f".venv-peers/{peer}/.ready" for peer in PEERS)],
        cwd=ROOT,
        check=True,
    )
    names = ("whet", *PEERS)
    played = plain((*names, "bare aiohttp"), options.steps)
    called = calls(names, options.calls)
    told = promises(played, called)
    text = "\n\n".join(map(table, (list(played.values()), list(called.values()), told)))
    print(text)
    write_results("wire", [*played.values(), *called.values(), *told], text, options.results)
    return 0 if all(row[""] == "kept" for row in told) else 1


if __name__ == "__main__":
    sys.exit(main())
