"""The training loop: play, propose, judge, keep; then test, and report.

It is a plain program. Everything in it that costs is remembered by the store, so running it again after any end goes
on where it stopped; there is no other code for resuming.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Sequence
from pathlib import Path

from whet.core import (
    BudgetExhausted,
    Policy,
    Priority,
    Proposal,
    Ruling,
    RunStopped,
    Split,
    Task,
    Trajectory,
    WhetError,
    cause_of,
    content_key,
)
from whet.gate import mean_score, select_gate_score
from whet.learners.skill import SkillLearner
from whet.store import DecisionRow, PolicyRow
from whet.training.config import Config
from whet.training.folder import BEST
from whet.training.judging import judge, play_all
from whet.training.monitor import Monitor, Silent, Stage
from whet.training.records import Report, StepRecord
from whet.training.reporting import Finals, make_report, write_report
from whet.training.schedule import PlannedStep, plan
from whet.training.skills import write_skill
from whet.training.workshop import Project, Workshop, open_workshop


async def train(project: Project, folder: Path, monitor: Monitor | None = None) -> Report:
    """Train, or go on training, the run at `folder`.

    Raises RunStopped after a budget or an interrupt ended it early: what was learned until then is in the folder.
    """
    async with open_workshop(project, folder) as workshop:
        training = Training(workshop, monitor or Silent())
        try:
            await training.run()
        except BaseExceptionGroup as group:
            reason = cause_of(group)
            if not isinstance(reason, BudgetExhausted | RunStopped):
                raise reason from group
            await training.finish(stopped=reason)
            raise RunStopped(reason.message, hint=reason.hint) from group
        return await training.finish()


class Training:
    """The state of a training is its two policies and the steps so far; all else is in the store."""

    def __init__(self, workshop: Workshop, monitor: Monitor) -> None:
        project = workshop.project
        self._workshop = workshop
        self._engine = workshop.engine
        self._config: Config = project.config
        self._monitor = monitor
        self._train = project.tasks(Split.TRAIN)
        self._selection = project.tasks(Split.SELECTION)
        self._test = project.tasks(Split.TEST) if project.config.train.test else []
        self._plan = plan(
            self._train, self._config.train.epochs, self._config.train.batch_size, self._config.train.seed
        )
        optimizer = project.models.open("optimizer", self._config.optimizer, workshop.store, workshop.ledger)
        self._learner = SkillLearner(optimizer, self._config.optimizer.sampling, self._config.skill)
        self._start = project.start
        self._current = project.start
        self._best = project.start
        self._best_score: float | None = None
        self._steps: list[StepRecord] = []
        self._finals = Finals()

    async def run(self) -> None:
        self._monitor.started(self._workshop.folder.name, len(self._plan), self._workshop.ledger)
        async with asyncio.TaskGroup() as whole:
            # Nothing waits for the starting policy's test, and only the first ruling for its selection score.
            baseline = whole.create_task(self._select_baseline())
            whole.create_task(self._play_test("test, start", self._start, Priority.BACKGROUND))
            for planned in self._plan:
                await self._step(planned)
            await baseline
            named = (("start", self._start), ("best", self._best), ("last", self._current))
            policies = {policy.fingerprint: (name, policy) for name, policy in reversed(named)}
            for name, policy in policies.values():
                whole.create_task(self._play_test(f"test, {name}", policy, Priority.CRITICAL))

    async def finish(self, stopped: WhetError | None = None) -> Report:
        """Write down what there is: the best skill, and the report."""
        self._finals.start, self._finals.best, self._finals.last = self._start, self._best, self._current
        report = make_report(
            self._workshop,
            self._finals,
            self._steps,
            planned=len(self._plan),
            stopped=stopped.message if stopped else "",
        )
        write_skill(self._best.skill, self._workshop.folder / BEST)
        write_report(report, self._workshop.folder)
        await self._workshop.store.write(
            PolicyRow(self._best), DecisionRow(content_key("report"), "report", "", self._now(), report)
        )
        return report

    async def _select_baseline(self) -> None:
        stage = self._monitor.stage("selection, start", len(self._selection))
        played = await play_all(self._engine, self._start, self._selection, stage)
        self._monitor.ended(stage)
        self._finals.selection[self._start.fingerprint] = played
        score = self._score(played)
        if self._best_score is None:
            self._monitor.score(score, score)
            self._monitor.line(f"start: {score:.4f} on {len(self._selection)} selection tasks")

    async def _play_test(self, name: str, policy: Policy, priority: Priority) -> None:
        """What is being played in the background already is shared, not played twice."""
        if not self._test:
            return
        stage = self._monitor.stage(name, len(self._test))
        played = await play_all(self._engine, policy, self._test, stage, priority=priority)
        self._finals.test[policy.fingerprint] = played
        self._monitor.ended(stage)

    async def _step(self, planned: PlannedStep) -> None:
        step, before = planned.step, self._current
        rollouts = self._monitor.stage(f"step {step.number}: play", len(planned.tasks))
        async with asyncio.TaskGroup() as plays:
            evidence = [plays.create_task(self._play(before, task, rollouts)) for task in planned.tasks]
            proposing = plays.create_task(self._propose(before, evidence, planned))
        self._monitor.ended(rollouts)
        proposal = proposing.result()
        ruling = None
        if proposal.candidate is not None:
            ruling = await self._rule(proposal.candidate, before, planned)
        self._take(proposal, ruling)
        played = mean_score((task.result().hard, task.result().soft) for task in evidence)
        record = StepRecord(
            number=step.number,
            epoch=step.epoch,
            played=played,
            current=before.fingerprint,
            candidate=proposal.candidate.fingerprint if proposal.candidate else "",
            edits=proposal.edits,
            reasoning=proposal.reasoning,
            patterns=proposal.patterns,
            skipped=proposal.skipped,
            fallbacks=proposal.fallbacks,
            ruling=ruling,
            candidate_skill=proposal.candidate.skill.files if proposal.candidate else {},
        )
        self._steps.append(record)
        await self._workshop.store.write(
            DecisionRow(content_key("step", step.key), "step", f"{step.number:06d}", self._now(), record)
        )
        self._monitor.line(_told(record, len(self._plan)))

    async def _play(self, policy: Policy, task: Task, stage: Stage) -> Trajectory:
        played = await self._engine.play(policy, task)
        stage.done += 1
        return played

    async def _propose(
        self, incumbent: Policy, evidence: Sequence[Awaitable[Trajectory]], planned: PlannedStep
    ) -> Proposal:
        stage = self._monitor.stage(f"step {planned.step.number}: reflect", 1)
        proposal = await self._learner.propose(incumbent, evidence, planned.step)
        stage.done = 1
        self._monitor.ended(stage)
        return proposal

    async def _rule(self, candidate: Policy, incumbent: Policy, planned: PlannedStep) -> Ruling:
        stage = self._monitor.stage(f"step {planned.step.number}: gate", len(self._selection))
        ruling = await judge(
            self._engine, self._config.gate, self._selection, candidate, incumbent, self._best_score, stage
        )
        self._monitor.ended(stage)
        return ruling

    def _take(self, proposal: Proposal, ruling: Ruling | None) -> None:
        if ruling is None or proposal.candidate is None:
            return
        if self._best_score is None:
            self._best_score = ruling.incumbent
        current = ruling.incumbent
        if ruling.accepted:
            self._current, current = proposal.candidate, ruling.candidate
        if ruling.new_best:
            self._best, self._best_score = proposal.candidate, ruling.candidate
        self._monitor.score(current, self._best_score)

    def _score(self, played: Sequence[Trajectory]) -> float:
        mean = mean_score((trajectory.hard, trajectory.soft) for trajectory in played)
        return select_gate_score(mean.hard, mean.soft, self._config.gate.metric, self._config.gate.mix)

    def _now(self) -> float:
        return self._workshop.project.clock.wall()


def _told(record: StepRecord, total: int) -> str:
    head = f"step {record.number}/{total}: played {record.played.hard:.3f}"
    if record.ruling is None:
        return f"{head}, nothing to propose ({record.skipped})"
    changed = sum(edit.status.changed for edit in record.edits)
    verb = "accepted" if record.ruling.accepted else "rejected"
    return f"{head}, {changed} {'edit' if changed == 1 else 'edits'} {verb}: {record.ruling.reason}"
