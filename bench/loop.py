"""The whole loop on the embedded model, several seeds: what `whet demo` and `whet demo --grid-ctf` do, measured.

House commands: the bare model, with the skill that was found, and with the adapter alone, on sealed test tasks.
grid_ctf: generations that learn from their own play, held to JSON and free, beside searches that play as often.
An answer that is not valid scores 0 everywhere. Needs `whet models pull smollm2-135m`.
"""

from __future__ import annotations

import argparse
import asyncio
import statistics
import tempfile
import time
from collections.abc import Sequence
from importlib.resources import files
from pathlib import Path
from typing import Any

import msgspec

from machine import table, write_results
from whet.cli.demonstrating import stages_of
from whet.cli.demonstrating_game import generations_of
from whet.core import Policy, Split, Trajectory
from whet.training import Monitor, Project, Report, Silent, Stage, load_config, open_workshop, prepare, train
from whet.training.judging import play_all
from whet.training.publishing import stored_policies

OPTIMUM = 0.8926


class Timed(Silent):
    """Wall time of each kind of stage, so that a report can say where it went."""

    def __init__(self) -> None:
        self.seconds: dict[str, float] = {}
        self._began: dict[int, float] = {}

    def stage(self, name: str, total: int) -> Stage:
        stage = Stage(name, total)
        self._began[id(stage)] = time.monotonic()
        return stage

    def ended(self, stage: Stage) -> None:
        kind = stage.name.rpartition(": ")[2].partition(",")[0]
        self.seconds[kind] = self.seconds.get(kind, 0.0) + time.monotonic() - self._began.pop(id(stage))


def project_of(name: str, folder: Path, seed: int) -> Project:
    text = files("whet.cli.demos").joinpath(f"{name}.toml").read_text(encoding="utf-8")
    (folder / "whet.toml").write_text(text, encoding="utf-8")
    return prepare(load_config(folder, [f"train.seed={seed}", f"world.first={1000 * seed}"]), folder)


def trained(project: Project, run: Path, monitor: Monitor) -> tuple[Report, float, float]:
    began, cpu = time.monotonic(), time.process_time()
    report = asyncio.run(train(project, run, monitor))
    return report, time.monotonic() - began, time.process_time() - cpu


def house(seed: int) -> list[dict[str, Any]]:
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        project, timed, run = project_of("house", folder, seed), Timed(), folder / "runs" / "run-1"
        report, seconds, _ = trained(project, run, timed)
        lines = asyncio.run(stages_of(project, run, report))
    return [
        {
            "seed": seed,
            "stage": line.stage,
            "passed": line.passed,
            "of": line.tasks,
            "rate": line.rate,
            "low": line.interval.low,
            "high": line.interval.high,
            "valid": line.valid,
            "prompt tokens": line.prompt_tokens,
            "s a call": line.seconds,
            "loop s": seconds,
            "stages s": {name: round(taken, 1) for name, taken in timed.seconds.items()},
        }
        for line in lines
    ]


async def played_free(project: Project, run: Path, policies: Sequence[Policy]) -> list[list[Trajectory]]:
    """The test seeds with these policies, held to JSON or not as they say."""
    async with open_workshop(project, run) as workshop:
        tasks = project.tasks(Split.TEST)
        return [await play_all(workshop.engine, policy, tasks, Stage("", 0)) for policy in policies]


def free(policy: Policy) -> Policy:
    return msgspec.structs.replace(policy, harness=msgspec.structs.replace(policy.harness, constrained=False))


