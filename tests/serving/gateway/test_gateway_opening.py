"""From a project and options to who answers."""

from __future__ import annotations

from pathlib import Path

import pytest

from whet.core import ConfigError, SystemClock, fingerprint
from whet.models import RoleSettings
from whet.models.embedded import EmbeddedSettings
from whet.serving.gateway import VLLM, Passing
from whet.serving.gateway.opening import Opened, Wanted, answer_schemas, opened
from whet.training import load_config, prepare
from whet.worlds.games.grid_ctf import GridCtf

PROJECT = '[world]\nuse = "grid_ctf"\n[target]\nmodel = "ollama/small"\nconstrained = {}\n'


async def found(wanted: Wanted, base_dir: Path, **environ: str) -> Opened:
    async with opened(
        wanted, environ=environ, clock=SystemClock(), base_dir=base_dir, layout=EmbeddedSettings()
    ) as opening:
        return opening


async def test_a_name_leads_to_who_answers_and_to_the_base_that_the_registry_knows(tmp_path: Path) -> None:
    plain = await found(Wanted(RoleSettings(model="ollama/small")), tmp_path)
    assert type(plain.upstream) is Passing
    assert plain.upstream.base.fingerprint == fingerprint("base", "ollama/small")
    there = Wanted(RoleSettings(model="vllm/small"), "http://127.0.0.1:9/v1", "vllm", "small")
    assert type((await found(there, tmp_path)).upstream) is VLLM
    renamed = Wanted(RoleSettings(model="openai/gpt"), "http://127.0.0.1:9/v1", "vllm", "mine")
    opening = await found(renamed, tmp_path)
    assert (opening.upstream.base.name, str(opening.bare.model)) == ("openai/gpt", "vllm/mine")


@pytest.mark.parametrize(
    ("model", "said"), [("anthropic/big", "OpenAI's wire"), ("scripted/agent.py:play", "--base"), ("local/x", "x")]
)
async def test_what_cannot_be_served_is_told_before_anything_is_listened_on(
    model: str, said: str, tmp_path: Path
) -> None:
    with pytest.raises(ConfigError, match=said):
        await found(Wanted(RoleSettings(model=model)), tmp_path, ANTHROPIC_API_KEY="key")


@pytest.mark.parametrize("constrained", [True, False])
async def test_a_project_tells_what_its_agent_s_answers_are_held_to(constrained: bool, tmp_path: Path) -> None:
    (tmp_path / "whet.toml").write_text(PROJECT.format(str(constrained).lower()))
    project = prepare(load_config(tmp_path / "whet.toml"), tmp_path, environ={})
    schemas = await answer_schemas(project)
    assert schemas == ({"grid_ctf": GridCtf.answer_schema} if constrained else {})
