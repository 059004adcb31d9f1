"""What a peer's process can reach, over a real connection: plays, the optimizer, and what they cost."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import aiohttp
import pytest

from whet.core import InputError, RunStopped, Skill, Split
from whet.peers import Peer, find_peers
from whet.peers.bridge import Bridge
from whet.peers.running import run_peer
from whet.testing import rule_of
from whet.training import Workshop, load_config, open_workshop, prepare

SCRIPT = """\
from whet.testing.simulation import student


def coach(request):
    return f"You said: {request.messages[-1].text}"
"""
CONFIG = """\
[world]
use = "whet.testing.simulation:SimulatedWorld"
train = 12
selection = 6
test = 6

[target]
model = "scripted/models.py:student"

[optimizer]
model = "scripted/models.py:coach"
"""


@asynccontextmanager
async def bridged(folder: Path, *overrides: str) -> AsyncIterator[tuple[Bridge, Workshop]]:
    (folder / "models.py").write_text(SCRIPT)
    (folder / "whet.toml").write_text(CONFIG)
    project = prepare(load_config(folder / "whet.toml", overrides), folder)
    async with open_workshop(project, folder / "runs" / "peer") as workshop:
        optimizer = project.models.open("optimizer", project.config.optimizer, workshop.store, workshop.ledger)
        async with Bridge(workshop, optimizer, project.config.optimizer.sampling) as bridge:
            yield bridge, workshop


async def post(url: str, body: Any) -> tuple[int, Any]:
    async with aiohttp.ClientSession() as client, client.post(url, json=body) as response:
        return response.status, await response.json()


async def test_a_peer_plays_tasks_with_a_skill_of_its_own(tmp_path: Path) -> None:
    async with bridged(tmp_path) as (bridge, workshop):
        status, played = await post(f"{bridge.url}/play", {"skill": rule_of("kind0"), "tasks": ["train-0", "train-1"]})
        assert status == 200
        assert [(one["task"], one["hard"]) for one in played] == [("train-0", 1), ("train-1", 0)]
        assert "kind1" in played[1]["feedback"]
        assert workshop.ledger.calls == 2


async def test_the_same_play_again_is_another_try(tmp_path: Path) -> None:
    async with bridged(tmp_path) as (bridge, workshop):
        for _ in range(3):
            await post(f"{bridge.url}/play", {"skill": "", "tasks": ["train-0"]})
        assert workshop.ledger.calls == 3


async def test_test_tasks_are_out_of_reach(tmp_path: Path) -> None:
    async with bridged(tmp_path) as (bridge, workshop):
        status, said = await post(f"{bridge.url}/play", {"skill": "", "tasks": ["test-0"]})
        assert (status, workshop.ledger.calls) == (400, 0)
        assert "test-0" in said["error"]["message"]


async def test_the_optimizer_answers_in_openais_form_and_its_calls_count(tmp_path: Path) -> None:
    async with bridged(tmp_path) as (bridge, _):
        asked = {"model": "any", "messages": [{"role": "user", "content": "Improve it."}], "temperature": 0.3}
        status, reply = await post(f"{bridge.url}/v1/chat/completions", asked)
        assert status == 200
        assert reply["choices"][0]["message"] == {"role": "assistant", "content": "You said: Improve it."}
        async with aiohttp.ClientSession() as client, client.get(f"{bridge.url}/spent") as response:
            assert await response.json() == {"calls": 1}


async def test_only_who_knows_the_path_gets_an_answer(tmp_path: Path) -> None:
    async with bridged(tmp_path) as (bridge, _):
        root = bridge.url.rpartition("/")[0]
        async with aiohttp.ClientSession() as client, client.post(f"{root}/play", json={}) as response:
            assert response.status == 404


async def test_beyond_the_budget_nothing_is_sent(tmp_path: Path) -> None:
    async with bridged(tmp_path, "budget.calls=2") as (bridge, workshop):
        status, said = await post(f"{bridge.url}/play", {"skill": "", "tasks": [f"train-{n}" for n in range(5)]})
        assert status == 402
        assert "budget.calls is used up" in said["error"]["message"]
        assert workshop.ledger.calls <= 2
        assert bridge.failure is not None


async def test_a_python_without_the_peer_is_told_what_to_install(tmp_path: Path) -> None:
    async with bridged(tmp_path) as (bridge, workshop):
        (peer,) = find_peers(["gepa"])
        with pytest.raises(InputError, match=r"has no gepa\. Install gepa==0\.1\.4"):
            await run(peer, bridge, workshop, tmp_path)


async def test_a_peer_that_breaks_says_why_in_one_line(tmp_path: Path) -> None:
    broken = tmp_path / "python"
    broken.write_text("#!/bin/sh\necho something is wrong >&2\nexit 3\n")
    broken.chmod(0o700)
    async with bridged(tmp_path) as (bridge, workshop):
        with pytest.raises(RunStopped, match="gepa failed: something is wrong"):
            await run(Peer("gepa", str(broken)), bridge, workshop, tmp_path)


async def run(peer: Peer, bridge: Bridge, workshop: Workshop, folder: Path) -> None:
    splits = {split: workshop.project.tasks(split) for split in (Split.TRAIN, Split.SELECTION)}
    await run_peer(peer, bridge, folder=folder / "peer", skill=Skill.from_text(""), splits=splits, seed=1, budget=10)


@pytest.mark.parametrize(
    ("named", "said"),
    [("dspy=/usr/bin/python3", "there is no peer 'dspy'. There are: gepa, skillopt"), ("gepa=/no/such", "--peer gepa")],
)
def test_a_peer_that_is_named_wrongly_is_told_so(named: str, said: str) -> None:
    with pytest.raises(InputError, match=said):
        find_peers([named])
