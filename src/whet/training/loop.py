"""The training loop: play, propose, judge, keep; then test, and report.

It is a plain program. Everything in it that costs is remembered by the store, so running it again after any end goes
on where it stopped; there is no other code for resuming.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

import msgspec

from whet.core import (
    Policy,
    Priority,
    Proposal,
    Ruling,
    Score,
    Split,
    Step,
    Task,
    Trajectory,
    WhetError,
    content_key,
)
from whet.gate import mean_score, select_gate_score
from whet.learners.skill import Advisor, Demonstrator, EpochEnd, SkillLearner, Teacher
from whet.store import DecisionRow, MetaRow, PolicyRow
from whet.training.adapters import write_best
from whet.training.adapting import AdapterLearner
from whet.training.config import Config, Lever
from whet.training.judging import judge, not_worse, play_all
from whet.training.monitor import Monitor, Stage
from whet.training.records import RecordKind, Report, StepRecord, TrainingRecord
from whet.training.reporting import Finals, make_report, write_report
from whet.training.schedule import PlannedStep, plan
from whet.training.telling import told
from whet.training.workshop import Workshop


class Training:
    """The state of a training is its policies and the records so far; all else is in the store."""

    def __init__(self, workshop: Workshop, monitor: Monitor) -> None:
        project, config = workshop.project, workshop.project.config
        self._workshop = workshop
        self._engine = workshop.engine
        self._config: Config = config
        self._monitor = monitor
        self._train = project.tasks(Split.TRAIN)
        self._selection = project.tasks(Split.SELECTION)
        self._test = project.tasks(Split.TEST) if config.train.test else []
        levers = config.train.levers
        self._generations = config.adapter.generations if Lever.ADAPTER in levers else 1
        """How often the levers take turns."""
        self._plan = self._make_plan() if Lever.SKILL in levers else []
        self._learner = self._make_learner() if Lever.SKILL in levers else None
        self._adapting = AdapterLearner(workshop, monitor, self._train) if Lever.ADAPTER in levers else None
        self._start = project.start
        self._current = project.start
        self._best = project.start
        self._epoch_ago = project.start
        self._best_score: float | None = None
        self._fresh = {project.start.fingerprint: 0}
        """By policy that has competed: the first sample on selection tasks that did not get it chosen."""
        self._records: list[StepRecord] = []
        self._finals = Finals()

    def _make_plan(self) -> list[PlannedStep]:
        train = self._config.train
        epochs = train.epochs * self._generations
        return plan(self._train, epochs, train.batch_size, train.seed, train.accumulation)

    def _make_learner(self) -> SkillLearner | Demonstrator:
        project, config = self._workshop.project, self._config
        if config.skill.teacher is Teacher.DEMONSTRATIONS:
            return Demonstrator(config.skill, self._play)
        model = project.models.open("optimizer", config.optimizer, self._workshop.store, self._workshop.ledger)
        sampling, skill = config.optimizer.sampling, config.skill
        return SkillLearner(
            Advisor(model, sampling, project.prompts, skill.update, skill.skill_aware), skill, self._play
        )

    @property
    def _taught(self) -> SkillLearner | Demonstrator:
        """Whoever proposes edits; there are no steps without."""
        assert self._learner is not None
        return self._learner

    async def run(self) -> None:
        self._monitor.started(self._workshop.folder.name, len(self._plan), self._workshop.ledger)
        await self._workshop.store.write(MetaRow("steps", str(len(self._plan))))
        async with asyncio.TaskGroup() as whole:
            # Nothing waits for the starting policy's test, and only the first ruling for its selection score.
            baseline = whole.create_task(self._select_baseline())
            whole.create_task(self._play_test("test, start", self._start, Priority.BACKGROUND))
            for generation in range(1, self._generations + 1):
                await self._sharpen(generation)
                if self._adapting is not None:
                    self._finals.skilled = self._finals.skilled or self._best
                    await self._adapt(self._adapting, generation)
            await baseline
            await self._let_the_last_compete()
            skilled = self._finals.skilled or self._start
            named = (("start", self._start), ("best", self._best), ("last", self._current), ("skilled", skilled))
            policies = {policy.fingerprint: (name, policy) for name, policy in reversed(named)}
            for name, policy in policies.values():
                whole.create_task(self._play_test(f"test, {name}", policy, Priority.CRITICAL))

    async def _sharpen(self, generation: int) -> None:
        """The skill lever's steps of one generation."""
        epochs = self._config.train.epochs
        for planned in self._plan:
            if (planned.step.epoch - 1) // epochs + 1 == generation:
                await self._step(planned)
                if planned.ends_epoch:
                    await self._end_epoch(planned.step)
                    await self._tidy(planned.step)

    async def _adapt(self, learner: AdapterLearner, generation: int) -> None:
        """What the agent did becomes weights, if the gate takes them."""
        before = self._current
        made = await learner.propose(before, generation)
        name = f"generation {generation}: gate"
        if self._config.adapter.distill:
            # What is gained is the skill's share of every prompt, so it is enough that nothing is lost.
            measured = await self._rule(made.proposal, before, name, rule="off")
            ruling = None if measured is None else not_worse(measured, self._best_score)
        else:
            ruling = await self._judged(made.proposal, before, name)
        self._take(made.proposal, ruling)
        epoch, total = generation * self._config.train.epochs, len(self._plan)
        step = Step(0, total, epoch, content_key("generation", self._config.train.seed, generation))
        await self._record(RecordKind.ADAPTER, step, made.played, before, made.proposal, ruling, training=made.training)

    async def finish(self, stopped: WhetError | None = None) -> Report:
        """Write down what there is: the best skill, and the report."""
        self._finals.start, self._finals.best, self._finals.last = self._start, self._best, self._current
        why = stopped.message if stopped else ""
        report = make_report(self._workshop, self._finals, self._records, planned=len(self._plan), stopped=why)
        write_best(self._best, self._workshop.folder, self._workshop.project.shelf)
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
        step, before = planned.step, self._parent(planned.step)
        rollouts = self._monitor.stage(f"step {step.number}: play", len(planned.tasks))
        async with asyncio.TaskGroup() as plays:
            evidence = [plays.create_task(self._play_one(before, task, rollouts)) for task in planned.tasks]
            proposing = plays.create_task(self._propose(before, evidence, planned))
        self._monitor.ended(rollouts)
        proposal = proposing.result()
        played = [task.result() for task in evidence]
        ruling = await self._judged(proposal, before, f"step {step.number}: gate")
        self._take(proposal, ruling)
        self._current = await self._taught.conclude(self._current, proposal, ruling, played, step)
        score = mean_score((one.hard, one.soft) for one in played)
        await self._record(RecordKind.STEP, step, score, before, proposal, ruling)

    async def _end_epoch(self, step: Step) -> None:
        """From the second epoch on, compare with an epoch ago; guidance is put in as the settings say."""
        previous, self._epoch_ago = self._epoch_ago, self._current
        if step.epoch < 2 or not (self._config.skill.slow_update or self._config.skill.memory):
            return
        before = self._current
        end = EpochEnd(step.epoch, content_key("epoch", step.key), previous, before)
        proposal = await self._taught.end_epoch(end, self._train)
        ruling = None
        if self._config.skill.slow_gate:
            ruling = await self._judged(proposal, before, f"epoch {step.epoch}: gate")
            self._take(proposal, ruling)
        elif proposal.candidate is not None:
            self._current = proposal.candidate
        self._epoch_ago = self._current
        if self._config.skill.slow_update:
            await self._record(RecordKind.SLOW_UPDATE, step, Score(0.0, 0.0, 0), before, proposal, ruling)

    async def _tidy(self, step: Step) -> None:
        """What can go without loss goes: of equal scores, the shorter skill wins."""
        if not self._config.skill.tidy:
            return
        before = self._current
        proposal = await self._taught.tidy(before, content_key("tidy", step.key))
        measured = await self._rule(proposal, before, f"epoch {step.epoch}: tidy", rule="off")
        ruling = None if measured is None else not_worse(measured, self._best_score)
        self._take(proposal, ruling)
        await self._record(RecordKind.TIDY, step, Score(0.0, 0.0, 0), before, proposal, ruling)

    async def _let_the_last_compete(self) -> None:
        """A last policy that no ruling has seen is played on the selection tasks once, and wins if it scores higher."""
        last = self._current
        if last.fingerprint in self._fresh:
            return
        step = self._plan[-1].step if self._plan else Step(0, 0, 0, content_key("last", self._config.train.seed))
        proposal = Proposal(last)
        ruling = await self._rule(proposal, self._best, "selection, last")
        if ruling is not None and self._beats_the_best(ruling):
            self._best, self._best_score = last, ruling.candidate
        await self._record(RecordKind.LAST, step, Score(0.0, 0.0, 0), self._best, proposal, ruling)

    async def _play(self, policy: Policy, tasks: Sequence[Task], sample: int) -> list[Trajectory]:
        """Train tasks, for a learner that wants to see more."""
        stage = self._monitor.stage("compare", len(tasks))
        played = await play_all(self._engine, policy, tasks, stage, sample=sample)
        self._monitor.ended(stage)
        return played

    async def _play_one(self, policy: Policy, task: Task, stage: Stage) -> Trajectory:
        played = await self._engine.play(policy, task)
        stage.done += 1
        return played

    async def _propose(
        self, incumbent: Policy, evidence: Sequence[asyncio.Task[Trajectory]], planned: PlannedStep
    ) -> Proposal:
        stage = self._monitor.stage(f"step {planned.step.number}: reflect", 1)
        proposal = await self._taught.propose(incumbent, planned.tasks, evidence, planned.step)
        stage.done = 1
        self._monitor.ended(stage)
        return proposal

    def _parent(self, step: Step) -> Policy:
        """Which policy a step plays, and goes on from."""
        return self._current

    async def _judged(self, proposal: Proposal, incumbent: Policy, name: str) -> Ruling | None:
        """The ruling on a candidate that would become current."""
        return await self._rule(proposal, incumbent, name)

    async def _rule(self, proposal: Proposal, incumbent: Policy, name: str, rule: str = "") -> Ruling | None:
        candidate = proposal.candidate
        if candidate is None or candidate.fingerprint == incumbent.fingerprint:
            return None
        stage = self._monitor.stage(name, len(self._selection))
        gate = msgspec.structs.replace(self._config.gate, rule=rule or self._config.gate.rule)
        ruling, fresh = await judge(
            self._engine,
            gate,
            self._selection,
            candidate,
            incumbent,
            self._best_score,
            stage,
            first_sample=self._fresh.get(incumbent.fingerprint, 0),
        )
        self._monitor.ended(stage)
        self._fresh[candidate.fingerprint] = fresh
        return ruling

    def _beats_the_best(self, ruling: Ruling) -> bool:
        """A rule that tests says so itself; of the others, the score does."""
        return ruling.accepted if self._config.gate.rule == "paired" else ruling.candidate > ruling.incumbent

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

    async def _record(
        self,
        kind: RecordKind,
        step: Step,
        played: Score,
        before: Policy,
        proposal: Proposal,
        ruling: Ruling | None,
        *,
        training: TrainingRecord | None = None,
    ) -> None:
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
            kind=kind,
            notes=proposal.notes,
            budget=proposal.budget,
            candidate_skill=proposal.candidate.skill.files if proposal.candidate else {},
            training=training,
        )
        self._records.append(record)
        key = content_key("step", step.key, kind)
        await self._workshop.store.write(DecisionRow(key, "step", f"{len(self._records):06d}", self._now(), record))
        self._monitor.line(told(record, len(self._plan)))

    def _score(self, played: Sequence[Trajectory]) -> float:
        mean = mean_score((trajectory.hard, trajectory.soft) for trajectory in played)
        return select_gate_score(mean.hard, mean.soft, self._config.gate.metric, self._config.gate.mix)

    def _now(self) -> float:
        return self._workshop.project.clock.wall()
