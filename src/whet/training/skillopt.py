"""Reads a published SkillOpt configuration and says the same in whet's words.

Nothing is guessed: what has no counterpart here, and every key or address that belongs in the environment, is listed.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, cast

import msgspec

from whet.core import ConfigError, InputError
from whet.training.config import Config
from whet.training.loading import config_from, dump_toml

_SECTIONS = ("model", "train", "gradient", "optimizer", "evaluation", "env")

# SkillOpt's flat name (its structured files say `section.name`) -> ours.
_PLAIN = {
    "num_epochs": "train.epochs",
    "batch_size": "train.batch_size",
    "accumulation": "train.accumulation",
    "seed": "train.seed",
    "eval_test": "train.test",
    "minibatch_size": "skill.minibatch_size",
    "merge_batch_size": "skill.merge_size",
    "failure_only": "skill.failure_only",
    "edit_budget": "skill.learning_rate",
    "learning_rate": "skill.learning_rate",
    "min_edit_budget": "skill.min_learning_rate",
    "min_learning_rate": "skill.min_learning_rate",
    "use_slow_update": "skill.slow_update",
    "slow_update_samples": "skill.slow_samples",
    "slow_update_gate_with_selection": "skill.slow_gate",
    "longitudinal_pair_policy": "skill.pairs",
    "use_meta_skill": "skill.memory",
    "use_skill_aware_reflection": "skill.skill_aware",
    "skill_aware_appendix_source": "skill.appendix_source",
    "skill_aware_consolidate_threshold": "skill.consolidate_above",
    "skill_init": "skill.path",
    "gate_metric": "gate.metric",
    "gate_mixed_weight": "gate.mix",
    "analyst_workers": "optimizer.max_in_flight",
    "reasoning_effort": "optimizer.effort",
}
_UPDATES = {
    "patch": "patch",
    "edits": "patch",
    "rewrite": "rewrite",
    "rewrite_from_suggestions": "rewrite",
    "full_rewrite": "full_rewrite",
    "full_rewrite_minibatch": "full_rewrite",
}
_BACKENDS = {
    "openai_chat": "openai",
    "azure_openai": "azure",
    "claude_chat": "anthropic",
    "qwen_chat": "qwen",
    "minimax_chat": "minimax",
}
# The published trainer's own defaults, where they differ from whet's.
_DEFAULTS = {
    "skill.slow_update": False,
    "skill.slow_gate": False,
    "skill.memory": False,
    "skill.schedule": "constant",
    "gate.rule": "strict",
}


class Imported(msgspec.Struct, frozen=True):
    toml: str
    left_out: tuple[str, ...]
    """What has no counterpart, each with the reason."""


def import_skillopt(path: Path) -> Imported:
    """Raises InputError for a file that is not such a configuration."""
    flat = _flat(_read(path, ()))
    ours: dict[str, Any] = dict(_DEFAULTS)
    left_out: list[str] = []
    for name, value in flat.items():
        taken = _take(name, value, flat)
        if taken is None:
            left_out.append(f"{name} = {_shown(name, value)}: {_why(name)}")
        else:
            ours |= taken
    return Imported(dump_toml(_config(ours)), tuple(left_out))


def _config(ours: Mapping[str, Any]) -> Config:
    table: dict[str, dict[str, Any]] = {"world": {"use": "jsonl"}, "target": {}}
    for key, value in ours.items():
        section, _, name = key.partition(".")
        table.setdefault(section, {})[name] = value
    try:
        return config_from(table)
    except ConfigError as error:
        raise InputError(f"this SkillOpt configuration does not hold together: {error.message}") from error


def _take(name: str, value: Any, flat: Mapping[str, Any]) -> dict[str, Any] | None:
    if name in _PLAIN:
        return {_PLAIN[name]: value}
    special = _SPECIAL.get(name)
    return None if special is None else special(value, flat)


def _schedule(value: Any, flat: Mapping[str, Any]) -> dict[str, Any]:
    control = str(flat.get("lr_control_mode", "fixed"))
    name = {"autonomous": "autonomous", "none": "none"}.get(control, str(value))
    # SkillOpt's scheduler of this name sets no limit; asking the model is its lr_control_mode of the same name.
    return {"skill.schedule": "none" if name == "autonomous" and control == "fixed" else name}


def _update(value: Any, flat: Mapping[str, Any]) -> dict[str, Any] | None:
    mode = _UPDATES.get(str(value).lower())
    return None if mode is None else {"skill.update": mode}


def _model(role: str) -> Callable[[Any, Mapping[str, Any]], dict[str, Any] | None]:
    def take(value: Any, flat: Mapping[str, Any]) -> dict[str, Any] | None:
        backend = str(flat.get(f"{role}_backend", flat.get("model_backend", "openai_chat")))
        provider = _BACKENDS.get(backend)
        return None if provider is None else {f"{role}.model": f"{provider}/{value}"}

    return take


def _silent(value: Any, flat: Mapping[str, Any]) -> dict[str, Any]:
    return {}


_SPECIAL: dict[str, Callable[[Any, Mapping[str, Any]], dict[str, Any] | None]] = {
    "lr_scheduler": _schedule,
    "lr_control_mode": lambda value, flat: _schedule(flat.get("lr_scheduler", "constant"), flat),
    "skill_update_mode": _update,
    "optimizer_model": _model("optimizer"),
    "target_model": _model("target"),
    "optimizer_backend": _silent,
    "target_backend": _silent,
    "model_backend": _silent,
    "use_gate": lambda value, flat: {"gate.rule": "strict" if value else "off"},
}


def _why(name: str) -> str:
    if "api_key" in name:
        return "keys belong in the environment; `whet models list` names the variables"
    if "endpoint" in name or "base_url" in name:
        return "set base_url of the role, or export the provider's address"
    if name in ("env", "out_root", "train_size", "steps_per_epoch", "sel_env_num", "test_env_num"):
        return "name the world under [world]; its own settings say how many tasks there are"
    return "it has no counterpart here"


def _shown(name: str, value: Any) -> str:
    return "(hidden)" if "key" in name or "secret" in name or "token" in name else repr(value)


def _flat(table: Mapping[str, Any]) -> dict[str, Any]:
    """Both published forms, sections and flat names, as flat names."""
    flat: dict[str, Any] = {}
    for name, value in table.items():
        if name in _SECTIONS and isinstance(value, dict):
            inner = cast("dict[str, Any]", value)
            flat |= {_flat_name(name, key): setting for key, setting in inner.items()}
        else:
            flat[name] = value
    return flat


def _flat_name(section: str, key: str) -> str:
    if section == "model" and key in ("optimizer", "target", "backend"):
        return f"model_{key}" if key == "backend" else f"{key}_model"
    return "env" if (section, key) == ("env", "name") else key


def _read(path: Path, seen: tuple[Path, ...]) -> dict[str, Any]:
    try:
        import yaml
    except ModuleNotFoundError:
        raise InputError("reading YAML needs PyYAML", hint="pip install 'whet[skillopt]'") from None
    if path.resolve() in seen:
        raise InputError(f"{path.name} is its own base")
    try:
        table: Any = yaml.safe_load(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise InputError(f"{path} cannot be read: {error.strerror}") from error
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        raise InputError(f"{path.name} is not YAML: {' '.join(str(error).split())}") from error
    if not isinstance(table, dict | None):
        raise InputError(f"{path.name} is not a table of settings")
    found = cast("dict[str, Any]", table or {})
    base = found.pop("_base_", None)
    return found if base is None else _merge(_read(path.parent / str(base), (*seen, path.resolve())), found)


def _merge(below: dict[str, Any], above: dict[str, Any]) -> dict[str, Any]:
    merged = dict(below)
    for key, value in above.items():
        under = merged.get(key)
        both = isinstance(value, dict) and isinstance(under, dict)
        merged[key] = _merge(cast("dict[str, Any]", under), cast("dict[str, Any]", value)) if both else value
    return merged
