"""The adapter lever in a training: play, pick, train, assess. The gate and the records are the training's own.

Each part is remembered by the store, or by the job's folder: plays under their keys, the trained weights under the
content of what they were ordered from.
"""

from __future__ import annotations

import asyncio
import shutil
from collections import Counter
from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path
from random import Random

import msgspec

from whet.core import (
    ConfigError,
    Policy,
    Proposal,
    Purpose,
    Score,
    Task,
    ToolSpec,
    Trajectory,
    fingerprint,
    seed_from,
)
from whet.gate import mean_score, paired_interval
from whet.learners.adapter import (
    AdapterSettings,
    Curated,
    Example,
    Progress,
    TrainedAdapter,
    TrainingOrder,
    best_condition,
    curate,
    examples_of,
    examples_of_chat,
    job_folder,
    read_chats,
    train_adapter,
)
from whet.models.embedded import EmbeddedModel
from whet.training.adapters import ADAPTERS, FILE
from whet.training.exploring import EXPLORED, explore, require_explorable
from whet.training.judging import play_all
from whet.training.monitor import Monitor
from whet.training.records import TrainingRecord
from whet.training.workshop import Project, Workshop

JOBS = "jobs"
"""The folder of a run in which adapters are trained."""


class Adapted(msgspec.Struct, frozen=True):
    """What one generation came to."""

    proposal: Proposal
    training: TrainingRecord | None
    played: Score
    """What it learned from scored."""


class AdapterLearner:
    """Makes a candidate of a policy by training LoRA weights on what it did."""

    def __init__(self, workshop: Workshop, monitor: Monitor, tasks: Sequence[Task]) -> None:
        project = workshop.project
        self._workshop = workshop
        self._monitor = monitor
        self._settings: AdapterSettings = project.config.adapter
        self._seed = project.config.train.seed
        self._model = require_trainable(project)
        self._tasks = {task.id: task for task in tasks}
        self._learn, self._held_out = split_apart(tasks, self._settings.held_out, self._seed)

    async def propose(self, current: Policy, generation: int) -> Adapted:
        played = await self._collect(current, generation)
        played.append(await self._explored(generation))
        picked = curate([try_ for tries in played for try_ in tries], self._settings)
        score = mean_score((one.hard, one.soft) for tries in played for one in tries if one.policy != EXPLORED)
        if not picked.picked and not self._settings.data:
            return Adapted(Proposal(None, skipped="skip_no_examples"), None, score)
        learner = self._without_what_it_learned(current) if self._settings.distill else current
        order = await self._order(learner.with_adapter(None), picked, generation)
        trained = await self._train(order, generation)
        candidate = learner.with_adapter(trained.ref)
        assessed = await self._assess(candidate, generation)
        record = self._record(current, picked, played, order, trained, assessed, generation)
        return Adapted(Proposal(candidate, reasoning=_reasons(record)), record, score)

    async def _collect(self, current: Policy, generation: int) -> list[list[Trajectory]]:
        """By try: the policy's own first, which a step may have played already; the others vary."""
        engine, settings = self._workshop.engine, self._settings
        sampling = msgspec.structs.replace(current.sampling, temperature=settings.temperature)
        varied = msgspec.structs.replace(current, sampling=sampling)
        stage = self._monitor.stage(f"generation {generation}: play", len(self._learn) * settings.samples)
        async with asyncio.TaskGroup() as plays:
            tries = [
                plays.create_task(
                    play_all(engine, current if sample == 0 else varied, self._learn, stage, sample=sample)
                )
                for sample in range(settings.samples)
            ]
        self._monitor.ended(stage)
        return [one.result() for one in tries]

    async def _explored(self, generation: int) -> list[Trajectory]:
        count, world = self._settings.explore, self._workshop.project.world
        if not count:
            return []
        require_explorable(world, self._learn)
        return await explore(world, self._learn, count, seed_from("explore", self._seed, generation))

    def _without_what_it_learned(self, current: Policy) -> Policy:
        """The skill goes back to what it was at the start: what was learned as text is to become weights."""
        return current.with_skill(self._workshop.project.start.skill)

    async def _order(self, learner: Policy, picked: Curated, generation: int) -> TrainingOrder:
        """What is to be trained, in the tokens of whoever serves it."""
        conditioned = self._settings.conditioned
        examples = [
            example
            for tried in picked.picked
            for example in await examples_of(
                tried, learner, await self._tools(tried.task), self._model, conditioned=conditioned
            )
        ]
        return TrainingOrder(
            base_file=str(self._model.file),
            base=self._model.base,
            examples=(*examples, *await self._from_outside(learner)),
            settings=self._settings.training,
            seed=seed_from("adapter", self._seed, generation),
            condition=best_condition(picked.picked, conditioned=conditioned),
        )

    async def _tools(self, task: str) -> tuple[ToolSpec, ...]:
        session = await self._workshop.project.world.open(self._tasks[task], seed=0)
        try:
            return tuple(session.tools)
        finally:
            await session.close()

    async def _from_outside(self, learner: Policy) -> list[Example]:
        if not self._settings.data:
            return []
        path = self._workshop.project.base_dir / self._settings.data
        return [
            example
            for chat in read_chats(path)
            for example in await examples_of_chat(chat.messages, learner, self._model, source=path.name, name=chat.name)
        ]

    async def _train(self, order: TrainingOrder, generation: int) -> TrainedAdapter:
        stage = self._monitor.stage(f"generation {generation}: train", 0)

        def tell(progress: Progress) -> None:
            stage.total, stage.done = progress.of, progress.step

        folder = job_folder(order, self._workshop.folder / JOBS)
        trained = await train_adapter(order, folder, tell)
        self._monitor.ended(stage)
        _shelve(trained, self._workshop.folder / ADAPTERS)
        return trained

    async def _assess(self, candidate: Policy, generation: int) -> Score | None:
        """Played through the same renderer and the same server as users', on train tasks it has not learned from."""
        if not self._held_out:
            return None
        stage = self._monitor.stage(f"generation {generation}: assess", len(self._held_out))
        played = await play_all(self._workshop.engine, candidate, self._held_out, stage, purpose=Purpose.ASSESS)
        self._monitor.ended(stage)
        return mean_score((one.hard, one.soft) for one in played)

    def _record(
        self,
        current: Policy,
        picked: Curated,
        played: Sequence[Sequence[Trajectory]],
        order: TrainingOrder,
        trained: TrainedAdapter,
        assessed: Score | None,
        generation: int,
    ) -> TrainingRecord:
        tries = [one for sample in played for one in sample if one.policy != EXPLORED]
        softs = [one.soft for one in tries]
        return TrainingRecord(
            generation=generation,
            adapter=trained.ref.fingerprint,
            data=fingerprint("examples", order.examples),
            played=len(tries),
            picked=len(order.examples),
            sources=dict(Counter(_source(example.source, current) for example in order.examples)),
            diversity=picked.report.diversity,
            valid=sum(_is_valid(one) for one in tries) / len(tries),
            mean=sum(softs) / len(softs),
            best=max(softs),
            interval=paired_interval(softs),
            assessed=assessed,
            # What follows from how fast the machine was is told as it happens, and is no part of what came out.
            metrics=msgspec.structs.replace(trained.metrics, seconds={}, resumed_at=0),
            distilled=self._settings.distill,
        )


