"""Policies of the registry as a training or an evaluation begins with them."""

from __future__ import annotations

from collections.abc import Mapping

from whet.core import Clock, InputError, Policy
from whet.models import Models
from whet.project import data_folder
from whet.registry import STABLE, Record, Registry, open_registry
from whet.training.adapters import Shelf
from whet.training.config import TargetSettings

ACTIVE = "active"
"""Stands for whatever is active for the world and the base model."""


def published_policy(
    name: str,
    world: str,
    target: TargetSettings,
    models: Models,
    shelf: Shelf,
    environ: Mapping[str, str],
    clock: Clock,
) -> Policy:
    """The policy of a record, or the active one; its adapter is on the shelf from now on. Raises InputError."""
    base = models.base("target", target)
    with open_registry(data_folder(environ), clock) as registry:
        record = _record(registry, name, world, base)
        if record.base.fingerprint != base:
            raise InputError(
                f"record {record.id} is for {record.base.name}, not for target.model = {target.model!r}",
                hint="An adapter and a prompt fit the model that they were made with.",
            )
        policy = registry.policy(record.id)
        file = registry.adapter_file(record.id)
        if policy.adapter is not None and file is not None:
            shelf.know(policy.adapter, file)
    return policy


def _record(registry: Registry, name: str, world: str, base: str) -> Record:
    if name != ACTIVE:
        return registry.record(name)
    record = registry.resolve(world, base, channel=STABLE)
    if record is None:
        raise InputError(
            f"nothing is active for {world} on this base model", hint="`whet registry activate` makes a record active."
        )
    return record