def grid(seed: int) -> dict[str, Any]:
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        project, timed, run = project_of("grid_ctf", folder, seed), Timed(), folder / "runs" / "run-1"
        report, seconds, _ = trained(project, run, timed)
        found = generations_of(project, run, report)
        best = stored_policies(run)[report.best]
        again = project_of("grid_ctf", folder, seed)
        start_free, best_free = asyncio.run(played_free(again, run, [free(again.start), free(best)]))
    return {
        "seed": seed,
        "generations": [msgspec.to_builtins(line) for line in found.generations],
        "start": found.start,
        "best": found.best,
        "start free": statistics.fmean(one.soft for one in start_free),
        "best free": statistics.fmean(one.soft for one in best_free),
        "best free valid": statistics.fmean(one.soft > 0 for one in best_free),
        "regret": OPTIMUM - (found.best or 0.0),
        "searches": {line.search: line.score for line in found.searches},
        "calls": found.searches[0].calls,
        "loop s": seconds,
        "stages s": {name: round(taken, 1) for name, taken in timed.seconds.items()},
    }


def spread(values: Sequence[float]) -> str:
    """Mean, and half its 95% interval over seeds."""
    mean = statistics.fmean(values)
    if len(values) < 2:
        return f"{mean:.3f}"
    return f"{mean:.3f} +- {2.0 * statistics.stdev(values) / len(values) ** 0.5:.3f}"


def house_page(rows: Sequence[dict[str, Any]]) -> str:
    lines = [
        {
            "stage": stage,
            "seeds": len(mine),
            "rate": spread([row["rate"] for row in mine]),
            "least": min(row["rate"] for row in mine),
            "valid": spread([row["valid"] for row in mine]),
            "prompt tokens": round(statistics.fmean(row["prompt tokens"] for row in mine), 1),
        }
        for stage in dict.fromkeys(row["stage"] for row in rows)
        if (mine := [row for row in rows if row["stage"] == stage])
    ]
    return f"House commands, {rows[0]['of']} sealed test tasks a seed:\n\n{table(lines)}"


def grid_page(rows: Sequence[dict[str, Any]]) -> str:
    lines = [
        {"who": "bare model, held to JSON", "mean score": spread([row["start"] for row in rows])},
        {"who": "after the generations, held to JSON", "mean score": spread([row["best"] for row in rows])},
        {"who": "bare model, free", "mean score": spread([row["start free"] for row in rows])},
        {"who": "after the generations, free", "mean score": spread([row["best free"] for row in rows])},
        *(
            {"who": f"{name}, as many calls", "mean score": spread([row["searches"][name] for row in rows])}
            for name in rows[0]["searches"]
        ),
        {"who": "the best there is (seeds 0 to 199)", "mean score": f"{OPTIMUM:.4f}"},
    ]
    generations = [
        {
            "generation": number + 1,
            "mean of its tries": spread([row["generations"][number]["mean"] for row in rows]),
            "valid": spread([row["generations"][number]["valid"] for row in rows]),
            "distinct": spread([row["generations"][number]["diversity"] for row in rows]),
            "kept": sum(row["generations"][number]["accepted"] for row in rows),
        }
        for number in range(min(len(row["generations"]) for row in rows))
    ]
    return (
        f"grid_ctf, {len(rows)} seeds:\n\n{table(lines)}\n\nWhat each generation learned from:\n\n{table(generations)}"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--only", choices=("house", "grid"))
    parser.add_argument("--results", type=Path, default=Path(__file__).parent / "results")
    options = parser.parse_args()
    pages: list[str] = []
    found: list[dict[str, Any]] = []
    seeds = range(1, options.seeds + 1)
    if options.only != "grid":
        rows: list[dict[str, Any]] = []
        for seed in seeds:
            rows += house(seed)
            print(table([row for row in rows if row["seed"] == seed]), flush=True)
        found += [{"world": "house_commands", **row} for row in rows]
        pages.append(house_page(rows))
    if options.only != "house":
        games: list[dict[str, Any]] = []
        for seed in seeds:
            games.append(grid(seed))
            print({key: value for key, value in games[-1].items() if key != "generations"}, flush=True)
        found += [{"world": "grid_ctf", **game} for game in games]
        pages.append(grid_page(games))
    write_results("loop", found, "\n\n".join(pages), options.results)


if __name__ == "__main__":
    main()
