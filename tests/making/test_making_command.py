"""`whet world make`, as it is called: what it prints, how it ends, and that no kill costs more than calls in flight."""

from __future__ import annotations

import asyncio
import json
import os
import shutil
import signal
import sys
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from random import Random

import pytest
from click.testing import CliRunner, Result
from scripted_optimizer import Known
from workshop import THEME, files_in

from whet.cli.app import main
from whet.core import ModelReply, Usage
from whet.store import RunReader
from whet.testing.endpoint import StandInEndpoint, StandInRequest
from whet.testing.project import asked_of
from whet.worlds import load_world
from whet.worlds.awm import read_layout

SCRIPTED = '[optimizer]\nmodel = "scripted/scripted/scripted_optimizer.py:answer"\n'
KILLS = 8
Whet = Callable[..., Result]


@pytest.fixture
def project(pack: Path, tmp_path: Path) -> Path:
    beside = tmp_path / "scripted"
    shutil.copytree(pack, beside / "pack")
    shutil.copy(Path(__file__).with_name("scripted_optimizer.py"), beside)
    (tmp_path / "whet.toml").write_text(SCRIPTED)
    return tmp_path


@pytest.fixture
def whet(project: Path) -> Whet:
    def call(*arguments: str) -> Result:
        command = ["world", "make", *arguments, "--project", str(project), "--plain"]
        return CliRunner().invoke(main, command, env={"WHET_DEBUG": None, "OPENAI_API_KEY": None})

    return call


def asked(project: Path) -> list[str]:
    file = project / "scripted" / "asked.txt"
    return file.read_text().split() if file.exists() else []


@pytest.mark.slow
def test_a_theme_becomes_a_world_that_is_played_by_what_is_printed(project: Path, whet: Whet) -> None:
    ran = whet(THEME, "--tasks", "2", "--json")
    assert ran.exit_code == 0, ran.output
    made = json.loads(ran.stdout)
    assert (made["sound"], made["stopped"], made["scenarios"][0]["name"]) == (2, "", "library")
    assert {outcome for task in made["audit"] for outcome in task["outcomes"].values()} == {"sound"}
    calls = len(asked(project))

    again = whet(THEME, "--tasks", "2")
    assert (again.exit_code, len(asked(project))) == (0, calls)
    assert "2 of 2 tasks sound." in again.stdout
    (settings,) = (line for line in again.stdout.splitlines() if line.startswith("path = "))
    world = load_world("awm", {"path": json.loads(settings.removeprefix("path = "))}, base_dir=project)
    assert world.name


def test_exit_code_1_where_nothing_sound_came_about(project: Path, whet: Whet) -> None:
    (project / "scripted" / "never.py").write_text("def answer(request):\n    return 'I would rather not.'\n")
    (project / "whet.toml").write_text(SCRIPTED.replace("scripted_optimizer", "never"))
    ran = whet(THEME, "--corrections", "1")
    assert ran.exit_code == 1, ran.output
    assert "scenario: 2 answers, none of them sound; of the last: the reply is not JSON" in ran.stdout
    assert "0 of 0 tasks sound." in ran.stdout
    assert whet(THEME, "--corrections", "1", "--json").exit_code == 1


def test_exit_code_1_and_how_to_go_on_where_the_budget_stops_it(project: Path, whet: Whet) -> None:
    ran = whet(THEME, "--set", "budget.calls=2")
    assert ran.exit_code == 1, ran.output
    assert "budget.calls" in ran.stderr
    assert "--set budget.calls=" in ran.stderr
    assert asked(project) == ["scenario", "tasks"]


@pytest.mark.parametrize(
    ("config", "arguments", "said"),
    [
        ("", [THEME], "optimizer.model is missing"),
        ('[optimizer]\nmodel = "openai/gpt-5.5"\n', [THEME], "OPENAI_API_KEY"),
        (SCRIPTED, [" "], "the theme is empty"),
        (SCRIPTED, [THEME, "--tasks", "0"], "--tasks"),
        (SCRIPTED, [THEME, "--set", "optimiser.model=x"], "optimizer"),
        (SCRIPTED, [], "THEME"),
    ],
)
def test_exit_code_2_and_the_reason_where_it_cannot_run(
    project: Path, whet: Whet, config: str, arguments: list[str], said: str
) -> None:
    (project / "whet.toml").write_text(config)
    ran = whet(*arguments)
    assert ran.exit_code == 2, ran.output
    assert said in ran.stderr
    assert len(ran.stderr.strip().splitlines()) == 1
    assert not (project / "worlds").exists()