def _source(source: str, current: Policy) -> str:
    return "its own play" if len(source) == len(current.fingerprint) else source


def _is_valid(played: Trajectory) -> bool:
    """As far as the world says; a score above 0 is valid in any case."""
    return bool(played.verdict and played.verdict.facts.get("valid", played.verdict.soft > 0.0))


def _reasons(record: TrainingRecord) -> str:
    metrics = record.metrics
    loss = f"loss {metrics.first_loss:.3f} to {metrics.last_loss:.3f} in {metrics.steps} updates"
    return f"learned from {record.picked} of {record.played} tries, {loss}"


def split_apart(tasks: Sequence[Task], share: float, seed: int) -> tuple[list[Task], list[Task]]:
    """Tasks to learn from, and tasks to assess with; the same in every generation, each in the order of `tasks`."""
    order = list(range(len(tasks)))
    Random(seed_from("held out", seed)).shuffle(order)
    count = min(len(tasks) - 1, round(share * len(tasks)))
    kept = set(order[:count])
    return (
        [task for place, task in enumerate(tasks) if place not in kept],
        [task for place, task in enumerate(tasks) if place in kept],
    )


def _shelve(trained: TrainedAdapter, shelf: Path) -> None:
    """Put an adapter where it is looked for: whole, under its fingerprint."""
    place = shelf / trained.ref.fingerprint
    if place.exists():
        return
    beside = shelf / f".{trained.ref.fingerprint}.part"
    shutil.rmtree(beside, ignore_errors=True)
    shutil.copytree(trained.folder, beside)
    shutil.copyfile(trained.lora, beside / FILE)
    beside.rename(place)


def require_trainable(project: Project) -> EmbeddedModel:
    """The model whose weights adapters are trained for. Raises ConfigError where they cannot be."""
    target = project.config.target
    model = project.models.embedded("target", target)
    if model is None:
        raise ConfigError(
            f"adapters cannot be trained for target.model = {target.model!r}",
            hint='Use a model whose weights are here: "local/smollm2-135m", or "local/path/to/model.gguf".',
        )
    if find_spec("torch") is None:
        raise ConfigError("training adapters needs the extra `train`", hint="pip install 'whet[train]'")
    return model
