"""What one sample costs beyond the model's own time: whet beside other frameworks, on the same questions.

Each peer answers one-turn questions against a mock server of known latency, judges the answers and records them as it
does by default: in an environment of its own, on one core, while the server has the other. `peers/run_NAME.py` says
how each is used. The numbers go to `results/overhead.json` and `results/overhead.md`.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import shutil
import subprocess
import sys
import tempfile
import venv
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime
from importlib.metadata import distributions
from pathlib import Path
from typing import Any

from mock_server import MockServer


@dataclass(frozen=True)
class Peer:
    requirements: tuple[str, ...]
    """Pinned; empty for whet, which is installed from this tree."""
    share: float = 1.0
    """Of the samples asked for: slow peers play fewer, and their rows say how many."""


PEERS = {
    "inspect_ai": Peer(("inspect_ai==0.3.285", "openai==3.51.0"), share=0.5),
    "dspy": Peer(("dspy==3.4.1", "litellm==1.106.2", "openai==2.54.0")),
    "gepa": Peer(("gepa==0.1.4", "litellm==1.106.2", "openai==2.54.0"), share=0.5),
    "aiohttp": Peer(("aiohttp==3.14.5",)),
    "whet": Peer(()),
}
FLOOR = "aiohttp"
UNWANTED = "torch"
WIRES = ("aiohttp", "httpx", "httpx2", "litellm", "msgspec", "openai", "pydantic")
"""What else of an environment is worth naming beside its numbers."""

LATENCY_MS = 50.0
MOST_CPU_MS = 0.5
MOST_RSS_MB = 80.0
LEAST_RATE, RATE_IN_FLIGHT = 1500.0, 256
MOST_WALL, WALL_IN_FLIGHT = 1.1, 64

BENCH = Path(__file__).resolve().parent
ROOT = BENCH.parent
VENVS = ROOT / ".bench" / "venvs"
LONGEST_RUN_SECONDS = 1200


@dataclass(frozen=True)
class Row:
    """One peer at one number in flight, as its runner and the server saw it."""

    name: str
    version: str
    samples: int
    measured: int
    """Samples after the warm-up: those that the seconds are about."""
    in_flight: int
    cpu_seconds: float
    wall_seconds: float
    max_rss_mb: float
    correct: int
    calls: int
    """Requests that reached the server, warm-up included."""
    distinct_calls: int
    in_flight_seen: int
    server_cpu_seconds: float
    load_before: float
    """The machine's load average before the run: above 0, others were at work too."""
    cpu_ratio: float | None = None
    """CPU a sample against the bare client's at the same number in flight."""

    @property
    def cpu_ms(self) -> float:
        return 1000 * self.cpu_seconds / self.measured

    @property
    def rate(self) -> float:
        return self.measured / self.wall_seconds

    @property
    def wall_ratio(self) -> float:
        return self.wall_seconds / (self.measured / self.in_flight * LATENCY_MS / 1000)

    def problems(self) -> list[str]:
        """Why this row's numbers are not what they seem, if so."""
        found: list[str] = []
        if self.correct != self.samples:
            found.append(f"{self.correct} of {self.samples} answers were judged right")
        if self.calls != self.samples:
            found.append(f"{self.samples} samples took {self.calls} calls")
        if self.distinct_calls < self.samples:
            found.append(f"only {self.distinct_calls} of the calls were distinct")
        if self.in_flight_seen > self.in_flight:
            found.append(f"{self.in_flight_seen} calls were in flight, {self.in_flight} were asked for")
        return [f"{self.name} at {self.in_flight}: {problem}" for problem in found]


@dataclass(frozen=True)
class Promise:
    """What whet promises of itself, and what was seen."""

    about: str
    limit: str
    seen: str
    kept: bool


def environment(name: str) -> Path:
    """The peer's Python, installing its environment where there is none for these requirements."""
    folder, peer = VENVS / name, PEERS[name]
    wanted = "\n".join([platform.python_version(), *peer.requirements])
    if not peer.requirements:
        wanted += (ROOT / "pyproject.toml").read_text()
    stamp = folder / "installed"
    python = folder / "bin" / "python"
    if not stamp.exists() or stamp.read_text() != wanted:
        print(f"installing {name} ...", file=sys.stderr, flush=True)
        shutil.rmtree(folder, ignore_errors=True)
        venv.create(folder, with_pip=True)
        requirements = peer.requirements or ("--editable", str(ROOT))
        subprocess.run([python, "-m", "pip", "install", "--quiet", "--quiet", *requirements], check=True)
        stamp.write_text(wanted)
    if UNWANTED in installed(name):
        raise SystemExit(f"{name}'s environment has {UNWANTED}, which no one-turn question needs")
    return python


def installed(name: str) -> dict[str, str]:
    """Each distribution in a peer's environment and its version."""
    packages = (VENVS / name / "lib").glob("python*/site-packages")
    found = distributions(path=[str(folder) for folder in packages])
    return {each.name.lower().replace("-", "_"): each.version for each in found}


