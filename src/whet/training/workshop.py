"""A project made ready for work: first everything that can be wrong is checked, then the store is opened."""

from __future__ import annotations

import os
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import msgspec

from whet.core import (
    Clock,
    ConfigError,
    Model,
    ModelRef,
    ModelReply,
    ModelRequest,
    Policy,
    Priority,
    Purpose,
    Split,
    SystemClock,
    Task,
    World,
    fingerprint,
)
from whet.learners.skill import Prompts
from whet.models import Ledger, Models, Prices, RecordedModel
from whet.models.transport import Transport
from whet.rollout import Engine
from whet.store import MetaRow, RunStore, open_run
from whet.training.adapters import ADAPTERS, Shelf
from whet.training.config import Config, what_matters
from whet.training.folder import CONFIG_COPY, STORE_FILE
from whet.training.loading import dump_toml
from whet.training.published import published_policy
from whet.training.skills import read_skill, replace_text
from whet.worlds import held, load_world, require_tasks


class Project(msgspec.Struct, frozen=True):
    """A checked configuration with its world and its starting policy. Nothing has been written or sent."""

    config: Config
    base_dir: Path
    world: World
    start: Policy
    models: Models
    judge: LateModel
    optimizer: ModelRef | None
    prompts: Prompts
    clock: Clock
    shelf: Shelf
    """Where adapters are."""
    environ: Mapping[str, str]

    def tasks(self, split: Split) -> list[Task]:
        return list(require_tasks(self.world, split))

    def published(self, name: str) -> Policy:
        """A policy of the registry: the active one, or a record's by its id."""
        return published_policy(
            name, self.world.name, self.config.target, self.models, self.shelf, self.environ, self.clock
        )

    def settings(self) -> dict[str, Any]:
        """What the results depend on: the configuration and the content that it names."""
        content = {
            "skill content": self.start.skill.fingerprint,
            "starting policy": self.start.fingerprint if self.config.target.policy else "",
            "world content": self.world.fingerprint,
            "target model": str(self.start.model),
            "optimizer model": str(self.optimizer) if self.optimizer else "",
            "prompts": fingerprint("prompts", self.prompts.own),
        }
        return msgspec.json.decode(msgspec.json.encode(what_matters(self.config) | content))


class Workshop(msgspec.Struct, frozen=True):
    """An opened run: everything that plays and pays."""

    project: Project
    folder: Path
    store: RunStore
    ledger: Ledger
    engine: Engine
    target: RecordedModel


class LateModel:
    """Stands for the judge while worlds are loaded, before there is a store that could record it."""

    def __init__(self, ref: ModelRef) -> None:
        self._ref = ref
        self._model: Model | None = None

    @property
    def ref(self) -> ModelRef:
        return self._ref

    def is_now(self, model: Model) -> None:
        self._model = model

    async def complete(
        self, request: ModelRequest, *, purpose: Purpose, salt: bytes = b"", priority: Priority = Priority.CRITICAL
    ) -> ModelReply:
        if self._model is None:
            raise ConfigError("this world needs a judge", hint="Set judge.model.")
        return await self._model.complete(request, purpose=purpose, salt=salt, priority=priority)


def prepare(
    config: Config,
    base_dir: Path,
    *,
    environ: Mapping[str, str] | None = None,
    clock: Clock | None = None,
    transport: Transport | None = None,
    agent: bool = True,
) -> Project:
    """Check everything that a user could have got wrong. Raises UserError.

    Without `agent`, only the world and its judge will be asked anything, so the other models need not be reachable.
    """
    clock = clock or SystemClock()
    environ = os.environ if environ is None else environ
    shelf = Shelf()
    models = Models(
        environ=environ,
        base_dir=base_dir,
        prices=Prices(config.prices),
        clock=clock,
        transport=transport,
        adapters=shelf,
        embedded=config.local,
    )
    target = models.check("target", config.target, config.budget) if agent else ModelRef("", config.target.model)
    judge_ref = models.check("judge", config.judge, config.budget) if config.judge.model else ModelRef("judge", "unset")
    judge = LateModel(judge_ref)
    table = config.world_table
    world = load_world(table.use, table.settings, base_dir=base_dir, judge=judge if config.judge.model else None)
    skill = read_skill(base_dir / config.skill.path)
    start = Policy(target, config.target.sampling, skill, harness=config.target.as_harness())
    if agent and config.target.policy:
        start = published_policy(config.target.policy, world.name, config.target, models, shelf, environ, clock)
    teaches = agent and bool(config.optimizer.model)
    optimizer = models.check("optimizer", config.optimizer, config.budget) if teaches else None
    prompts = Prompts(base_dir / config.skill.prompts if config.skill.prompts else None)
    return Project(config, base_dir, world, start, models, judge, optimizer, prompts, clock, shelf, environ)


@asynccontextmanager
async def open_workshop(project: Project, folder: Path) -> AsyncGenerator[Workshop]:
    """Open or create the run at `folder`, and close all of it at the end."""
    config = project.config
    store = open_run(folder / STORE_FILE, project.clock)
    project.shelf.look_in(folder / ADAPTERS)
    try:
        settings = msgspec.json.encode(project.settings(), order="deterministic").decode()
        await store.write(MetaRow("settings", settings), MetaRow("world", project.world.name))
        replace_text(folder / CONFIG_COPY, dump_toml(config))
        ledger = Ledger(config.budget, store.spending(), project.clock)
        target = project.models.open("target", config.target, store, ledger)
        if config.judge.model:
            project.judge.is_now(project.models.open("judge", config.judge, store, ledger))
        engine = Engine(
            project.world,
            target,
            store,
            project.clock,
            seed=config.train.seed,
            max_episodes=config.train.max_episodes,
        )
        async with held(project.world):
            yield Workshop(project, folder, store, ledger, engine, target)
    finally:
        await project.models.aclose()
        await store.aclose()