def test_exit_code_2_where_the_folder_holds_what_cannot_be_read(project: Path, whet: Whet) -> None:
    folder = project / "worlds" / "made"
    folder.mkdir(parents=True)
    (folder / "gen_tasks.jsonl").write_text("{}\n")
    ran = whet(THEME)
    assert ran.exit_code == 2, ran.output
    assert "lacks gen_db.jsonl" in ran.stderr
    assert not asked(project)


class Executioner:
    """The optimizer behind an endpoint, which has the making killed at moments that nobody can foresee."""

    def __init__(self, known: Known, seed: int) -> None:
        self.chance = Random(seed)
        self.keys: list[str] = []
        self.process: asyncio.subprocess.Process | None = None
        self.countdown = 0
        self._known = known

    def __call__(self, request: StandInRequest) -> ModelReply:
        self.keys.append(request.headers["x-whet-key"])
        self.countdown -= 1
        if self.countdown == 0 and self.process is not None:
            self.kill_within(0.1)
        return ModelReply(json.dumps(self._known.answer(asked_of(request.body))), usage=Usage(100, 100))

    def kill_within(self, seconds: float) -> None:
        assert self.process is not None
        loop = asyncio.get_running_loop()
        loop.call_later(self.chance.random() * seconds, self._kill, self.process)

    def _kill(self, process: asyncio.subprocess.Process) -> None:
        if process.returncode is None:
            with suppress(ProcessLookupError):
                process.send_signal(signal.SIGKILL)


async def start(folder: Path) -> asyncio.subprocess.Process:
    return await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "whet", "world", "make", THEME, "--tasks", "2", "--plain"),
        cwd=folder,
        env={**os.environ, "WHET_TEST_KEY": "sk-test"},
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
    )


@pytest.mark.slow
@pytest.mark.timeout(300)
async def test_a_making_killed_again_and_again_repeats_no_stored_call_and_ends_the_same(
    library: Known, tmp_path: Path
) -> None:
    executioner = Executioner(library, seed=3)
    async with StandInEndpoint(executioner) as endpoint:
        for name in ("undisturbed", "killed"):
            (tmp_path / name).mkdir()
            (tmp_path / name / "whet.toml").write_text(
                f'[optimizer]\nmodel = "openai/author"\nbase_url = "{endpoint.base_url}/v1"\n'
                'api_key_env = "WHET_TEST_KEY"\nsend_purpose = true\nsend_late_again = false\n'
            )
        said, _ = await (await start(tmp_path / "undisturbed")).communicate()
        assert b"2 of 2 tasks sound." in said, said.decode()
        calls = len(executioner.keys)
        executioner.keys.clear()
        await kill_again_and_again(tmp_path / "killed", executioner, calls)
        said, _ = await (await start(tmp_path / "killed")).communicate()
        assert b"2 of 2 tasks sound." in said, said.decode()
    assert calls <= len(executioner.keys) <= calls + 2 * KILLS, "only calls in flight are lost: two tasks at once"
    made = tmp_path / "killed" / "worlds" / "made"
    assert files_in(made) == files_in(tmp_path / "undisturbed" / "worlds" / "made")


async def kill_again_and_again(folder: Path, executioner: Executioner, calls: int) -> None:
    """After one or two calls each time; and when all are answered, at any moment of what comes then."""
    made, stored, kills = folder / "worlds" / "made", set[bytes](), 0
    while kills < KILLS:
        before = len(executioner.keys)
        executioner.countdown = executioner.chance.randint(1, 2)
        executioner.process = await start(folder)
        if len(stored) == calls:
            executioner.kill_within(3.0)
        said, _ = await executioner.process.communicate()
        again = stored & {bytes.fromhex(key) for key in executioner.keys[before:]}
        assert not again, f"after {kills} kills, {len(again)} calls were sent again whose answers were stored"
        assert executioner.process.returncode in (0, -signal.SIGKILL), said.decode()
        kills += executioner.process.returncode != 0
        if (made / "gen_tasks.jsonl").exists():
            layout = read_layout(made)
            assert (set(layout.scenarios), layout.problems) == ({"library"}, {}), "whole, or not there"
        if (made / ".making" / "run.db").exists():
            with RunReader(made / ".making" / "run.db") as reader:
                stored = reader.call_keys()
    executioner.countdown = 0
