"""A published SkillOpt configuration becomes one of ours, and nothing is dropped in silence."""

from __future__ import annotations

import tomllib
from pathlib import Path

import pytest

from whet.core import InputError
from whet.training.skillopt import import_skillopt

STRUCTURED = """\
_base_: base.yaml
model:
  optimizer: gpt-5.5
  target: qwen3-8b
  target_backend: qwen_chat
  azure_api_key: sk-very-secret-value
train:
  num_epochs: 3
  accumulation: 2
optimizer:
  learning_rate: 6
  lr_scheduler: cosine
  skill_update_mode: rewrite_from_suggestions
  use_slow_update: true
  longitudinal_pair_policy: changed
  use_skill_aware_reflection: true
evaluation:
  use_gate: false
  gate_metric: mixed
env:
  name: searchqa
  skill_init: skills/start.md
"""


def test_a_structured_file_with_a_base_is_read(tmp_path: Path) -> None:
    (tmp_path / "base.yaml").write_text("train:\n  num_epochs: 9\n  batch_size: 12\n  seed: 7\n")
    (tmp_path / "config.yaml").write_text(STRUCTURED)
    imported = import_skillopt(tmp_path / "config.yaml")
    table = tomllib.loads(imported.toml)
    assert table["train"] == {"epochs": 3, "batch_size": 12, "seed": 7, "accumulation": 2}
    assert table["target"]["model"] == "qwen/qwen3-8b"
    assert table["optimizer"]["model"] == "openai/gpt-5.5"
    assert table["skill"]["path"] == "skills/start.md"
    assert table["skill"]["learning_rate"] == 6
    assert table["skill"]["update"] == "rewrite"
    assert table["skill"]["pairs"] == "changed"
    assert table["skill"]["skill_aware"] is True
    assert table["gate"]["rule"] == "off"
    assert table["gate"]["metric"] == "mixed"


def test_keys_are_neither_taken_nor_shown(tmp_path: Path) -> None:
    (tmp_path / "base.yaml").write_text("")
    (tmp_path / "config.yaml").write_text(STRUCTURED)
    imported = import_skillopt(tmp_path / "config.yaml")
    assert "very-secret" not in imported.toml + " ".join(imported.left_out)
    assert any("azure_api_key" in line and "environment" in line for line in imported.left_out)
    assert any(line.startswith("env = 'searchqa'") for line in imported.left_out)


@pytest.mark.parametrize(
    ("yaml", "schedule"),
    [
        ("lr_scheduler: linear", "linear"),
        ("lr_scheduler: autonomous", "none"),
        ("lr_control_mode: autonomous", "autonomous"),
        ("lr_control_mode: none\nlr_scheduler: cosine", "none"),
    ],
)
def test_the_flat_form_and_its_learning_rate_modes(tmp_path: Path, yaml: str, schedule: str) -> None:
    (tmp_path / "flat.yaml").write_text(yaml + "\n")
    table = tomllib.loads(import_skillopt(tmp_path / "flat.yaml").toml)
    assert table["skill"]["schedule"] == schedule


@pytest.mark.parametrize(
    "text", ["a: [1", "- 1\n", "_base_: x.yaml\n", "train:\n  num_epochs: many\n", "optimizer:\n  learning_rate: -1\n"]
)
def test_what_is_no_such_file_is_one_clear_error(tmp_path: Path, text: str) -> None:
    (tmp_path / "x.yaml").write_text(text)
    with pytest.raises(InputError):
        import_skillopt(tmp_path / "x.yaml")
