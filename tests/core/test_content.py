"""Names made of content: the same everywhere, and different where the content is."""

from __future__ import annotations

import os
import subprocess
import sys
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from whet.core import (
    AdapterRef,
    Harness,
    ModelRef,
    Policy,
    Sampling,
    Skill,
    Split,
    Task,
    ToolMode,
    content_key,
    fingerprint,
    seed_from,
    seed_of,
)

POLICY = Policy(ModelRef("openai", "gpt"), Sampling(), Skill({"SKILL.md": "a", "references/x.md": "b"}))

NAMES = """
from whet.core import ModelRef, Policy, Sampling, Skill, Split, Task, content_key, seed_from
policy = Policy(ModelRef("openai", "gpt"), Sampling(), Skill({"SKILL.md": "a", "references/x.md": "b"}))
task = Task("t", Split.TRAIN, {"b": [1, {"y": None, "x": 2.5}], "a": "text"})
print(policy.fingerprint, task.fingerprint, content_key("k", {"b": 1, "a": 2}).hex(), seed_from("s", {"q": 1, "p": 2}))
"""


@pytest.mark.slow
def test_names_are_the_same_in_every_process() -> None:
    told = {
        subprocess.run(
            [sys.executable, "-c", NAMES],
            env={**os.environ, "PYTHONHASHSEED": seed},
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for seed in ("0", "1", "4242")
    }
    assert len(told) == 1
    assert told.pop().split()[0] == POLICY.fingerprint


JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**63), 2**63) | st.floats(allow_nan=False) | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=4),
    max_leaves=8,
)


def reversed_dicts(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: reversed_dicts(inner) for key, inner in reversed(value.items())}
    return [reversed_dicts(inner) for inner in value] if isinstance(value, list) else value


@given(JSON)
def test_the_order_of_keys_does_not_matter(value: Any) -> None:
    assert fingerprint("x", value) == fingerprint("x", reversed_dicts(value))


def test_the_kind_and_every_part_matter() -> None:
    keys = [
        content_key("a"),
        content_key("b"),
        content_key("a", None),
        content_key("a", ""),
        content_key("a", b""),
        content_key("a", "x", "y"),
        content_key("a", "xy"),
        content_key("a", ["x", "y"]),
        content_key("a", 1),
        content_key("a", "1"),
    ]
    assert len(set(keys)) == len(keys)
    assert {len(key) for key in keys} == {16}


@pytest.mark.parametrize(
    "other",
    [
        {"model": ModelRef("openai", "gpt-2")},
        {"model": ModelRef("azure", "gpt")},
        {"sampling": Sampling(max_tokens=5)},
        {"sampling": Sampling(temperature=0.0)},
        {"sampling": Sampling(thinking=False)},
        {"skill": Skill({"SKILL.md": "a"})},
        {"skill": Skill({"SKILL.md": "a", "references/x.md": "c"})},
        {"skill": Skill({"SKILL.md": "a", "references/y.md": "b"})},
        {"adapter": AdapterRef("f", "base")},
        {"harness": Harness(max_turns=3)},
        {"harness": Harness(tool_mode=ToolMode.TEXT)},
    ],
)
def test_every_part_of_a_policy_names_it(other: dict[str, Any]) -> None:
    assert msgspec.structs.replace(POLICY, **other).fingerprint != POLICY.fingerprint


def test_the_order_of_a_skills_files_does_not_name_it() -> None:
    turned = POLICY.with_skill(Skill({"references/x.md": "b", "SKILL.md": "a"}))
    assert turned.fingerprint == POLICY.fingerprint
    assert turned.skill.fingerprint == POLICY.skill.fingerprint


def test_equal_policies_have_equal_names() -> None:
    same = msgspec.structs.replace(POLICY, sampling=Sampling(max_tokens=int("2048")))
    assert same == POLICY
    assert same.fingerprint == POLICY.fingerprint


def test_a_policy_that_was_stored_keeps_its_name() -> None:
    policy = Policy(
        ModelRef("a", "b"), Sampling(max_tokens=int("2048"), stop=("x",)), Skill.from_text("s"), harness=Harness()
    )
    stored = msgspec.msgpack.decode(msgspec.msgpack.encode(policy), type=Policy)
    assert stored == policy
    assert stored.fingerprint == policy.fingerprint


def test_a_task_is_named_by_its_inputs_and_not_by_its_id() -> None:
    task = Task("a", Split.TRAIN, {"q": 1})
    assert task.fingerprint == Task("b", Split.TEST, {"q": 1}, "kind").fingerprint
    assert task.fingerprint != Task("a", Split.TRAIN, {"q": 2}).fingerprint


@given(st.binary(min_size=16, max_size=16), st.integers(0, 100))
def test_seeds_fit_every_endpoint(key: bytes, part: int) -> None:
    assert 0 <= seed_from(key, part) < 2**31
    assert 0 <= seed_of(key) < 2**31
    assert seed_from(key, part) != seed_from(key, part + 1)
