"""What every runner shares: the questions, the clock around the answers, the one line that is printed.

A runner lives in its framework's own environment, so this module imports the standard library alone. A runner hands
`report` a function that has its framework answer and judge a batch of questions; `report` calls it twice, first with
the tenth of the questions that warms up, then with the rest, and only the rest is timed.
"""

from __future__ import annotations

import argparse
import json
import resource
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path

MODEL = "next-number"
KEY = "not-a-key"
SYSTEM_PROMPT = "You answer with a number only."


@dataclass(frozen=True)
class Question:
    text: str
    answer: str


@dataclass(frozen=True)
class Asked:
    """What one measurement is about, as given on the command line."""

    base_url: str
    samples: int
    in_flight: int
    folder: Path
    """A new, empty folder for whatever the framework writes."""

    @property
    def warm_up(self) -> int:
        return self.samples // 10


def read_arguments() -> Asked:
    parser = argparse.ArgumentParser()
    parser.add_argument("--base-url", required=True)
    parser.add_argument("--samples", type=int, required=True)
    parser.add_argument("--in-flight", type=int, required=True)
    parser.add_argument("--folder", type=Path, required=True)
    return Asked(**vars(parser.parse_args()))


def report(asked: Asked, *, name: str, distribution: str, evaluate: Callable[[Sequence[Question]], int]) -> None:
    """`evaluate` plays a batch and gives the number of right answers, by the framework's own verdict."""
    questions = [Question(f"What is 1 + {number}?", str(number + 1)) for number in range(asked.samples)]
    correct = evaluate(questions[: asked.warm_up])
    cpu_before, wall_before = cpu_seconds(), time.perf_counter()
    correct += evaluate(questions[asked.warm_up :])
    wall, cpu = time.perf_counter() - wall_before, cpu_seconds() - cpu_before
    row = {
        "name": name,
        "version": version(distribution),
        "samples": asked.samples,
        "measured": asked.samples - asked.warm_up,
        "in_flight": asked.in_flight,
        "cpu_seconds": round(cpu, 4),
        "wall_seconds": round(wall, 4),
        "max_rss_mb": round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024, 1),
        "correct": correct,
    }
    print(json.dumps(row), flush=True)


def cpu_seconds() -> float:
    """User and system time of this process, all its threads, and the children that have ended."""
    own, children = resource.getrusage(resource.RUSAGE_SELF), resource.getrusage(resource.RUSAGE_CHILDREN)
    return own.ru_utime + own.ru_stime + children.ru_utime + children.ru_stime