def measure(name: str, python: Path, mock: MockServer, *, samples: int, in_flight: int, core: int) -> Row | None:
    """One run of a peer's runner in a process of its own; None if it failed."""
    load_before = os.getloadavg()[0]
    mock.reset()
    with tempfile.TemporaryDirectory() as folder:
        asked = ["--base-url", mock.base_url, "--samples", str(samples), "--in-flight", str(in_flight)]
        try:
            ran = subprocess.run(
                [python, BENCH / "peers" / f"run_{name}.py", *asked, "--folder", folder],
                cwd=folder,
                # Nothing of the user's: no keys, no proxies, no settings. LiteLLM would fetch its prices otherwise.
                env={"PATH": os.defpath, "HOME": folder, "TMPDIR": folder, "LITELLM_LOCAL_MODEL_COST_MAP": "True"},
                capture_output=True,
                text=True,
                check=True,
                timeout=LONGEST_RUN_SECONDS,
                preexec_fn=lambda: os.sched_setaffinity(0, {core}),
            )
        except (subprocess.CalledProcessError, subprocess.TimeoutExpired) as fault:
            said = fault.stderr if isinstance(fault.stderr, str) else (fault.stderr or b"").decode(errors="replace")
            print(f"{name} at {in_flight} failed: {fault}\n{said[-3000:]}", file=sys.stderr, flush=True)
            return None
    stats = mock.stats()
    return Row(
        **json.loads(ran.stdout.splitlines()[-1]),
        calls=stats["requests"],
        distinct_calls=stats["distinct_bodies"],
        in_flight_seen=stats["max_in_flight"],
        server_cpu_seconds=stats["cpu_seconds"],
        load_before=round(load_before, 2),
    )


def measure_all(names: Sequence[str], *, samples: int, in_flight: Sequence[int]) -> tuple[list[Row], list[str]]:
    """The rows, and the names of the peers that failed."""
    cores = sorted(os.sched_getaffinity(0))
    rows: list[Row] = []
    failed: list[str] = []
    pythons = {name: environment(name) for name in names}
    arguments = ["--latency-ms", str(LATENCY_MS), "--rule", "next-number", "--core", str(cores[-1])]
    with MockServer(*arguments) as mock:
        for places in in_flight:
            for name in names:
                count = round(samples * PEERS[name].share)
                row = measure(name, pythons[name], mock, samples=count, in_flight=places, core=cores[0])
                if row is None:
                    failed.append(f"{name} at {places}")
                else:
                    rows.append(row)
                    print(f"{name} at {places}: {row.cpu_ms:.3f} ms CPU a sample", file=sys.stderr, flush=True)
    return with_ratios(rows), failed


def with_ratios(rows: Sequence[Row]) -> list[Row]:
    floors = {row.in_flight: row.cpu_ms for row in rows if row.name == FLOOR}
    return [
        replace(row, cpu_ratio=round(row.cpu_ms / floors[row.in_flight], 2)) if row.in_flight in floors else row
        for row in rows
    ]


def promises(rows: Sequence[Row]) -> list[Promise]:
    """Only of what was measured."""
    found: list[Promise] = []
    for row in rows:
        if row.name != "whet":
            continue
        at = f"at {row.in_flight} in flight"
        found += [
            Promise(f"CPU a sample {at}", f"<= {MOST_CPU_MS} ms", f"{row.cpu_ms:.3f} ms", row.cpu_ms <= MOST_CPU_MS),
            Promise(
                f"memory {at}", f"< {MOST_RSS_MB:.0f} MB", f"{row.max_rss_mb:.1f} MB", row.max_rss_mb < MOST_RSS_MB
            ),
        ]
        if row.in_flight == RATE_IN_FLIGHT:
            kept = row.rate >= LEAST_RATE
            found.append(Promise(f"samples/s {at}", f">= {LEAST_RATE:,.0f}", f"{row.rate:,.0f}", kept))
        if row.in_flight == WALL_IN_FLIGHT:
            kept = row.wall_ratio <= MOST_WALL
            found.append(Promise(f"wall time {at}", f"<= {MOST_WALL} x ideal", f"{row.wall_ratio:.2f} x ideal", kept))
    return found


def aligned(lines: Sequence[Sequence[str]], *, words: int) -> str:
    """Columns of text: the first `words` to the left, numbers to the right."""
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    return "\n".join(
        "  ".join(
            cell.ljust(width) if place < words else cell.rjust(width)
            for place, (cell, width) in enumerate(zip(line, widths, strict=True))
        ).rstrip()
        for line in lines
    )


