"""How long `whet runs` and `whet show` take on a run with 100,000 stored rollouts.

Fills a run through the store's own rows, with calls, attempts, steps and policies as a long training leaves them, and
times the commands as a user starts them: a new process each. Writes results/scale.json and .md; exit code 1 if a
promise is not kept.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import platform
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

from whet.core import (
    Edit,
    EditResult,
    EditStatus,
    End,
    ModelRef,
    ModelReply,
    Policy,
    Ruling,
    Score,
    Skill,
    Split,
    Trajectory,
    Usage,
    Verdict,
    assistant,
    content_key,
    user,
)
from whet.store import AttemptRow, AttemptStatus, CallRow, DecisionRow, MetaRow, PolicyRow, RolloutRow, Row, open_run
from whet.training import StepRecord

ROOT = Path(__file__).resolve().parents[1]
RESULTS = ROOT / "bench/results"
MOST_SECONDS = {"whet runs": 1.0, "whet show": 1.0}
STEPS = 100
ROWS_A_WRITE = 2_000


def policy(number: int) -> Policy:
    return Policy(ModelRef("vllm", "model"), skill=Skill.from_text(f"Work with care.\n\n- Rule {number}.\n"))


def trajectory(played: Policy, split: Split, task: int, sample: int) -> Trajectory:
    """As long as one with a few tool calls is."""
    hard = (task + sample) % 3 > 0
    talk = tuple(
        message
        for turn in range(3)
        for message in (user(f"Task {task}, turn {turn}. " + "What is to be done? " * 10), assistant("I do it. " * 20))
    )
    verdict = Verdict(hard, float(hard), "" if hard else "wrong answer: something else")
    usage = Usage(600, 200)
    return Trajectory(
        played.fingerprint, f"{split}-{task}", split, sample, talk, "answer", End.ANSWERED, verdict, None, usage, 3
    )


def step_row(number: int) -> DecisionRow:
    before, candidate = policy(number - 1), policy(number)
    edit = EditResult(Edit("append", content=f"- Rule {number}."), EditStatus.APPLIED)
    ruling = Ruling(
        True, True, number / STEPS, (number - 1) / STEPS, (number - 1) / STEPS, "it scores more", fixed=1, both=9
    )
    record = StepRecord(
        number=number,
        epoch=1,
        played=Score(0.5, 0.5, 40),
        current=before.fingerprint,
        candidate=candidate.fingerprint,
        edits=(edit,) * 4,
        reasoning="It was missing.",
        patterns=(),
        skipped="",
        fallbacks=(),
        ruling=ruling,
        candidate_skill=candidate.skill.files,
    )
    return DecisionRow(content_key("step", number), "step", f"{number:06d}", time.time(), record)


def rows(rollouts: int) -> Iterator[Row]:
    yield MetaRow("settings", '{"target.model": "vllm/model", "optimizer.model": "vllm/model"}')
    yield MetaRow("world", "filled")
    each = rollouts // STEPS
    for number in range(STEPS):
        played = policy(number)
        yield PolicyRow(played)
        for task in range(each):
            split = (Split.TRAIN, Split.SELECTION, Split.TEST)[task % 3]
            key = content_key("filled", number, task)
            yield RolloutRow(key, trajectory(played, split, task, 0), time.time(), 1.0)
            reply = ModelReply("I do it. " * 20, usage=Usage(600, 200))
            yield CallRow(key, "target", "rollout", "vllm/model", 600, 200, 1000, reply)
            attempt = number * each + task + 1
            yield AttemptRow(
                attempt, key, "target", "rollout", AttemptStatus.ANSWERED, 800, 1000, time.time(), seconds=1.0
            )
        yield step_row(number + 1)
    yield PolicyRow(policy(STEPS))


async def fill(folder: Path, rollouts: int) -> None:
    store = open_run(folder / "run.db")
    batch: list[Row] = []
    for row in rows(rollouts):
        batch.append(row)
        if len(batch) == ROWS_A_WRITE:
            await store.write(*batch)
            batch = []
    await store.write(*batch)
    await store.aclose()


def timed(arguments: list[str], times: int) -> tuple[float, float]:
    """Median seconds of wall and of CPU; the first, which fills the disk cache, does not count."""
    walls: list[float] = []
    cpus: list[float] = []
    for _ in range(times + 1):
        before, began = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
        subprocess.run([sys.executable, "-m", "whet", *arguments], check=True, stdout=subprocess.DEVNULL)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        walls.append(time.perf_counter() - began)
        cpus.append(after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)
    return statistics.median(walls[1:]), statistics.median(cpus[1:])


def peak_megabytes(arguments: list[str]) -> float:
    """The most memory of one process; the children before it must have needed less."""
    code = (
        "import resource, subprocess, sys;"
        "subprocess.run(sys.argv[1:], check=True, stdout=subprocess.DEVNULL);"
        "print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 1024)"
    )
    command = [sys.executable, "-c", code, sys.executable, "-m", "whet", *arguments]
    return float(subprocess.run(command, check=True, capture_output=True, text=True).stdout)


def measure(project: Path, times: int) -> dict[str, dict[str, float]]:
    place = ["-C", str(project)]
    commands = {
        "whet --help": ["--help"],
        "whet runs": ["runs", *place],
        "whet show": ["show", *place],
        "whet show --step 50": ["show", "--step", "50", *place],
        "whet show --task test-500": ["show", "--task", "test-500", *place],
        "whet diff run-1": ["diff", "run-1", *place],
        "whet export run-1": ["export", "run-1", *place],
    }
    found: dict[str, dict[str, float]] = {}
    for name, arguments in commands.items():
        wall, cpu = timed(arguments, times)
        found[name] = {"seconds": wall, "cpu_seconds": cpu, "peak_mb": peak_megabytes(arguments)}
    return found


def as_markdown(results: dict[str, object], found: dict[str, dict[str, float]]) -> str:
    lines = [
        "# Looking at a long run",
        "",
        f"{results['rollouts']:,} rollouts, {results['megabytes']:.0f} MB, {STEPS} steps;"
        f" a new process each time, median of {results['times']}.",
        "",
        "| command | seconds | CPU seconds | peak MB |",
        "|---|---:|---:|---:|",
    ]
    lines += [
        f"| `{name}` | {line['seconds']:.2f} | {line['cpu_seconds']:.2f} | {line['peak_mb']:.0f} |"
        for name, line in found.items()
    ]
    return "\n".join([*lines, "", f"{results['machine']}, {results['when']}", ""])


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rollouts", type=int, default=100_000)
    parser.add_argument("--times", type=int, default=5)
    parser.add_argument("--results", type=Path, default=RESULTS)
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="whet-scale-") as name:
        project = Path(name)
        asyncio.run(fill(project / "runs/run-1", asked.rollouts))
        found = measure(project, asked.times)
        size = (project / "runs/run-1/run.db").stat().st_size
    machine = f"{platform.system()} {platform.machine()}, {os.cpu_count()} cores, Python {platform.python_version()}"
    results: dict[str, object] = {
        "rollouts": asked.rollouts,
        "megabytes": size / 1e6,
        "times": asked.times,
        "machine": machine,
        "when": datetime.now(UTC).date().isoformat(),
        "commands": found,
    }
    asked.results.mkdir(parents=True, exist_ok=True)
    (asked.results / "scale.json").write_text(json.dumps(results, indent=1) + "\n")
    (asked.results / "scale.md").write_text(as_markdown(results, found))
    late = {name: most for name, most in MOST_SECONDS.items() if found[name]["seconds"] >= most}
    for name, most in late.items():
        print(f"{name} takes {found[name]['seconds']:.2f} s, not less than {most} s", file=sys.stderr)
    print((asked.results / "scale.md").read_text())
    return 1 if late else 0


if __name__ == "__main__":
    sys.exit(main())
