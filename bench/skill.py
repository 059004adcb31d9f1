"""Whole trainings of a skill: whet beside SkillOpt and GEPA, on the same tasks, with the same student and optimizer.

A task is solved if and only if the skill holds the rule of its category and nothing harmful; 5% of the student's
answers are flipped. The optimizer sees failed tasks and proposes for at most two of their categories per call: helpful,
useless or harmful texts at fixed rates. Both sit behind one mock server, and `skill_peers/simulation.py` decides for
all. How good a shipped skill is, is therefore known exactly, without playing. Each trainer runs in an environment of
its own; `skill_peers/run_NAME.py` says how it is used. Run it with whet's own Python.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import shutil
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from statistics import mean, stdev
from typing import Any

import overhead
from machine import RESULTS, table, write_results
from mock_server import MockServer
from overhead import Peer
from skill_peers.simulation import (
    FLIPPED_SHARE,
    HARMFUL_SHARE,
    LOG_VARIABLE,
    MOST_PROPOSALS,
    SEED_VARIABLE,
    USELESS_SHARE,
    name_of,
    solves,
)
from whet.core import Split
from whet.testing.simulation import HARMFUL, SimulatedWorld

PEERS = {
    "whet": Peer(()),
    "skillopt": Peer(("skillopt==0.2.0", "openai==3.51.0")),
    "gepa": overhead.PEERS["gepa"],
}
TRAINERS = {
    "whet": ("whet",),
    "skillopt": ("skillopt",),
    "skillopt-gated": ("skillopt", "--gate-slow-update"),
    "gepa": ("gepa",),
}
"""Each with its peer and what its runner is told. SkillOpt puts its slow update in ungated unless told otherwise."""
PROMPTS = "skillopt_prompts"
START = "# Skill\n\nAnswer the task.\n"
SPLITS = {Split.TRAIN: "train", Split.SELECTION: "val", Split.TEST: "test"}
CATEGORIES = 12
LATENCY_MS = 50
REACHED = 0.9
MOST_WALL = 1.3
MOST_CALLS = 0.5
LONGEST_RUN_SECONDS = 600

T_QUANTILES = (12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228, 2.201, 2.179, 2.160, 2.145)
"""Of Student's t at 97.5%, by degrees of freedom from 1."""

BENCH = Path(__file__).resolve().parent


class Log:
    """What the server was asked, in order: purpose or split, skill, words in, words out."""

    def __init__(self, path: Path) -> None:
        self.lines = [json.loads(line) for line in path.read_text().splitlines()]

    def calls(self) -> Counter[str]:
        return Counter(line[0] for line in self.lines)

    def words(self) -> int:
        return sum(line[2] + line[3] for line in self.lines if line[0] != Split.TEST)

    def training_calls_until(self, skill: str) -> int | None:
        """Calls made when `skill` had been played on the selection tasks, whether or not it was kept for that."""
        calls, until = 0, None
        for what, name, _, _ in self.lines:
            calls += what != Split.TEST
            if what == Split.SELECTION and name == name_of(skill):
                until = calls
        return until


def true_score(skill: str, kinds: Sequence[str]) -> float:
    return mean(solves(skill, kind) for kind in kinds)


def environment(name: str) -> str:
    """The Python to run a peer with."""
    if not PEERS[name].requirements:
        return sys.executable
    overhead.PEERS[name] = PEERS[name]
    python = overhead.environment(name)
    if name == "skillopt":
        for package in (overhead.VENVS / name / "lib").glob("python*/site-packages/skillopt/prompts"):
            shutil.copytree(BENCH / "skill_peers" / PROMPTS, package, dirs_exist_ok=True)
    return str(python)


def write_tasks(folder: Path, world: SimulatedWorld) -> None:
    for split, name in SPLITS.items():
        items = [
            {"id": task.id, "question": task.inputs["text"], "task_type": task.kind} for task in world.tasks(split)
        ]
        (folder / name).mkdir(parents=True)
        (folder / name / "items.json").write_text(json.dumps(items))


def measure(name: str, python: str, seed: int, budget: int, world: SimulatedWorld) -> dict[str, Any] | None:
    """One training by one trainer; None if it failed."""
    cores = sorted(os.sched_getaffinity(0))
    arguments = ["--script", "skill_peers.simulation:answer", "--latency-ms", str(LATENCY_MS), "--core", str(cores[-1])]
    with tempfile.TemporaryDirectory() as temporary:
        base = Path(temporary)
        write_tasks(base / "tasks", world)
        (base / "start.md").write_text(START)
        (base / "run").mkdir()
        os.environ[SEED_VARIABLE], os.environ[LOG_VARIABLE] = str(seed), str(base / "log")
        with MockServer(*arguments) as server:
            asked = ["--base-url", server.base_url, "--seed", str(seed), "--budget", str(budget)]
            asked += ["--tasks", str(base / "tasks"), "--skill", str(base / "start.md"), "--folder", str(base / "run")]
            peer, *options = TRAINERS[name]
            runner = str(BENCH / "skill_peers" / f"run_{peer}.py")
            trained = run(name, [python, runner, *asked, *options], base, cores[0])
            stats = server.stats()
        if trained is None:
            return None
        return row(name, seed, trained, Log(base / "log"), stats, [task.kind for task in world.tasks(Split.TEST)])