def table(rows: Sequence[Row]) -> str:
    head = ["CPU ms/sample", f"x {FLOOR}", "samples/s", "wall/ideal", "max RSS MB", "samples", "right"]
    lines = [["peer", "version", "in flight", "seen", *head]]
    for row in rows:
        ratio = "-" if row.cpu_ratio is None else f"{row.cpu_ratio:.1f}"
        figures = [f"{row.cpu_ms:.3f}", ratio, f"{row.rate:,.0f}", f"{row.wall_ratio:.2f}", f"{row.max_rss_mb:.1f}"]
        places = [str(row.in_flight), str(row.in_flight_seen)]
        lines.append([row.name, row.version, *places, *figures, str(row.samples), str(row.correct)])
    return aligned(lines, words=2)


def promise_table(kept: Sequence[Promise]) -> str:
    lines = [[each.about, each.limit, each.seen, "kept" if each.kept else "NOT KEPT"] for each in kept]
    return aligned([["whet's promise", "limit", "seen", ""], *lines], words=4)


def machine() -> dict[str, Any]:
    described = Path("/proc/cpuinfo").read_text() if Path("/proc/cpuinfo").exists() else ""
    models = [line.split(":", 1)[1].strip() for line in described.splitlines() if line.startswith("model name")]
    return {
        "cpu": models[0] if models else platform.machine(),
        "cores": os.cpu_count(),
        "system": platform.system(),
        "python": platform.python_version(),
    }


def versions(names: Sequence[str]) -> dict[str, dict[str, str]]:
    """What was measured, and the libraries that carried its calls."""
    return {
        name: {each: found[each] for each in sorted({name, *WIRES} & found.keys())}
        for name, found in ((name, installed(name)) for name in names)
    }


def page(rows: Sequence[Row], kept: Sequence[Promise], notes: Sequence[str], about: dict[str, Any]) -> str:
    where = about["machine"]
    parts = [
        "# Overhead of a one-turn sample",
        f"{about['date']}, {where['cpu']}, {where['cores']} cores, Python {where['python']}. The client on one core, a "
        f"mock server with {LATENCY_MS:.0f} ms latency on another; the first tenth of the samples warms up and is not "
        "counted. CPU is user and system time; `seen` is what the server saw in flight; ideal wall time is samples / "
        f"in flight x latency. Load average before the first run: {about['load_before']}.",
        f"```text\n{table(rows)}\n```",
    ]
    if kept:
        parts.append(f"```text\n{promise_table(kept)}\n```")
    if notes:
        parts.append("\n".join(f"- {note}" for note in notes))
    listed = [
        f"- {name}: {', '.join(f'{each} {version}' for each, version in found.items())}"
        for name, found in about["versions"].items()
    ]
    return "\n\n".join([*parts, "Versions:", "\n".join(listed)]) + "\n"


def fewer(names: Sequence[str], samples: int) -> list[str]:
    return [
        f"{name} plays {round(samples * PEERS[name].share)} samples, not {samples}: it is slow"
        for name in names
        if PEERS[name].share < 1
    ]


def main() -> int:
    parser = argparse.ArgumentParser(description="CPU, memory and wall time of a one-turn sample, whet and its peers.")
    parser.add_argument("--samples", type=int, default=4000)
    parser.add_argument("--in-flight", type=int, nargs="+", default=[64, 256])
    parser.add_argument("--peers", default=",".join(PEERS), help="names joined by commas")
    parser.add_argument("--results", type=Path, default=BENCH / "results", help="the folder to write to")
    options = parser.parse_args()
    names = options.peers.split(",")
    if unknown := sorted(set(names) - PEERS.keys()):
        parser.error(f"no peer called {', '.join(unknown)}; there are {', '.join(PEERS)}")

    about = {
        "date": datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC"),
        "machine": machine(),
        "latency_ms": LATENCY_MS,
        "load_before": round(os.getloadavg()[0], 2),
    }
    rows, failed = measure_all(names, samples=options.samples, in_flight=options.in_flight)
    about["versions"] = versions(names)
    kept = promises(rows)
    problems = [f"{each}: did not run" for each in failed] + [problem for row in rows for problem in row.problems()]
    notes = [*problems, *fewer(names, options.samples)]

    derived = [
        asdict(row)
        | {"cpu_ms": round(row.cpu_ms, 4), "rate": round(row.rate, 1), "wall_ratio": round(row.wall_ratio, 3)}
        for row in rows
    ]
    written = about | {"rows": derived, "promises": [asdict(each) for each in kept], "notes": notes}
    options.results.mkdir(parents=True, exist_ok=True)
    (options.results / "overhead.json").write_text(json.dumps(written, indent=2) + "\n")
    (options.results / "overhead.md").write_text(page(rows, kept, notes, about))

    print(table(rows))
    if kept:
        print(f"\n{promise_table(kept)}")
    print("".join(f"\n{note}" for note in notes))
    return 0 if not problems and all(each.kept for each in kept) else 1


if __name__ == "__main__":
    sys.exit(main())
