"""Calls that are made to try something out: they go through a store that is thrown away, and change no run."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

import msgspec

from whet.core import (
    Clock,
    ModelRequest,
    Nanodollars,
    Purpose,
    WhetError,
    user,
)
from whet.models import Caps, Ledger, Models, RoleSettings
from whet.store import RunStore, Spending, open_run
from whet.training import Config, Project
from whet.worlds import held

_QUESTION = "Answer with the single word: ready"
_PATIENCE = 60.0
"""Seconds; an endpoint that is slower than this at one word is worth knowing about."""


class Checked(msgspec.Struct, frozen=True):
    """One call to the model of one role."""

    role: str
    model: str
    answered: bool
    text: str
    """The answer, or what went wrong."""
    seconds: float
    nanodollars: Nanodollars
    tokens: int


@asynccontextmanager
async def scratch_store(clock: Clock) -> AsyncGenerator[tuple[RunStore, Ledger]]:
    with TemporaryDirectory(prefix="whet-check-") as folder:
        store = open_run(Path(folder) / "run.db", clock)
        try:
            yield store, Ledger(Caps(), Spending(), clock)
        finally:
            await store.aclose()


@asynccontextmanager
async def opened_judge(project: Project) -> AsyncGenerator[None]:
    """The project's world can be played inside, also where a model judges its answers."""
    config = project.config
    async with held(project.world):
        if not config.judge.model:
            yield
            return
        async with scratch_store(project.clock) as (store, ledger):
            project.judge.is_now(project.models.open("judge", config.judge, store, ledger))
            try:
                yield
            finally:
                await project.models.aclose()


def configured_roles(config: Config) -> dict[str, RoleSettings]:
    roles = {"target": config.target, "optimizer": config.optimizer, "judge": config.judge}
    return {role: settings for role, settings in roles.items() if settings.model}


async def check_roles(models: Models, roles: dict[str, RoleSettings], clock: Clock) -> list[Checked]:
    """One small call to each, one after another; what fails is told, not raised."""
    try:
        return [await _check(models, role, settings, clock) for role, settings in roles.items()]
    finally:
        await models.aclose()


async def _check(models: Models, role: str, settings: RoleSettings, clock: Clock) -> Checked:
    once = msgspec.structs.replace(settings, retries=0, timeout=min(settings.timeout, _PATIENCE), send_late_again=False)
    request = ModelRequest((user(_QUESTION),), sampling=settings.sampling, seed=0)
    began = clock.now()
    async with scratch_store(clock) as (store, ledger):
        try:
            model = models.open(role, once, store, ledger)
            reply = await model.complete(request, purpose=Purpose.CHECK)
            answered, text = True, reply.text.strip() or "(an empty answer)"
        except WhetError as error:
            answered, text = False, str(error)
        return Checked(role, settings.model, answered, text, clock.now() - began, ledger.nanodollars, ledger.tokens)
