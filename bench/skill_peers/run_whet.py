"""whet with the configuration of `whet.toml`, and the shortest time that its dependencies allow."""

from __future__ import annotations

import asyncio
import shutil
import time
import tomllib
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import msgspec
from running import KEY, Trained, read_arguments, report

from critical_path import Ideal, TracedModels
from whet.core import Policy, RunStopped, Split, Task, Trajectory, content_key
from whet.learners.skill.trials import SECOND_TRY
from whet.rollout import skill_text
from whet.store import RunReader
from whet.training import Project, Report, Stage, StepRecord, load_config, plan, prepare, read_report, train
from whet.training.folder import STORE_FILE
from whet.training.judging import judge

SETTINGS = Path(__file__).with_name("whet.toml")
KEY_VARIABLE = "WHET_BENCH_KEY"
LATENCY = 0.05


class Named(msgspec.Struct, frozen=True):
    """As much of a policy as a gate on paper needs."""

    fingerprint: str


class WholeIdeal(Ideal):
    """Knows draws, trials, screening and gates that ask in rounds: a round needs the outcome of the one before it."""

    def __init__(self, project: Project, report: Report, folder: Path, seconds: dict[bytes, float]) -> None:
        super().__init__(project, report, folder, seconds)
        with RunReader(folder / STORE_FILE) as reader:
            played = [stored.trajectory for stored in reader.rollouts()]
            self.skills = {policy.fingerprint: policy.skill for policy in reader.policies()}
        self.samples = {(one.policy, one.task, one.sample): one for one in played}
        self.trajectories = {(policy, task): one for (policy, task, sample), one in self.samples.items() if not sample}
        self.fresh: dict[str, int] = {}

    async def finish(self) -> float:
        project, report, settings = self.project, self.report, self.project.config.train
        selection, now = project.tasks(Split.SELECTION), 0.0
        baseline = self.play_all(report.start, selection, now)
        steps = plan(project.tasks(Split.TRAIN), settings.epochs, settings.batch_size, settings.seed)
        for planned, record in zip(steps, report.steps, strict=False):  # a cap may have ended it early
            now = await self.draw_all(record, list(planned.tasks), planned.step.key, now)
            if record.candidate:
                now = await self.rule(record, selection, now)
        return max(now, baseline)

    async def draw_all(self, record: StepRecord, tasks: list[Task], step: bytes, start: float) -> float:
        settings = self.project.config.skill
        keys = [step, *(content_key("proposal", step, number) for number in range(1, settings.proposals))]
        drawn = max([await self.propose(record.current, tasks, key, start) for key in keys])
        drawn = self.tried(record, tasks, start, drawn)
        screened = tasks[: settings.screen_tasks]
        if settings.proposals > 1 and all((record.candidate, task.id, 0) in self.samples for task in screened):
            return self.play_all(record.candidate, screened, drawn)
        return drawn

    def tried(self, record: StepRecord, tasks: list[Task], start: float, merged: float) -> float:
        """Trials need the merged list, and the second tries, which need no more than the first ones.

        Edits go alone, then all that helped together, then together but for one, then but for two: each needs the one
        before it, and how many edits a policy holds says where it stands.
        """
        now = {task.id: self.play(record.current, task, start) for task in tasks}
        rounds: dict[int, list[tuple[str, Task]]] = {}
        mine = {task.id: task for task in tasks}
        for policy, task, sample in self.samples:
            if sample == SECOND_TRY and task in mine:
                if policy == record.current:
                    now[task] = self.play(policy, mine[task], now[task], SECOND_TRY)
                else:
                    rounds.setdefault(self.edits_in(policy, record), []).append((policy, mine[task]))
        rounds.pop(0, None)
        alone = rounds.pop(1, [])
        for plays in (alone, *(rounds[count] for count in sorted(rounds, reverse=True))):
            merged = max([merged, *(self.play(p, t, max(merged, now[t.id]), SECOND_TRY) for p, t in plays)])
        return merged

    def edits_in(self, policy: str, record: StepRecord) -> int:
        """How many of the step's edits, which all append, make this policy of the current one; 0 if they do not."""
        before, after = self.skills[record.current].text.rstrip(), self.skills[policy].text
        added = [part.strip() for part in after.removeprefix(before).split("\n\n") if part.strip()]
        proposed = {done.edit.content.strip() for done in record.edits}
        return len(added) if after.startswith(before) and set(added) <= proposed else 0

    async def rule(self, record: StepRecord, selection: list[Task], start: float) -> float:
        engine: Any = PaperEngine(self, start)
        candidate: Any = Named(record.candidate)
        incumbent: Any = Named(record.current)
        _, self.fresh[record.candidate] = await judge(
            engine,
            self.project.config.gate,
            selection,
            candidate,
            incumbent,
            None,
            Stage("", 0),
            first_sample=self.fresh.get(record.current, 0),
        )
        return engine.now

    def play(self, policy: str, task: Task, start: float, sample: int = 0) -> float:
        world, seed = self.project.world.fingerprint, self.project.config.train.seed
        key = content_key("rollout", world, task.id, task.fingerprint, policy, sample, seed)
        if key not in self.played:
            self.played[key] = start + self.seconds[content_key("turn", key, 0)]
        return max(start, self.played[key])


