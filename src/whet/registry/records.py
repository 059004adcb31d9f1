"""A record: one published policy, with where it comes from and what speaks for it. Pure."""

from __future__ import annotations

import math
from collections.abc import Mapping
from enum import StrEnum
from pathlib import Path
from typing import Any

import msgspec

from whet.core import InputError, Policy, Skill, fingerprint

STABLE = "stable"
"""The channel that users are served from if they ask for no other."""

POLICY_FILE = "policy.json"
SKILL_FOLDER = "skill"
ADAPTER_FOLDER = "adapter"
ADAPTER_FILE = f"{ADAPTER_FOLDER}/adapter.gguf"


class Kind(StrEnum):
    SKILL = "skill"
    ADAPTER = "adapter"
    POLICY = "policy"
    """A skill and an adapter that go together, or neither: a model as it is."""


class State(StrEnum):
    CANDIDATE = "candidate"
    ACTIVE = "active"
    RETIRED = "retired"
    """It was active, and another took its place."""
    REJECTED = "rejected"


class Base(msgspec.Struct, frozen=True):
    """Which model a policy is for."""

    name: str
    """As in a configuration: "local/smollm2-135m"."""
    fingerprint: str
    """Of its weights and its chat template where whet can read them, else of its name."""


class Measure(msgspec.Struct, frozen=True):
    """A score that was measured, never one that training reports of itself."""

    what: str
    """Such as "test" or "assess"."""
    metric: str
    value: float
    low: float
    high: float
    count: int

    def __post_init__(self) -> None:
        if not all(math.isfinite(number) for number in (self.value, self.low, self.high)):
            raise ValueError(f"the {self.metric} of {self.what} is not a finite number")


class Origin(msgspec.Struct, frozen=True):
    """How it was made, so that it can be made again."""

    run: str = ""
    code: str = ""
    """whet's version."""
    config: dict[str, Any] = {}
    data: str = ""
    """Fingerprint of the examples that an adapter learned from."""
    world_fingerprint: str = ""


class Proof(msgspec.Struct, frozen=True):
    """A certificate: that `candidate` is better than `incumbent`, both by fingerprint."""

    candidate: str
    incumbent: str
    body: str
    """The certificate's own text."""


class Draft(msgspec.Struct, frozen=True):
    """What is to be published."""

    policy: Policy
    world: str
    base: Base
    origin: Origin = Origin()
    parents: tuple[str, ...] = ()
    """Records that it was made from."""
    evidence: tuple[Measure, ...] = ()
    proofs: tuple[Proof, ...] = ()
    adapter: Path | None = None
    """The folder of the adapter's files; `adapter.gguf` is among them."""
    note: str = ""


class Body(msgspec.Struct, frozen=True):
    """What the index keeps of a record as one value."""

    format: int
    kind: Kind
    base: Base
    origin: Origin
    parents: tuple[str, ...]
    evidence: tuple[Measure, ...]
    files: dict[str, str]
    """SHA-256 by path in the package."""
    who: str
    note: str = ""


class Record(msgspec.Struct, frozen=True):
    id: str
    world: str
    policy: str
    """The policy's fingerprint."""
    package: str
    at: float
    body: Body
    state: State
    rejected: str = ""
    imported: bool = False
    certified: bool = False

    @property
    def base(self) -> Base:
        return self.body.base

    @property
    def kind(self) -> Kind:
        return self.body.kind


class Activation(msgspec.Struct, frozen=True):
    """What is, or was, active at one place."""

    world: str
    base: str
    """The base model's fingerprint."""
    channel: str
    record: str
    at: float
    who: str
    forced: bool
    """Nothing proved its gain."""
    restored: bool
    """By a rollback."""


def kind_of(policy: Policy) -> Kind:
    if policy.adapter is None:
        return Kind.SKILL if policy.skill.files else Kind.POLICY
    return Kind.POLICY if policy.skill.files else Kind.ADAPTER


def record_id(world: str, base: Base, policy: str, run: str, files: Mapping[str, str]) -> str:
    """The same policy of the same run is the same record, however often it is published."""
    return fingerprint("record", world, base, policy, run, sorted(files.items()))[:16]


def policy_text(policy: Policy) -> bytes:
    """The policy without its skill, which is kept as files."""
    return msgspec.json.format(msgspec.json.encode(policy.with_skill(Skill({}))), indent=1) + b"\n"


def read_policy(text: bytes, skill: dict[str, str], expected: str, where: str) -> Policy:
    try:
        policy = msgspec.json.decode(text, type=Policy).with_skill(Skill(skill))
    except msgspec.MsgspecError as problem:
        raise InputError(f"{where} holds no policy: {problem}") from problem
    if policy.fingerprint != expected:
        raise InputError(f"{where} holds another policy than it says", hint="Its files were changed; import it anew.")
    return policy
