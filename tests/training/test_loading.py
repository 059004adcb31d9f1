"""From whet.toml and --set to a configuration, and back."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from whet.core import ConfigError
from whet.training import Config, config_from, dump_toml, load_config

TEXT = '[world]\nuse = "jsonl"\n[target]\nmodel = "openai/x"\n'


def write(folder: Path, name: str, text: str) -> Path:
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")
    return path


def with_set(tmp_path: Path, *overrides: str) -> Config:
    return load_config(write(tmp_path, "whet.toml", TEXT), overrides)


def test_a_folder_stands_for_its_whet_toml(tmp_path: Path) -> None:
    write(tmp_path, "whet.toml", TEXT)
    assert load_config(tmp_path).target.model == "openai/x"


def test_a_file_extends_others_and_says_the_last_word(tmp_path: Path) -> None:
    write(tmp_path, "bases/far.toml", f"{TEXT}[train]\nepochs = 1\nseed = 1\nbatch_size = 1\n")
    write(tmp_path, "near.toml", 'extends = "bases/far.toml"\n[train]\nseed = 2\nbatch_size = 2\n')
    path = write(tmp_path, "whet.toml", 'extends = "near.toml"\n[train]\nbatch_size = 3\n[world]\nextra = "x"\n')
    found = load_config(path)
    assert (found.train.epochs, found.train.seed, found.train.batch_size) == (1, 2, 3)
    assert found.world == {"use": "jsonl", "extra": "x"}


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ('extends = "whet.toml"\n', "extends itself"),
        ('extends = "other.toml"\n', "extends itself"),
        ('extends = "gone.toml"\n', "there is no .*gone.toml"),
        ("extends = 3\n", "extends names a file, not int"),
        ("[train\n", "whet.toml is not TOML"),
        ("[train]\na = 1\na = 2\n", "whet.toml is not TOML"),
    ],
)
def test_a_file_that_cannot_be_read_is_told(tmp_path: Path, text: str, told: str) -> None:
    write(tmp_path, "other.toml", 'extends = "whet.toml"\n')
    with pytest.raises(ConfigError, match=told):
        load_config(write(tmp_path, "whet.toml", text))


def test_a_file_that_is_not_text_or_not_there_is_told(tmp_path: Path) -> None:
    (tmp_path / "whet.toml").write_bytes(b"\xff\xfe")
    with pytest.raises(ConfigError, match="not TOML"):
        load_config(tmp_path)
    with pytest.raises(ConfigError, match="whet init"):
        load_config(tmp_path / "gone.toml")


@pytest.mark.parametrize(
    ("override", "table", "key", "value"),
    [
        ("train.epochs=2", "train", "epochs", 2),
        (" train.epochs = 2 ", "train", "epochs", 2),
        ("train.test=false", "train", "test", False),
        ("target.temperature=0.5", "target", "temperature", 0.5),
        ("target.model=openai/gpt-5.5", "target", "model", "openai/gpt-5.5"),
        ('target.model="openai/gpt-5.5"', "target", "model", "openai/gpt-5.5"),
        ("target.base_url=http://localhost:8000/v1?a=b", "target", "base_url", "http://localhost:8000/v1?a=b"),
        ("gate.rule=off", "gate", "rule", "off"),
        ("target.base_url=", "target", "base_url", ""),
        ('target.stop=["a", "b"]', "target", "stop", ("a", "b")),
        ("skill.path=a#b", "skill", "path", "a#b"),
        ("budget.usd=5", "budget", "usd", 5.0),
    ],
)
def test_set_takes_toml_and_bare_texts(tmp_path: Path, override: str, table: str, key: str, value: Any) -> None:
    assert getattr(getattr(with_set(tmp_path, override), table), key) == value


def test_set_reaches_into_the_world_and_the_last_one_counts(tmp_path: Path) -> None:
    found = with_set(tmp_path, "world.scorer.name=exact", "world.scorer.fold=true", "train.seed=1", "train.seed=2")
    assert found.world == {"use": "jsonl", "scorer": {"name": "exact", "fold": True}}
    assert found.train.seed == 2


@pytest.mark.parametrize("name", ["openai/gpt-5.5", '"openai/gpt-5.5"'])
def test_set_gives_prices_of_models_with_dots_and_slashes(tmp_path: Path, name: str) -> None:
    found = with_set(tmp_path, f"prices.{name}.input=2.5", f"prices.{name}.output=10")
    assert (found.prices["openai/gpt-5.5"].input, found.prices["openai/gpt-5.5"].output) == (2.5, 10.0)


@pytest.mark.parametrize("override", ["epochs=2", "train.epochs", "=2", ".epochs=2", "train.=2", "", "prices.input=3"])
def test_set_of_another_form_is_a_mistake(tmp_path: Path, override: str) -> None:
    with pytest.raises(ConfigError, match="--set"):
        with_set(tmp_path, override)


def test_set_is_checked_like_the_file(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"train\.epoch: .*Did you mean 'epochs'"):
        with_set(tmp_path, "train.epoch=2")


# TOML holds any character but surrogates.
TEXTS = st.text(st.characters(exclude_categories=["Cs"]), max_size=12)
VALUES = st.recursive(
    TEXTS | st.booleans() | st.integers(-(2**63), 2**63 - 1) | st.floats(allow_nan=False),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXTS, inner, max_size=3),
    max_leaves=8,
)


@given(
    world=st.dictionaries(TEXTS.filter(lambda key: key != "use"), VALUES, max_size=5),
    stop=st.lists(TEXTS, max_size=3),
    path=TEXTS,
    usd=st.none() | st.floats(0, 1e9),
    temperature=st.none() | st.floats(0, 2),
    models=st.dictionaries(TEXTS, st.floats(0, 1000), max_size=3),
)
def test_a_resolved_configuration_reads_back_as_it_was(
    world: dict[str, Any],
    stop: list[str],
    path: str,
    usd: float | None,
    temperature: float | None,
    models: dict[str, float],
) -> None:
    table: dict[str, Any] = {
        "world": {"use": "jsonl", **world},
        "target": {"model": "openai/x", "stop": stop},
        "skill": {"path": path},
        "prices": {
            name: {"input": rate, "output": rate, "tiers": [{"above": 9, "input": rate, "output": 1.0}]}
            for name, rate in models.items()
        },
    }
    if usd is not None:
        table["budget"] = {"usd": usd}
    if temperature is not None:
        table["target"]["temperature"] = temperature
    config = config_from(table)
    assert config_from(tomllib.loads(dump_toml(config))) == config
