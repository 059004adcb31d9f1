"""From names to who answers: an embedded model, an OpenAI-compatible server, or vLLM."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import msgspec

from whet.core import Clock, ConfigError, Policy, Split, fingerprint
from whet.models import SCRIPTED, Caps, Models, Prices, RoleSettings, resolve
from whet.models.embedded.settings import EmbeddedSettings
from whet.models.transport import AioTransport
from whet.models.wires import OpenAIWire
from whet.registry import Base
from whet.serving.gateway.passing import VLLM, Passing
from whet.serving.gateway.upstreams import Local, Upstream
from whet.training import Project
from whet.training.adapters import Shelf
from whet.worlds import held

LOCAL = "local/"
_ROLE = "serve"


class Wanted(msgspec.Struct, frozen=True):
    """Which model is asked, and where it is."""

    target: RoleSettings
    """Whose model it is for the registry: `local/…` or `provider/name`."""
    upstream: str = ""
    """The address of a server; empty for the embedded model and for a provider's own address."""
    kind: str = ""
    """How the server is spoken to: openai, vllm, or another provider of ours."""
    model: str = ""
    """The model's name on that server, where it is another than the base's."""
    most_adapters: int = 8


class Opened(msgspec.Struct, frozen=True):
    upstream: Upstream
    bare: Policy
    """The base model without anything of ours."""


@asynccontextmanager
async def opened(
    wanted: Wanted, *, environ: Mapping[str, str], clock: Clock, base_dir: Path, layout: EmbeddedSettings
) -> AsyncGenerator[Opened]:
    """Raises ConfigError, CredentialsError or InputError before anything is listened on."""
    shelf = Shelf()
    prices = Prices({})
    models = Models(environ=environ, base_dir=base_dir, prices=prices, clock=clock, adapters=shelf, embedded=layout)
    transport = AioTransport()
    try:
        if wanted.target.model.startswith(LOCAL) and not wanted.upstream:
            yield _embedded(wanted, models, shelf)
        else:
            yield _elsewhere(wanted, models, transport, environ, clock)
    finally:
        await transport.close()
        await models.aclose()


def _embedded(wanted: Wanted, models: Models, shelf: Shelf) -> Opened:
    ref = models.check(_ROLE, wanted.target, Caps())
    model = models.embedded(_ROLE, wanted.target)
    assert model is not None, "local/ models are embedded"
    base = Base(wanted.target.model, model.base)
    local = Local(model, base, shelf, most_at_once=model.shape.slots)
    return Opened(local, Policy(ref, wanted.target.sampling))


def _elsewhere(
    wanted: Wanted, models: Models, transport: AioTransport, environ: Mapping[str, str], clock: Clock
) -> Opened:
    spec = wanted.target.model
    if spec.startswith(SCRIPTED):
        raise ConfigError(f"{spec} is a function for trying things out, and no model", hint="--base says which model.")
    kind = wanted.kind or spec.partition("/")[0]
    name = wanted.model or spec.partition("/")[2]
    # Its address may come from the environment, as in a training.
    url = wanted.upstream or wanted.target.base_url
    provider = resolve(f"{kind}/{name}", base_url=url, options=wanted.target, environ=environ, clock=clock)
    if not isinstance(provider.wire, OpenAIWire):
        raise ConfigError(f"{kind} does not speak OpenAI's wire", hint="Serve the policy in front of one that does.")
    known = models.base(_ROLE, wanted.target) if spec.startswith(LOCAL) else fingerprint("base", spec)
    base = Base(spec, known)
    bare = Policy(provider.ref, wanted.target.sampling)
    if kind == "vllm":
        return Opened(VLLM(provider, base, transport, clock, most_adapters=wanted.most_adapters), bare)
    return Opened(Passing(provider, base, transport, clock), bare)


async def answer_schemas(project: Project) -> dict[str, dict[str, Any]]:
    """What the answers of the project's world are held to, where its agent's are held to anything."""
    if not project.config.target.constrained:
        return {}
    async with held(project.world) as world:
        tasks = project.tasks(Split.TRAIN)
        session = await world.open(tasks[0], 0)
        try:
            schema = session.brief.answer_schema
        finally:
            await session.close()
    return {} if schema is None else {world.name: schema}
