"""A training that is killed again and again ends as if nothing had happened."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from pathlib import Path
from random import Random

import pytest

from whet.store import RunReader
from whet.testing.endpoint import StandInEndpoint, StandInFault, StandInRequest
from whet.testing.project import KEY, KEY_VARIABLE, answer_with, write_project

RESULTS = ("best/SKILL.md", "report.json", "report.md")


async def start(folder: Path, *arguments: str) -> asyncio.subprocess.Process:
    return await asyncio.create_subprocess_exec(
        sys.executable,
        "-m",
        "whet",
        "train",
        "--plain",
        *arguments,
        cwd=folder,
        env={**os.environ, KEY_VARIABLE: KEY},
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
    )


async def train(folder: Path, *arguments: str) -> tuple[int | None, str]:
    process = await start(folder, *arguments)
    said, _ = await process.communicate()
    return process.returncode, said.decode()


def results(folder: Path) -> dict[str, bytes]:
    run = folder / "runs" / "run-1"
    return {name: (run / name).read_bytes() for name in RESULTS}


class Executioner:
    """Serves the models with random delays, and kills the training at a moment nobody can foresee."""

    def __init__(self, seed: int) -> None:
        self.chance = Random(seed)
        self.process: asyncio.subprocess.Process | None = None
        self.countdown = 0
        self.keys: list[str] = []
        self.answer = answer_with()

    async def __call__(self, request: StandInRequest):
        self.keys.append(request.headers["x-whet-key"])
        self.countdown -= 1
        if self.countdown == 0 and self.process is not None:
            asyncio.get_running_loop().call_later(self.chance.random() * 0.02, self.kill, self.process)
        await asyncio.sleep(self.chance.random() * 0.01)
        return self.answer(request)

    def kill(self, process: asyncio.subprocess.Process) -> None:
        if process.returncode is None:
            process.send_signal(signal.SIGKILL)


FULL = (
    "--set",
    "skill.proposals=2",
    "--set",
    "skill.try_edits=1",
    "--set",
    "skill.skill_aware=true",
    "--set",
    "skill.consolidate_above=1",
    "--set",
    "skill.slow_gate=false",
)
PLAIN = ("--set", "skill.slow_update=false", "--set", "skill.memory=false")


async def kill_until_done(folder: Path, executioner: Executioner, *arguments: str) -> int:
    """Start the training at `folder` and kill it, again and again, until it gets through. Gives the kills."""
    kills = 0
    stored: set[bytes] = set()
    while True:
        before = len(executioner.keys)
        executioner.countdown = executioner.chance.randint(1, 6)
        executioner.process = await start(folder, *arguments)
        said, _ = await executioner.process.communicate()
        again = stored & {bytes.fromhex(key) for key in executioner.keys[before:]}
        assert not again, f"after {kills} kills, {len(again)} calls were sent again whose answers were stored"
        if executioner.process.returncode == 0:
            return kills
        assert executioner.process.returncode == -signal.SIGKILL, said.decode()
        kills += 1
        database = folder / "runs" / "run-1" / "run.db"
        if database.exists():
            with RunReader(database) as reader:
                stored = reader.call_keys()


@pytest.mark.slow
@pytest.mark.timeout(600)
@pytest.mark.parametrize(
    ("settings", "in_flight", "epochs", "least"),
    [pytest.param(PLAIN, 8, 9, 100, id="plain"), pytest.param(FULL, 16, 3, 30, id="everything on")],
)
async def test_a_training_killed_again_and_again_repeats_no_stored_call_and_ends_the_same(
    tmp_path: Path, settings: tuple[str, ...], in_flight: int, epochs: int, least: int
) -> None:
    executioner = Executioner(seed=1)
    async with StandInEndpoint(executioner) as endpoint:
        for name in ("undisturbed", "killed"):
            write_project(tmp_path / name, f"{endpoint.base_url}/v1", in_flight=in_flight, epochs=epochs)
        code, said = await train(tmp_path / "undisturbed", *settings)
        assert code == 0, said
        executioner.keys.clear()
        kills = await kill_until_done(tmp_path / "killed", executioner, *settings)
        assert kills >= least
        assert results(tmp_path / "killed") == results(tmp_path / "undisturbed")


@pytest.mark.slow
async def test_a_training_whose_server_goes_away_ends_clearly_and_goes_on_when_it_is_back(tmp_path: Path) -> None:
    answer = answer_with()
    async with StandInEndpoint(answer) as endpoint:
        write_project(tmp_path / "undisturbed", f"{endpoint.base_url}/v1")
        code, said = await train(tmp_path / "undisturbed")
        assert code == 0, said

    gone_after = 300
    no_patience = ("--set", "target.retries=0", "--set", "optimizer.retries=0")

    def answer_for_a_while(request: StandInRequest):
        return answer(request) if request.number < gone_after else StandInFault(drop=True)

    async with StandInEndpoint(answer_for_a_while) as endpoint:
        write_project(tmp_path / "disturbed", f"{endpoint.base_url}/v1")
        code, said = await train(tmp_path / "disturbed", *no_patience)
    assert code == 2
    assert "Traceback" not in said
    assert "closed the connection" in said
    with RunReader(tmp_path / "disturbed" / "runs" / "run-1" / "run.db") as reader:
        kept = len(reader.call_keys())
    assert kept >= gone_after - 10

    async with StandInEndpoint(answer) as endpoint:
        write_project(tmp_path / "disturbed", f"{endpoint.base_url}/v1")
        code, said = await train(tmp_path / "disturbed", "--set", "target.send_late_again=false")
        assert code == 0, said
        assert "going on with run-1" in said
    assert results(tmp_path / "disturbed") == results(tmp_path / "undisturbed")
