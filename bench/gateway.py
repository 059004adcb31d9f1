"""What a gateway costs: whet's, litellm's, and the least that a proxy can be, before one mock server.

Each runs in a process of its own and is driven by the same client, 64 requests in flight. What counts on a machine that
others use too is the CPU time of the gateway's own process for a request; wall times stand beside it. Memory is read
after each batch, so that growth shows.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import signal
import socket
import statistics
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import aiohttp

from machine import RESULTS, table, write_results
from mock_server import MockServer

BENCH = Path(__file__).resolve().parent
ROOT = BENCH.parent
LITELLM = ROOT / ".bench" / "venvs" / "litellm" / "bin" / "litellm"
WORLD = "numbers"
BATCHES = 4
CPU_PROMISE_MS, GROWTH_PROMISE_MB = 1.0, 2.0


@dataclass(frozen=True)
class Batch:
    seconds: float
    cpu_ms: float
    """The gateway's own, for each request."""
    median_ms: float
    megabytes: float
    """After it."""


class Proxy:
    def __init__(self, process: subprocess.Popen[bytes], url: str) -> None:
        self.process = process
        self.url = url

    def _pids(self) -> list[int]:
        """The process and those that it started."""
        found = [self.process.pid]
        for pid in found:
            children = Path(f"/proc/{pid}/task/{pid}/children")
            found += [int(child) for child in children.read_text().split()] if children.exists() else []
        return found

    @property
    def cpu(self) -> float:
        total = 0
        for pid in self._pids():
            fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
            total += int(fields[11]) + int(fields[12])
        return total / os.sysconf("SC_CLK_TCK")

    @property
    def megabytes(self) -> float:
        total = 0.0
        for pid in self._pids():
            lines = Path(f"/proc/{pid}/status").read_text().splitlines()
            total += next(int(line.split()[1]) / 1024 for line in lines if line.startswith("VmRSS"))
        return total


def publish(home: Path) -> None:
    """One active policy with a skill of ordinary length, so that there is something to put in."""
    from whet.core import ModelRef, Policy, Skill, SystemClock, fingerprint
    from whet.registry import Base, Draft, open_registry

    base = Base("openai/mock", fingerprint("base", "openai/mock"))
    text = "\n".join(f"- Rule {number}: look at the number before you answer." for number in range(40))
    with open_registry(home, SystemClock()) as registry:
        policy = Policy(ModelRef("openai", "mock"), skill=Skill.from_text(text))
        registry.activate(registry.publish(Draft(policy, WORLD, base)).id, force=True)


def command(name: str, port: int, upstream: str, home: Path) -> list[str]:
    if name == "whet":
        options = ["--upstream", upstream, "--kind", "openai", "--model", "mock", "--project", str(home)]
        return [sys.executable, "-m", "whet", "serve", "--port", str(port), "--plain", *options]
    if name == "starlette+httpx":
        return [sys.executable, str(BENCH / "gateway_peers" / "starlette_httpx.py"), str(port), upstream]
    config = home / "litellm.yaml"
    settings = {"model": "openai/mock", "api_base": upstream, "api_key": "none"}
    models = [{"model_name": WORLD, "litellm_params": settings}]
    keyless = {"dangerously_permit_weak_or_unset_master_key": True}
    config.write_text(json.dumps({"model_list": models, "general_settings": keyless}))
    return [str(LITELLM), "--config", str(config), "--port", str(port), "--host", "127.0.0.1", "--telemetry", "False"]


@contextmanager
def proxy(name: str, upstream: str, home: Path) -> Generator[Proxy]:
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    # The mock server wants no key; OpenAI's name for one is set so that each proxy starts.
    own = {
        "WHET_HOME": str(home),
        "WHET_API_KEYS": "",
        "OPENAI_API_KEY": "none",
        "LITELLM_LOCAL_MODEL_COST_MAP": "True",
    }
    log = (home / f"{name}.log").open("wb")
    process = subprocess.Popen(
        command(name, port, upstream, home), stdout=log, stderr=log, env={**os.environ, **own}, cwd=home
    )
    try:
        url = f"http://127.0.0.1:{port}/v1"
        began = time.perf_counter()
        while not answers(url):
            if process.poll() is not None or time.perf_counter() - began > 120:
                raise SystemExit(f"{name} does not start: {(home / f'{name}.log').read_text()[-500:]}")
            time.sleep(0.05)
        yield Proxy(process, url)
    finally:
        process.send_signal(signal.SIGTERM)
        try:
            process.wait(20)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
        log.close()