class PaperEngine:
    """Plays what was played, and counts the time."""

    def __init__(self, ideal: WholeIdeal, start: float) -> None:
        self.ideal = ideal
        self.now = start

    async def play(self, policy: Policy, task: Task, *, sample: int = 0, **_: Any) -> Trajectory:
        end = self.ideal.play(policy.fingerprint, task, self.now, sample)
        await asyncio.sleep(0)  # the whole round has begun before its first play ends
        self.now = max(self.now, end)
        return self.ideal.samples[policy.fingerprint, task.id, sample]


def shipped_before(found: Report, start: Policy) -> Sequence[str]:
    taken = [record.candidate_skill for record in found.steps if record.ruling is not None and record.ruling.new_best]
    return [skill_text(start.skill), *(skill_text(start.skill.__class__(files)) for files in taken)]


def trained(project: Project, run: Path) -> Report:
    """The report, also of a training that its cap ended."""
    try:
        return asyncio.run(train(project, run))
    except RunStopped:
        return read_report(run)


def main() -> None:
    asked = read_arguments()
    shutil.copy(asked.skill, asked.folder / "start.md")
    overrides = [
        f'target.base_url="{asked.base_url}"',
        f'optimizer.base_url="{asked.base_url}"',
        f"train.seed={asked.seed}",
        f"budget.calls={asked.budget}",
    ]
    config = load_config(SETTINGS, overrides)
    environ = {KEY_VARIABLE: KEY}
    project = prepare(config, asked.folder, environ=environ)
    models = TracedModels(environ, asked.folder)
    project = msgspec.structs.replace(project, models=models)
    run = asked.folder / "runs" / "run-1"
    began, cpu = time.perf_counter(), time.process_time()
    found = trained(project, run)
    seconds, cpu = time.perf_counter() - began, time.process_time() - cpu
    took = {salt: LATENCY * len(keys) for salt, keys in models.keys.items()}
    ideal = asyncio.run(WholeIdeal(project, found, run, took).finish())
    tables = {name: table for name, table in tomllib.loads(SETTINGS.read_text()).items() if name != "world"}
    said = [
        f"{table}.{key}={value}" for table in ("skill", "gate", "train") for key, value in tables.get(table, {}).items()
    ]
    more = {
        "ideal_seconds": ideal,
        "cpu_seconds": cpu,
        "steps": len(found.steps),
        "accepted": sum(record.ruling is not None and record.ruling.accepted for record in found.steps),
        "rulings": [
            (bool(record.ruling.accepted), record.ruling.rollouts, round(record.ruling.gain, 3))
            for record in found.steps
            if record.ruling is not None
        ],
        "fallbacks": sum(len(record.fallbacks) for record in found.steps),
        "by_purpose": {str(line.purpose): line.calls for line in found.calls},
    }
    settings = "whet train with " + ", ".join(said) + "; all else its defaults"
    shipped = (run / "best" / "SKILL.md").read_text()
    report(Trained(shipped, shipped_before(found, project.start), seconds, settings, more), "whet")


if __name__ == "__main__":
    main()
