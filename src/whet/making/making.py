"""A making from its beginning to its audit: proposals, scenarios side by side, the folder, what is sound of it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

import msgspec

from whet.core import (
    BudgetExhausted,
    Clock,
    Model,
    RunStopped,
    Sampling,
    Split,
    WhetError,
    content_key,
    fingerprint,
)
from whet.making.answers import Sketch
from whet.making.asking import Asker, GivenUp
from whet.making.folder import STORE, content_in, known_in, put
from whet.making.parts import Parts, SoundTask
from whet.making.stages import LeftOut, Line, prompts_content
from whet.making.trying import Bench
from whet.models import Ledger, Models, RoleSettings
from whet.store import DecisionRow, RunStore, open_run
from whet.training import Config, Monitor
from whet.training.probing import TaskAudit, audit_verifier
from whet.worlds import held
from whet.worlds.awm import AwmSettings, AwmWorld, ScenarioReport, admit, normal_name

ENOUGH_TOKENS = 16_000
"""For an answer, where `optimizer.max_tokens` is left as it is: a program is longer than an edit of a skill."""


class Order(msgspec.Struct, frozen=True):
    """What is to be made."""

    theme: str
    tasks: int = 10
    scenarios: int = 1
    corrections: int = 3


class MadeScenario(msgspec.Struct, frozen=True):
    name: str
    tasks: int
    """Those that came about."""
    left_out: tuple[LeftOut, ...] = ()
    given_up: str = ""
    """Why there is nothing of it in the folder; empty where there is."""


class Made(msgspec.Struct, frozen=True):
    folder: str
    scenarios: tuple[MadeScenario, ...]
    reports: tuple[ScenarioReport, ...]
    """What admission found, of those that were made."""
    audit: tuple[TaskAudit, ...]
    sound: int
    """Tasks that were admitted, and that the audit has nothing against."""
    stopped: str = ""
    """Why it ended before its end; the same order goes on."""


class Maker(msgspec.Struct, frozen=True):
    """Who makes, and where it is written down."""

    model: Model
    sampling: Sampling
    store: RunStore
    clock: Clock
    monitor: Monitor


class _Before(msgspec.Struct, frozen=True):
    """What was in the folder when a making began: it goes on by this, not by what it has itself put there since."""

    known: tuple[Sketch, ...]


class _Wrote(msgspec.Struct, frozen=True):
    by: str
    content: str
    """Empty while it is being written."""


@asynccontextmanager
async def open_maker(
    config: Config, models: Models, folder: Path, clock: Clock, monitor: Monitor
) -> AsyncGenerator[Maker]:
    """The optimizer of a project, with a store in the folder that worlds are made in."""
    models.check("optimizer", config.optimizer, config.budget)
    (folder / STORE).parent.mkdir(parents=True, exist_ok=True)
    store = open_run(folder / STORE, clock)
    try:
        ledger = Ledger(config.budget, store.spending(), clock)
        model = models.open("optimizer", config.optimizer, store, ledger)
        monitor.started(f"making in {folder}", 0, ledger)
        yield Maker(model, sampling_of(config.optimizer), store, clock, monitor)
    finally:
        await models.aclose()
        await store.aclose()


def sampling_of(optimizer: RoleSettings) -> Sampling:
    sampling = optimizer.sampling
    if sampling.max_tokens != RoleSettings().max_tokens:
        return sampling
    return msgspec.structs.replace(sampling, max_tokens=ENOUGH_TOKENS)


async def make_worlds(order: Order, folder: Path, maker: Maker) -> Made:
    """Make what is ordered, or go on with it; and find out what of it is sound."""
    making = _Making(order, folder, maker)
    scenarios = await making.scenarios()
    names = [one.name for one in scenarios if not one.given_up]
    reports, audit = await _examined(folder, names, maker.monitor) if names else ((), ())
    sound = sum(task.sound for task in audit)
    return Made(str(folder), tuple(scenarios), reports, audit, sound, str(making.stopped or ""))


class _Making:
    def __init__(self, order: Order, folder: Path, maker: Maker) -> None:
        self._order = order
        self._folder = folder
        self._maker = maker
        self._theme = " ".join(order.theme.split())
        self._identity = fingerprint(
            "making", self._theme, str(maker.model.ref), msgspec.to_builtins(maker.sampling), prompts_content()
        )
        self._writing = asyncio.Lock()
        self.stopped: WhetError | None = None

    async def scenarios(self) -> list[MadeScenario]:
        bench = Bench()
        maker, order = self._maker, self._order
        asker = Asker(maker.model, maker.sampling, maker.store, maker.clock, order.corrections)
        line = Line(asker, bench, maker.monitor, order.corrections)
        try:
            sketches, given_up = await self._sketches(line)
            async with asyncio.TaskGroup() as making:
                made = [making.create_task(self._scenario(line, sketch)) for sketch in sketches]
        finally:
            await bench.aclose()
        return [*(one.result() for one in made), *given_up]

    async def _sketches(self, line: Line) -> tuple[list[Sketch], list[MadeScenario]]:
        """One after another: each must be unlike those before it."""
        known = await self._known()
        sketches: list[Sketch] = []
        given_up: list[MadeScenario] = []
        for number in range(1, self._order.scenarios + 1):
            try:
                sketches.append(await line.sketch(self._theme, number, [*known, *sketches]))
                self._maker.monitor.line(f"scenario {number}: {sketches[-1].name}")
            except GivenUp as end:
                given_up.append(self._ended(f"scenario {number}", str(end)))
            except (BudgetExhausted, RunStopped) as stop:
                self.stopped = stop
                break
        return sketches, given_up

    async def _known(self) -> tuple[Sketch, ...]:
        key = content_key("make before", self._identity)
        before = self._maker.store.decision(key, _Before)
        if before is None:
            before = _Before(known_in(self._folder))
            await self._write(key, "make_before", self._theme, before)
        return before.known

    async def _scenario(self, line: Line, sketch: Sketch) -> MadeScenario:
        name = normal_name(sketch.name)
        try:
            parts, texts, tools = await line.parts(sketch, self._order.tasks)
        except GivenUp as end:
            return self._ended(name, str(end))
        except (BudgetExhausted, RunStopped) as stop:
            self.stopped = stop
            return self._ended(name, stop.message)
        sound, left_out = await self._tasks(line, parts, texts, tools)
        self._maker.monitor.line(f"{name}: {len(sound)} of {len(texts)} tasks sound")
        if not sound:
            return MadeScenario(name, 0, left_out, "none of its tasks came about")
        refused = await self._put(msgspec.structs.replace(parts, tasks=sound))
        return MadeScenario(name, len(sound), left_out, refused)

    async def _tasks(
        self, line: Line, parts: Parts, texts: Sequence[str], tools: str
    ) -> tuple[tuple[SoundTask, ...], tuple[LeftOut, ...]]:
        async def one(text: str) -> SoundTask | LeftOut:
            try:
                return await line.task(parts, tools, text)
            except GivenUp as end:
                return LeftOut(text, str(end))
            except (BudgetExhausted, RunStopped) as stop:
                self.stopped = stop
                return LeftOut(text, stop.message)

        async with asyncio.TaskGroup() as trying:
            tried = [trying.create_task(one(text)) for text in texts]
        results = [task.result() for task in tried]
        return (
            tuple(one for one in results if isinstance(one, SoundTask)),
            tuple(one for one in results if isinstance(one, LeftOut)),
        )

    async def _put(self, parts: Parts) -> str:
        """Write a scenario into the folder. Says why not, where one of its name there is not of this making."""
        name = normal_name(parts.sketch.name)
        key = content_key("make wrote", name)
        async with self._writing:
            there, wrote = content_in(self._folder, name), self._maker.store.decision(key, _Wrote)
            if there and (wrote is None or wrote.by != self._identity):
                return "another scenario of this name has come into the folder meanwhile"
            if there and wrote is not None and wrote.content not in ("", there):
                self._maker.monitor.line(f"{name}: left as it is, since it was changed by hand")
                return ""
            await self._write(key, "make_wrote", name, _Wrote(self._identity, ""))
            put(self._folder, parts)
            await self._write(key, "make_wrote", name, _Wrote(self._identity, content_in(self._folder, name)))
        return ""

    async def _write(self, key: bytes, kind: str, label: str, body: msgspec.Struct) -> None:
        await self._maker.store.write(DecisionRow(key, kind, label, self._maker.clock.wall(), body))

    def _ended(self, name: str, why: str) -> MadeScenario:
        self._maker.monitor.line(f"{name}: given up: {why}")
        return MadeScenario(name, 0, given_up=why)


async def _examined(
    folder: Path, names: Sequence[str], monitor: Monitor
) -> tuple[tuple[ScenarioReport, ...], tuple[TaskAudit, ...]]:
    """Admission, as for any folder; then agents that are none, on what was admitted."""
    stage = monitor.stage("admission", len(names))

    def done(report: ScenarioReport) -> None:
        stage.done += 1

    admission = await admit(folder, only=names, done=done)
    monitor.ended(stage)
    reports = tuple(admission.scenarios[name] for name in names)
    admitted = tuple(report.name for report in reports if report.admitted)
    if not admitted:
        return reports, ()
    world = AwmWorld(AwmSettings(path=".", scenarios=admitted), folder, None)
    tasks = [task for split in Split for task in world.tasks(split)]
    stage = monitor.stage("audit", len(tasks))
    async with held(world):
        audit = await audit_verifier(world, tasks)
    monitor.ended(stage)
    return reports, tuple(audit)
