"""What the runners share: the question on the command line, the tasks, the clock, the one line that is printed.

A runner lives in its trainer's own environment, so this module imports the standard library alone.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Sequence
from dataclasses import dataclass, field
from importlib.metadata import version
from pathlib import Path
from typing import Any

KEY = "not-a-key"
STUDENT = "student"
OPTIMIZER = "optimizer"


@dataclass(frozen=True)
class Asked:
    base_url: str
    seed: int
    budget: int
    """Calls that the training may make; playing the test split is not counted."""
    tasks: Path
    """Folders train, val and test, each with items.json: a list of {"id", "question", "task_type"}."""
    skill: Path
    """The text to start from."""
    folder: Path
    """A new, empty folder for whatever the trainer writes."""
    gate_slow_update: bool
    """SkillOpt alone: its epoch-end guidance must pass its gate too."""

    def items(self, split: str) -> list[dict[str, Any]]:
        return json.loads((self.tasks / split / "items.json").read_text())


def read_arguments() -> Asked:
    parser = argparse.ArgumentParser()
    parser.add_argument("--base-url", required=True)
    parser.add_argument("--seed", type=int, required=True)
    parser.add_argument("--budget", type=int, required=True)
    parser.add_argument("--tasks", type=Path, required=True)
    parser.add_argument("--skill", type=Path, required=True)
    parser.add_argument("--folder", type=Path, required=True)
    parser.add_argument("--gate-slow-update", action="store_true")
    return Asked(**vars(parser.parse_args()))


@dataclass(frozen=True)
class Trained:
    skill: str
    """What is shipped."""
    bests: Sequence[str]
    """What would have been shipped before, oldest first, the starting skill and the shipped one included."""
    seconds: float
    """From the call of the trainer to its return."""
    settings: str
    """How it was used, in words."""
    more: dict[str, Any] = field(default_factory=dict)


def report(trained: Trained, distribution: str) -> None:
    row = {**vars(trained), "version": version(distribution)}
    sys.stdout.write("\n" + json.dumps(row) + "\n")
