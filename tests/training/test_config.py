"""Settings: mistakes are told with their place, and only what matters makes a run another one."""

from __future__ import annotations

from typing import Any

import pytest

from whet.core import ConfigError
from whet.training import Config, changed_keys, config_from, what_matters

BASE: dict[str, dict[str, Any]] = {"world": {"use": "jsonl"}, "target": {"model": "openai/x"}}


def config(**tables: dict[str, Any]) -> Config:
    merged = {name: {**BASE.get(name, {}), **tables.get(name, {})} for name in {**BASE, **tables}}
    return config_from(merged)


@pytest.mark.parametrize(
    ("table", "settings", "told"),
    [
        ("trian", {"epochs": 1}, r"^\[trian\]: there is no such table\. Did you mean 'train'"),
        ("train", {"epoch": 1}, r"^train\.epoch: there is no such setting\. Did you mean 'epochs'"),
        ("target", {"modle": "x"}, r"^target\.modle: there is no such setting\. Did you mean 'model'"),
        ("train", {"epochs": "two"}, r"^train\.epochs: expected `int`, got `str`"),
        ("train", {"levers": "skill"}, r"^train\.levers: expected `array`, got `str`"),
        ("train", {"levers": ["skil"]}, r"train\.levers.*there is no 'skil'.*Did you mean 'skill'"),
        ("train", {"levers": []}, r"^train: `levers` names at least one"),
        ("gate", {"metric": "sofft"}, r"^gate\.metric: there is no 'sofft' here\. Did you mean 'soft'"),
        ("gate", {"rule": "strikt"}, r"^gate: there is no rule 'strikt'"),
        ("gate", {"mix": 1.5}, r"^gate: `mix` lies between 0 and 1"),
        ("skill", {"merge_size": 1}, r"^skill: `merge_size` is at least 2"),
        ("skill", {"learning_rate": -1}, r"^skill: `learning_rate` is at least 0"),
        ("train", {"epochs": 0}, r"^train: `epochs` is at least 1"),
        ("train", {"batch_size": -3}, r"^train: `batch_size` is at least 1"),
        ("target", {"max_tokens": 0}, r"^target: `max_tokens` is at least 1"),
        ("target", {"max_turns": 0}, r"^target: `max_turns` is at least 1"),
        ("target", {"max_in_flight": 0}, r"^target: `max_in_flight` is at least 1"),
        ("target", {"timeout": -1.0}, r"^target: `timeout` is more than 0"),
        ("target", {"timeout": float("nan")}, r"^target: `timeout` is more than 0"),
        ("target", {"retries": -1}, r"^target: `retries` is at least 0"),
        ("target", {"harness": "other"}, r"^target: there is no harness 'other'"),
        ("optimizer", {"max_tokens": -5}, r"^optimizer: `max_tokens` is at least 1"),
        ("budget", {"usd": -1}, r"^budget: `usd`"),
        ("budget", {"usd": float("nan")}, r"^budget: `usd`"),
        ("prices", {"openai/x": {"input": -1.0, "output": 1.0}}, r"^prices\[\*\]: a price is a number of dollars"),
        ("prices", {"openai/x": {"input": 1.0}}, r"^prices\[\*\]\.output: missing"),
        ("prices", {"openai/x": {"inptu": 1.0}}, r"^prices\[\*\]\.inptu: .*Did you mean 'input'"),
    ],
)
def test_a_mistake_is_told_with_its_place_and_the_nearest_right_name(
    table: str, settings: dict[str, Any], told: str
) -> None:
    with pytest.raises(ConfigError, match=told):
        config(**{table: settings})


@pytest.mark.parametrize(
    ("tables", "told"),
    [
        ({"target": {}}, r"^\[world\] is missing"),
        ({"world": {"use": "jsonl"}}, r"^\[target\] is missing"),
        ({**BASE, "world": {}}, r"^world\.use: missing"),
        ({**BASE, "world": {"use": 3}}, r"^world\.use: missing"),
        ({**BASE, "train": 3}, r"^train is a table, not int.*\[train\]"),
    ],
)
def test_what_is_missing_is_told(tables: dict[str, Any], told: str) -> None:
    with pytest.raises(ConfigError, match=told):
        config_from(tables)


def test_neutral_settings_do_not_make_another_run() -> None:
    neutral = config(
        target={"base_url": "http://elsewhere", "timeout": 5.0, "retries": 1, "stream": True, "max_in_flight": 2},
        budget={"usd": 3.0},
        prices={"openai/x": {"input": 1.0, "output": 2.0}},
        train={"max_episodes": 3},
    )
    assert what_matters(neutral) == what_matters(config())


@pytest.mark.parametrize(
    ("table", "settings", "changed"),
    [
        ("train", {"epochs": 2}, "train.epochs (default, now 2)"),
        ("train", {"seed": 1}, "train.seed (default, now 1)"),
        ("target", {"model": "openai/y"}, "target.model ('openai/x', now 'openai/y')"),
        ("target", {"temperature": 0.0}, "target.temperature (default, now 0.0)"),
        ("optimizer", {"effort": "high"}, "optimizer.effort (default, now 'high')"),
        ("skill", {"failure_only": True}, "skill.failure_only (default, now True)"),
        ("gate", {"metric": "soft"}, "gate.metric (default, now 'soft')"),
        ("world", {"train": "other.jsonl"}, "world.train (default, now 'other.jsonl')"),
    ],
)
def test_what_changes_results_makes_another_run_and_is_named(
    table: str, settings: dict[str, Any], changed: str
) -> None:
    assert changed_keys(what_matters(config()), what_matters(config(**{table: settings}))) == [changed]


@pytest.mark.parametrize(
    ("table", "settings"),
    [
        ("target", {"max_tokens": int("2048")}),
        ("target", {"max_episode_tokens": int("200000"), "harness": "".join(["ch", "at"])}),
        ("gate", {"rule": "".join(["pai", "red"]), "mix": float("0.5")}),
        ("train", {"levers": ["skill"]}),
        ("skill", {"path": "".join(["sk", "ill"]), "schedule": "cosine"}),
    ],
)
def test_a_default_that_is_written_out_is_still_the_default(table: str, settings: dict[str, Any]) -> None:
    assert what_matters(config(**{table: settings})) == what_matters(config())


def test_changed_keys_are_in_order_and_say_both_values() -> None:
    before, after = {"b": 1, "a": "x", "same": [1]}, {"b": 2, "c": None, "same": [1], "d": 3}
    assert changed_keys(before, after) == ["a ('x', now default)", "b (1, now 2)", "d (default, now 3)"]