def answers(url: str) -> bool:
    try:
        with urllib.request.urlopen(f"{url}/models", timeout=5) as reply:
            return reply.status == 200
    except OSError:
        return False


async def batch(url: str, times: int, in_flight: int) -> tuple[float, list[float]]:
    """How long it took, and each request."""
    took: list[float] = []
    numbers = iter(range(times))
    connector = aiohttp.TCPConnector(limit=0)
    async with aiohttp.ClientSession(connector=connector) as http:

        async def ask_on() -> None:
            for number in numbers:
                body = {"model": WORLD, "messages": [{"role": "user", "content": f"What comes after {number}?"}]}
                began = time.perf_counter()
                async with http.post(f"{url}/chat/completions", json=body) as reply:
                    said = await reply.json()
                    assert reply.status == 200, said
                    assert said["choices"][0]["message"]["content"] == str(number + 1), said
                took.append(time.perf_counter() - began)

        began = time.perf_counter()
        await asyncio.gather(*(ask_on() for _ in range(in_flight)))
        return time.perf_counter() - began, took


def measured(at: Proxy, times: int, in_flight: int) -> Batch:
    before = at.cpu
    seconds, took = asyncio.run(batch(at.url, times, in_flight))
    cpu = (at.cpu - before) / times * 1000
    return Batch(seconds, cpu, statistics.median(took) * 1000, at.megabytes)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--requests", type=int, default=5000)
    parser.add_argument("--in-flight", type=int, default=64)
    parser.add_argument("--peers", default="whet,starlette+httpx,litellm")
    parser.add_argument("--results", type=Path, default=RESULTS)
    arguments = parser.parse_args()
    rows: list[dict[str, Any]] = []
    with MockServer("--rule", "next-number", "--latency-ms", "50") as mock, tempfile.TemporaryDirectory() as folder:
        upstream = mock.base_url
        seconds, took = asyncio.run(batch(upstream, arguments.requests, arguments.in_flight))
        rows.append(row("direct", [Batch(seconds, 0.0, statistics.median(took) * 1000, 0.0)], arguments.requests))
        publish(Path(folder))
        for name in arguments.peers.split(","):
            with proxy(name, upstream, Path(folder)) as at:
                # What is loaded and opened at first use is no part of what a request costs.
                measured(at, arguments.requests // 5, arguments.in_flight)
                times = BATCHES if name == "whet" else 2
                batches = [measured(at, arguments.requests, arguments.in_flight) for _ in range(times)]
            rows.append(row(name, batches, arguments.requests))
            print(table(rows), flush=True)
    ours = next((row for row in rows if row["gateway"] == "whet"), None)
    kept = ours is None or (ours["cpu ms a request"] <= CPU_PROMISE_MS and ours["MB grown"] <= GROWTH_PROMISE_MB)
    promise = (
        f"{arguments.requests} requests a batch, {arguments.in_flight} in flight; upstream's latency 50 ms\n"
        f"promised: at most {CPU_PROMISE_MS:g} ms CPU a request and {GROWTH_PROMISE_MB:g} MB of growth: "
        f"{'kept' if kept else 'NOT KEPT'}"
    )
    write_results("gateway", rows, f"{table(rows)}\n\n{promise}", arguments.results)
    print(promise)
    return 0 if kept else 1


def row(name: str, batches: list[Batch], requests: int) -> dict[str, Any]:
    """The best batch for what is measured in time; growth from the first batch to the last."""
    best = min(batches, key=lambda one: one.cpu_ms)
    return {
        "gateway": name,
        "cpu ms a request": best.cpu_ms,
        "requests/s": round(requests / min(one.seconds for one in batches)),
        "median ms": min(one.median_ms for one in batches),
        "MB after": round(batches[-1].megabytes, 1),
        "MB grown": round(batches[-1].megabytes - batches[0].megabytes, 1),
        "batches": len(batches),
    }


if __name__ == "__main__":
    sys.exit(main())
