"""Runs the gateway for `whet serve`: what it is made of, what it prints, and how it ends."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import click
import msgspec

from whet.cli.interrupt import asked_to_end
from whet.cli.loading import config_file, load_project
from whet.cli.numbers import plural
from whet.cli.requests import Log, log_for
from whet.core import Clock, SystemClock
from whet.models import RoleSettings
from whet.models.embedded import EmbeddedSettings
from whet.project import data_folder
from whet.registry import open_registry
from whet.serving.gateway import (
    Capture,
    Gateway,
    Limits,
    Listening,
    Retention,
    Switchboard,
    guard_for,
    redaction,
    serving,
)
from whet.serving.gateway.opening import Opened, Wanted, answer_schemas, opened
from whet.serving.gateway.routes import Table

_DEFAULT = "local/smollm2-135m"


class Plan(msgspec.Struct, frozen=True, kw_only=True):
    """What the command line says."""

    host: str
    port: int
    base: str
    """Empty: the project's, or the small embedded model."""
    upstream: str
    kind: str
    model: str
    canary: float
    capture: Path | None
    redact: str
    capture_mb: float
    capture_days: float
    queue: int
    timeout: float
    grace: float
    is_open: bool
    project: Path


async def serve(plan: Plan, environ: Mapping[str, str], *, plain: bool, as_json: bool) -> None:
    """Until Ctrl-C. Everything that a user could have got wrong is checked before anything is loaded."""
    clock = SystemClock()
    guard = guard_for(plan.host, environ, is_open=plan.is_open)
    redact = redaction(plan.redact, plan.project) if plan.redact else None
    wanted, layout, schemas = await _wanted(plan)
    retention = Retention(plan.capture_mb, plan.capture_days)
    log = log_for(environ, clock, plain=plain, as_json=as_json)
    with open_registry(data_folder(environ), clock) as registry, log:
        async with opened(wanted, environ=environ, clock=clock, base_dir=plan.project, layout=layout) as model:
            capture = Capture(plan.capture, clock, redact=redact, retention=retention) if plan.capture else None
            switchboard = Switchboard(registry, model.upstream, model.bare, clock, log.line)
            gateway = Gateway(
                switchboard,
                model.upstream,
                clock,
                guard=guard,
                limits=Limits(waiting=plan.queue, seconds=plan.timeout),
                canary=plan.canary,
                capture=capture,
                schemas=schemas,
                on_done=log.done,
            )
            try:
                async with serving(gateway, switchboard, Listening(plan.host, plan.port, plan.grace)) as address:
                    _print_served(address, model, switchboard.table, keys=bool(guard.keys), as_json=as_json)
                    _tell_unheld(log, switchboard.table, schemas)
                    log.show(gateway.turnstile)
                    async with _ticking(log, capture, clock):
                        await asked_to_end()
                    waiting = gateway.turnstile.inside + gateway.turnstile.waiting
                    log.line(f"ending: {plural(waiting, 'request')} under way" if waiting else "ending")
            finally:
                if capture is not None:
                    capture.close()


async def _wanted(plan: Plan) -> tuple[Wanted, EmbeddedSettings, dict[str, dict[str, Any]]]:
    """Which model, how it is laid out, and what answers are held to, from the project where there is one."""
    if not config_file(plan.project).is_file():
        return _at(plan, RoleSettings(model=plan.base or _DEFAULT)), EmbeddedSettings(), {}
    project = load_project(plan.project)
    try:
        schemas = await answer_schemas(project)
    finally:
        await project.models.aclose()
    own: RoleSettings = project.config.target
    if plan.base and plan.base != own.model:
        own = RoleSettings(model=plan.base)
    return _at(plan, own), project.config.local, schemas


def _at(plan: Plan, target: RoleSettings) -> Wanted:
    return Wanted(target, plan.upstream, plan.kind, plan.model)


def _print_served(address: str, model: Opened, table: Table, *, keys: bool, as_json: bool) -> None:
    served = {name: route.record for name, route in table.names()}
    if as_json:
        told = {"address": address, "base": model.upstream.base.name, "serving": served, "keys": keys}
        click.echo(msgspec.json.encode(told).decode())
        return
    click.echo(f"serving {address}/v1 on {model.upstream.base.name}{', for those with a key' if keys else ''}")
    for name, record in served.items():
        click.echo(f"  {name}: {'the base model as it is' if record == 'base' else f'record {record}'}")
    first = next(iter(served))
    if len(served) == 1:
        click.echo("Nothing is active for this model yet: `whet registry activate ID` makes a record so.")
    click.echo(_calls(address, first, keys=keys))


def _calls(address: str, name: str, *, keys: bool) -> str:
    key = "KEY" if keys else "none"
    header = ' -H "Authorization: Bearer KEY"' if keys else ""
    said = f'{{"model": "{name}", "messages": [{{"role": "user", "content": "Hello"}}]}}'
    return f"""
  curl {address}/v1/models{header}
  curl {address}/v1/chat/completions{header} -d '{said}'
  python -c "import openai; print(openai.OpenAI(base_url='{address}/v1', api_key='{key}').chat.completions.create(
      model='{name}', messages=[{{'role': 'user', 'content': 'Hello'}}]).choices[0].message.content)"
"""


def _tell_unheld(log: Log, table: Table, schemas: Mapping[str, Any]) -> None:
    for name, route in table.names():
        if route.policy.harness.constrained and route.world not in schemas:
            log.line(
                f"{name} was measured with its answers held to its world's schema, which only its project knows: "
                "serve it from there, or let callers send response_format"
            )


@asynccontextmanager
async def _ticking(log: Log, capture: Capture | None, clock: Clock) -> AsyncGenerator[None]:
    async def tick() -> None:
        while True:
            await clock.sleep(log.every)
            log.tick()
            if capture is not None:
                capture.tend()

    ticking = asyncio.create_task(tick())
    try:
        yield
    finally:
        ticking.cancel()
        await asyncio.wait([ticking])
