"""What answers to which name. Pure: a table that is made anew and swapped whole when something is activated."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from hashlib import blake2b
from pathlib import Path

import msgspec

from whet.core import Policy, Skill
from whet.registry import STABLE

BASE = "base"
CHAMPION = "champion"
CANARY = "canary"


class Route(msgspec.Struct, frozen=True):
    """One policy, ready to answer, or what is in the way."""

    world: str
    record: str
    """The record's id, or "base"."""
    policy: Policy
    adapter: Path | None = None
    """Where llama.cpp's file of the adapter is; its other formats lie beside it."""
    trouble: str = ""


class Place(msgspec.Struct, frozen=True):
    world: str
    channel: str


class Named(msgspec.Struct, frozen=True):
    """A model's name, taken apart: `world`, `world@champion`, `world@canary`, `world@base`, `world@record`."""

    world: str
    suffix: str = ""


class Chosen(msgspec.Struct, frozen=True):
    route: Route
    channel: str
    """Empty where the caller asked for a record or for the base model."""


class Table(msgspec.Struct, frozen=True):
    base: Route
    """The model without anything of ours."""
    places: Mapping[Place, Route] = {}
    worlds: frozenset[str] = frozenset()
    """Every world that something is published for."""

    def choose(self, named: Named, key: str, canary: float) -> Chosen | None:
        """The route for a name; None where only the registry can tell. `key` decides who is a canary."""
        if named.world == self.base.world and named.suffix in ("", BASE):
            return Chosen(self.base, "")
        if named.suffix == BASE:
            return self._bare(named.world)
        if named.suffix in ("", CHAMPION):
            return self._stable(named, key, canary)
        found = self.places.get(Place(named.world, named.suffix))
        return Chosen(found, named.suffix) if found else None

    def _stable(self, named: Named, key: str, canary: float) -> Chosen | None:
        trial = self.places.get(Place(named.world, CANARY))
        if trial is not None and not named.suffix and share_of(key) < canary:
            return Chosen(trial, CANARY)
        found = self.places.get(Place(named.world, STABLE))
        return Chosen(found, STABLE) if found else None

    def _bare(self, world: str) -> Chosen | None:
        """As the active policy is driven, without its skill and adapter: so the two compare."""
        if world not in self.worlds:
            return None
        active = self.places.get(Place(world, STABLE))
        if active is None:
            return Chosen(self.base, "")
        return Chosen(Route(world, BASE, active.policy.with_skill(Skill({})).with_adapter(None)), "")

    def names(self) -> Iterable[tuple[str, Route]]:
        """Every name that is worth showing."""
        for place, route in sorted(self.places.items(), key=lambda item: (item[0].world, item[0].channel != STABLE)):
            yield place.world if place.channel == STABLE else f"{place.world}@{place.channel}", route
        yield self.base.world, self.base


def parse(model: str) -> Named:
    world, _, suffix = model.partition("@")
    return Named(world, suffix)


def share_of(key: str) -> float:
    """Between 0 and 1, evenly, and the same for the same key."""
    return int.from_bytes(blake2b(key.encode("utf-8", "replace"), digest_size=7).digest(), "big") / 2**56