def run(name: str, command: Sequence[str], folder: Path, core: int) -> dict[str, Any] | None:
    try:
        ran = subprocess.run(
            command,
            cwd=folder,
            # Nothing of the user's: no keys, no proxies, no settings. LiteLLM would fetch its prices otherwise.
            env={
                "PATH": os.defpath,
                "HOME": str(folder),
                "TMPDIR": str(folder),
                "PYTHONPATH": str(BENCH),
                "LITELLM_LOCAL_MODEL_COST_MAP": "True",
            },
            capture_output=True,
            text=True,
            check=True,
            timeout=LONGEST_RUN_SECONDS,
            preexec_fn=lambda: os.sched_setaffinity(0, {core}),
        )
    except (subprocess.CalledProcessError, subprocess.TimeoutExpired) as fault:
        said = fault.stderr if isinstance(fault.stderr, str) else (fault.stderr or b"").decode(errors="replace")
        print(f"{name} failed: {fault}\n{said[-600:]}", file=sys.stderr, flush=True)
        return None
    return json.loads(ran.stdout.splitlines()[-1])


def row(
    name: str, seed: int, trained: dict[str, Any], log: Log, stats: dict[str, Any], kinds: Sequence[str]
) -> dict[str, Any]:
    calls = log.calls()
    by_split = {str(split): calls.pop(split, 0) for split in SPLITS}
    student = by_split[Split.TRAIN] + by_split[Split.SELECTION]
    optimizer = calls.total()
    ideal = trained["more"].get("ideal_seconds")
    reaching = [log.training_calls_until(skill) for skill in trained["bests"] if true_score(skill, kinds) >= REACHED]
    known = [calls for calls in reaching if calls is not None]
    return {
        "trainer": name,
        "version": trained["version"],
        "seed": seed,
        "true score": true_score(trained["skill"], kinds),
        "harmful": trained["skill"].count(HARMFUL),
        "calls": student + optimizer,
        "student": student,
        "optimizer": optimizer,
        "test plays": by_split[Split.TEST],
        f"to {REACHED}": min(known) if known else None,
        "k words": log.words() / 1000,
        "wall s": trained["seconds"],
        "ideal s": ideal,
        "ratio": trained["seconds"] / ideal if ideal else None,
        "skill words": len(trained["skill"].split()),
        "settings": trained["settings"],
        "train plays": by_split[Split.TRAIN],
        "selection plays": by_split[Split.SELECTION],
        "optimizer calls": dict(calls),
        "bests": [round(true_score(skill, kinds), 4) for skill in trained["bests"]],
        "refused": stats["refused"],
        "abandoned": stats["abandoned"],
        "more": trained["more"],
    }


def interval(values: Sequence[float]) -> float:
    """Half the width of the 95% interval of the mean."""
    if len(values) < 2:
        return math.nan
    return T_QUANTILES[min(len(values) - 1, len(T_QUANTILES)) - 1] * stdev(values) / math.sqrt(len(values))


