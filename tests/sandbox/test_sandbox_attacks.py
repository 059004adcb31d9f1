"""Every attack of the suite works in the open and fails behind the walls that are said to stop it."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import suite

from whet.sandbox import INSTALL_BUBBLEWRAP, Danger, Level, survey
from whet.sandbox.inside.landlock import abi

HERE = Path(__file__).parent
AS_ROOT = ("root", "root with a Python that all may read") if os.geteuid() == 0 else ()
USERS = (*AS_ROOT, "ordinary user")
STARTED_BY = {
    "root": [],
    "root with a Python that all may read": [str(HERE / "ordinary.py"), "root"],
    "ordinary user": [str(HERE / "ordinary.py"), "nobody"],
}
pytestmark = [pytest.mark.slow, pytest.mark.skipif(sys.platform != "linux", reason="these walls are Linux's")]


def succeeded(user: str, *words: str) -> set[str]:
    """The attacks that got what they wanted."""
    done = subprocess.run(
        [sys.executable, *STARTED_BY[user], str(HERE / "suite.py"), *words],
        env={"WHET_TEST_SECRET": "1", "PATH": os.environ["PATH"]},
        capture_output=True,
        timeout=110,
        check=False,
    )
    assert done.returncode == 0, done.stderr.decode("utf-8", "replace")[-2000:]
    found: dict[str, bool] = json.loads(done.stdout.splitlines()[-1])
    return {name for name, success in found.items() if success}


def require(level: Level) -> None:
    if level is Level.NAMESPACES and shutil.which("bwrap") is None:
        pytest.fail(f"this test needs bubblewrap: {INSTALL_BUBBLEWRAP}")


def test_there_are_many_attacks_and_each_is_named_once() -> None:
    assert len(suite.names()) == len(set(suite.names())) >= 60


@pytest.mark.parametrize("user", USERS)
def test_every_attack_works_where_there_is_no_sandbox(user: str) -> None:
    beyond = suite.ONLY_FOR_ROOT if user == "ordinary user" else set()
    assert set(suite.names()) - beyond - succeeded(user, "open") == set()


@pytest.mark.parametrize("user", USERS)
@pytest.mark.parametrize("level", [Level.NAMESPACES, Level.KERNEL])
def test_no_attack_gets_through_the_walls(level: Level, user: str) -> None:
    require(level)
    assert succeeded(user, level, "99") == set()


@pytest.mark.parametrize("user", USERS)
@pytest.mark.parametrize("version", range(1, 7))
def test_no_attack_gets_through_where_the_kernel_has_an_older_landlock(version: int, user: str) -> None:
    if version >= abi():
        pytest.skip(f"this kernel's Landlock is {abi()} itself")
    assert succeeded(user, Level.KERNEL, str(version), "quick") == set()


@pytest.mark.parametrize("user", USERS)
def test_bare_processes_stop_what_they_say_and_nothing_is_claimed_beyond(user: str) -> None:
    got = succeeded(user, Level.PROCESS, "99")
    standing = survey().of(Level.PROCESS)
    assert got & {name for danger in standing.stops for name in suite.ATTACKS[danger]} == set()
    for danger in standing.leaves:
        assert danger is Danger.SEE_NAMES or got & set(suite.ATTACKS[danger]), danger
