"""The whole configuration as frozen structs. Every key is documented here, and only here."""

from __future__ import annotations

from enum import StrEnum
from typing import Any

import msgspec

from whet.core import Harness, Rendering, ToolMode
from whet.gate import RULES, Metric
from whet.learners.adapter import AdapterSettings
from whet.learners.skill import SkillSettings
from whet.models import Caps, Price, RoleSettings
from whet.models.embedded import EmbeddedSettings


class Lever(StrEnum):
    SKILL = "skill"
    ADAPTER = "adapter"


class TargetSettings(RoleSettings, frozen=True, omit_defaults=True, forbid_unknown_fields=True, kw_only=True):
    """The agent that is being sharpened."""

    policy: str = ""
    """Start from a published policy in place of [skill] path: "active", or the id of a record."""
    harness: str = "chat"
    """How the agent is driven; chat is whet's own loop."""
    max_turns: int = 50
    """Model calls that an episode may take."""
    max_episode_tokens: int = 200_000
    """Tokens that an episode may use before it is ended and judged as it stands."""
    tools: ToolMode = ToolMode.NATIVE
    """native: the endpoint's tool calls; text: calls written as text, for models without them."""
    rendering: Rendering = Rendering.CHAT
    """chat: messages in the model's own template; plain: one text that the model goes on with (local models)."""
    constrained: bool = False
    """Hold answers to the task's schema, where it has one and the endpoint can."""

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.harness != "chat":
            raise ValueError(f"there is no harness {self.harness!r}; there is: chat")
        if self.max_turns < 1:
            raise ValueError("`max_turns` is at least 1")

    def as_harness(self) -> Harness:
        return Harness(
            self.harness, self.max_turns, self.max_episode_tokens, self.tools, self.rendering, self.constrained
        )


class GateSettings(msgspec.Struct, frozen=True, omit_defaults=True, forbid_unknown_fields=True):
    """What a change must show before it is kept."""

    rule: str = "paired"
    """paired: so much better, task by task, that chance is ruled out; strict: a higher score; off: anything."""
    metric: Metric = Metric.HARD
    """hard: share of tasks passed; soft: mean partial credit; mixed: both."""
    mix: float = 0.5
    """Share of partial credit in `mixed`."""
    level: float = 0.025
    """paired: how often a change that changes nothing may be accepted."""
    max_passes: int = 6
    """paired: how often a task may be played with each policy before the answer must do."""
    chunk: int = 0
    """Tasks between two looks of the gate: fewer save calls, more save time; 0 lets the rule choose."""

    def __post_init__(self) -> None:
        if self.rule not in RULES:
            raise ValueError(f"there is no rule {self.rule!r}; there is: {', '.join(RULES)}")
        if not 0.0 <= self.mix <= 1.0:
            raise ValueError("`mix` lies between 0 and 1")
        if not 0.0 < self.level < 1.0:
            raise ValueError("`level` lies between 0 and 1")
        if not 1 <= self.max_passes <= 64:
            raise ValueError("`max_passes` lies between 1 and 64")
        if self.chunk < 0:
            raise ValueError("`chunk` is at least 0")


class TrainSettings(msgspec.Struct, frozen=True, omit_defaults=True, forbid_unknown_fields=True):
    """How long and how broadly to learn."""

    epochs: int = 4
    """Times that the train tasks are gone through."""
    batch_size: int = 40
    """Train tasks that a batch plays."""
    accumulation: int = 1
    """Batches that a step plays and learns from together."""
    seed: int = 42
    """All chance is derived from it."""
    levers: tuple[Lever, ...] = (Lever.SKILL,)
    """What may change, one after the other: skill, adapter."""
    max_episodes: int = 256
    """Episodes under way at once at most."""
    test: bool = True
    """Play the test split with the policies of start and end, for the report."""

    def __post_init__(self) -> None:
        for name in ("epochs", "batch_size", "accumulation", "max_episodes"):
            if getattr(self, name) < 1:
                raise ValueError(f"`{name}` is at least 1")
        if not self.levers:
            raise ValueError("`levers` names at least one")


class WorldTable(msgspec.Struct, frozen=True):
    """`[world]`: `use` says which, all other keys are that world's own settings."""

    use: str
    settings: dict[str, Any]


class Config(msgspec.Struct, frozen=True, omit_defaults=True, forbid_unknown_fields=True):
    world: dict[str, Any]
    """Which world, by `use`, and its own settings: see `whet world list`."""
    target: TargetSettings
    """The agent that is being sharpened."""
    optimizer: RoleSettings = RoleSettings()
    """The model that reads what happened and proposes changes."""
    judge: RoleSettings = RoleSettings()
    """The model that judges, for worlds that have answers judged by one."""
    skill: SkillSettings = SkillSettings()
    """How the skill lever learns."""
    adapter: AdapterSettings = AdapterSettings()
    """How the adapter lever learns."""
    gate: GateSettings = GateSettings()
    """What a change must show before it is kept."""
    budget: Caps = Caps()
    """What a run may use at most."""
    local: EmbeddedSettings = EmbeddedSettings()
    """How models that run within the process are laid out on this machine."""
    train: TrainSettings = TrainSettings()
    """How long and how broadly to learn."""
    prices: dict[str, Price] = {}
    """Prices by "provider/model", in dollars per million tokens; they go before whet's own table."""

    @property
    def world_table(self) -> WorldTable:
        settings = dict(self.world)
        return WorldTable(settings.pop("use"), settings)


_NEUTRAL_TABLES = ("budget", "prices", "local")
_NEUTRAL_ROLE_KEYS = (
    "base_url",
    "api_key_env",
    "region",
    "api_version",
    "deployment",
    "auth",
    "client_id",
    "max_in_flight",
    "timeout",
    "retries",
    "send_late_again",
    "send_purpose",
    "stream",
)
_NEUTRAL_TRAIN_KEYS = ("max_episodes",)


def what_matters(config: Config) -> dict[str, Any]:
    """The settings that results depend on, flat: `{"train.epochs": 4}`. Two runs that differ elsewhere are the same."""
    flat: dict[str, Any] = {}
    for table, values in msgspec.to_builtins(config).items():
        if table not in _NEUTRAL_TABLES:
            usual = _defaults(getattr(config, table))
            for key, value in values.items():
                # A default that is written out is still the default; which of them are left out of `values` is chance.
                if not _neutral(table, key) and not (key in usual and usual[key] == value):
                    flat[f"{table}.{key}"] = value
    return flat


def _defaults(table: object) -> dict[str, Any]:
    if not isinstance(table, msgspec.Struct):
        return {}
    fields = msgspec.structs.fields(table)
    return {
        field.name: msgspec.to_builtins(field.default) for field in fields if field.default is not msgspec.NODEFAULT
    }


def changed_keys(before: dict[str, Any], after: dict[str, Any]) -> list[str]:
    """Keys whose values differ, each with both: "train.epochs (4, now 2)"."""
    keys = sorted(key for key in before.keys() | after.keys() if before.get(key) != after.get(key))
    return [f"{key} ({_show(before, key)}, now {_show(after, key)})" for key in keys]


def _show(flat: dict[str, Any], key: str) -> str:
    return repr(flat[key]) if key in flat else "default"


def _neutral(table: str, key: str) -> bool:
    if table in ("target", "optimizer", "judge"):
        return key in _NEUTRAL_ROLE_KEYS
    return table == "train" and key in _NEUTRAL_TRAIN_KEYS