def summary(rows: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """One trainer over its seeds."""
    scores = [each["true score"] for each in rows]
    reached = [each[f"to {REACHED}"] for each in rows]
    ratios = [each["ratio"] for each in rows if each["ratio"] is not None]
    return {
        "trainer": rows[0]["trainer"],
        "version": rows[0]["version"],
        "seeds": len(rows),
        "true score": mean(scores),
        "+-": interval(scores),
        "min": min(scores),
        "max": max(scores),
        "sd": stdev(scores) if len(scores) > 1 else math.nan,
        "calls": round(mean(each["calls"] for each in rows)),
        "student": round(mean(each["student"] for each in rows)),
        "optimizer": round(mean(each["optimizer"] for each in rows)),
        f"to {REACHED}": shown_reach(reached),
        "k words": mean(each["k words"] for each in rows),
        "wall s": mean(each["wall s"] for each in rows),
        "x ideal": f"{max(ratios):.2f}" if ratios else "-",
        "harmful": sum(each["harmful"] for each in rows),
    }


def shown_reach(reached: Sequence[int | None]) -> str:
    known = [calls for calls in reached if calls is not None]
    return f"{mean(known):.0f} ({len(known)}/{len(reached)})" if known else f"- (0/{len(reached)})"


def targets(by_peer: dict[str, list[dict[str, Any]]]) -> list[dict[str, Any]]:
    """What whet is to reach, against the peer that shipped the better skills."""
    ours = by_peer.get("whet")
    others = {name: rows for name, rows in by_peer.items() if name != "whet"}
    if not ours:
        return []
    worst = max(each["ratio"] for each in ours)
    harmful = sum(each["harmful"] for each in ours)
    found = [
        {"whet": "wall time", "limit": f"<= {MOST_WALL} x ideal", "seen": f"{worst:.2f}", "": told(worst <= MOST_WALL)},
        {"whet": "harmful edits shipped", "limit": "0", "seen": str(harmful), "": told(not harmful)},
    ]
    if not others:
        return found
    name = max(others, key=lambda each: mean(one["true score"] for one in others[each]))
    best, score = (mean(one["true score"] for one in rows) for rows in (others[name], ours))
    theirs, calls = (mean(one["calls"] for one in rows) for rows in (others[name], ours))
    return [
        {"whet": "true score", "limit": f">= {best:.3f} ({name})", "seen": f"{score:.3f}", "": told(score >= best)},
        {
            "whet": "calls",
            "limit": f"<= {MOST_CALLS} x {theirs:.0f} ({name})",
            "seen": f"{calls:.0f} ({calls / theirs:.2f} x)",
            "": told(calls <= MOST_CALLS * theirs),
        },
        *found,
    ]


def told(reached: bool) -> str:
    return "reached" if reached else "NOT REACHED"


def page(by_peer: dict[str, list[dict[str, Any]]], budget: int) -> str:
    per_seed = ("trainer", "seed", "true score", "harmful", "calls", "student", "optimizer", "test plays")
    per_seed += (f"to {REACHED}", "k words", "wall s", "ratio", "skill words")
    lines = [
        {column: "-" if each[column] is None else each[column] for column in per_seed}
        for rows in by_peer.values()
        for each in rows
    ]
    helpful = 1 - HARMFUL_SHARE - USELESS_SHARE
    about = (
        f"{CATEGORIES} categories; 80 train, 40 selection, 100 test tasks; {FLIPPED_SHARE:.0%} of the student's\n"
        f"answers flipped; the optimizer proposes for at most {MOST_PROPOSALS} failed categories a call:\n"
        f"{helpful:.0%} helpful, {USELESS_SHARE:.0%} useless, {HARMFUL_SHARE:.0%} harmful; "
        f"{LATENCY_MS} ms a call; a budget of {budget} calls.\n"
        "Calls and words are those of training, without plays of the test split.\n"
        "`+-` is half the 95% interval of the mean over seeds.\n"
        f"`to {REACHED}`: training calls until the best skill so far truly scored that, of the seeds that got there.\n"
        "`x ideal` is the worst seed's; on a machine that others use too it says little."
    )
    settings = "\n".join(f"{name}: {rows[0]['settings']}" for name, rows in by_peer.items())
    parts = [about, table([summary(rows) for rows in by_peer.values()])]
    kept = targets(by_peer)
    return "\n\n".join([*parts, *([table(kept)] if kept else []), table(lines), settings])


def main() -> int:
    parser = argparse.ArgumentParser(description="Trainings of a skill by whet and its peers, on the same simulation.")
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument("--budget", type=int, default=1000, help="calls of training")
    parser.add_argument("--peers", default=",".join(TRAINERS), help="names joined by commas")
    parser.add_argument("--results", type=Path, default=RESULTS, help="the folder to write to")
    options = parser.parse_args()
    names = options.peers.split(",")
    if unknown := sorted(set(names) - TRAINERS.keys()):
        parser.error(f"no peer called {', '.join(unknown)}; there are {', '.join(TRAINERS)}")

    world = SimulatedWorld(categories=CATEGORIES)
    pythons = {name: environment(TRAINERS[name][0]) for name in names}
    by_peer: dict[str, list[dict[str, Any]]] = {}
    failed = False
    for name in names:
        for seed in range(1, options.seeds + 1):
            measured = measure(name, pythons[name], seed, options.budget, world)
            failed = failed or measured is None
            if measured is not None:
                by_peer.setdefault(name, []).append(measured)
                print(
                    f"{name}, seed {seed}: {measured['true score']:.2f} after {measured['calls']} calls, "
                    f"{measured['wall s']:.1f} s",
                    file=sys.stderr,
                    flush=True,
                )
    text = page(by_peer, options.budget)
    print(text)
    write_results("skill", [each for rows in by_peer.values() for each in rows], text, options.results)
    return 1 if failed or any(each[""] != "reached" for each in targets(by_peer)) else 0


if __name__ == "__main__":
    sys.exit(main())
