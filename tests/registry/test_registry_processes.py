"""Four processes publish, activate and roll back at once, and are killed at random: nobody who is served notices."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from drafts import BASE, WORLD, draft

from whet.registry import Registry, State, open_registry
from whet.testing import FakeClock

HERE = Path(__file__).parent
CALLS = 1000
PROCESSES = 4

WORKER = """
import random, sys
from pathlib import Path
from drafts import BASE, WORLD, draft, policy
from whet.core import InputError, SystemClock
from whet.registry import open_registry

chance = random.Random(int(sys.argv[2]))
with open_registry(Path(sys.argv[1]), SystemClock(), who=sys.argv[2]) as registry:
    print("ready", flush=True)
    while True:
        try:
            match chance.randrange(4):
                case 0:
                    registry.publish(draft(f"text {chance.randrange(40)}", over=policy("start")))
                case 1 | 2:
                    registry.activate(chance.choice(registry.records()).id, force=True)
                case 3:
                    registry.rollback(WORLD, BASE.fingerprint)
        except InputError as refused:
            assert "nothing was active" in str(refused), refused
        print("done", flush=True)
"""


class Worker:
    def __init__(self, home: Path, number: int) -> None:
        self.process = subprocess.Popen(
            [sys.executable, "-c", WORKER, str(home), str(number)],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env={**os.environ, "PYTHONPATH": str(HERE)},
        )
        assert self.process.stdout is not None
        self.lines = self.process.stdout
        assert self.lines.readline() == b"ready\n", (self.process.communicate()[1] or b"").decode()[-800:]

    def done(self) -> None:
        assert self.lines.readline() == b"done\n", (self.process.communicate()[1] or b"").decode()[-800:]

    def kill(self) -> int:
        """How many of its calls are known to have ended."""
        self.process.send_signal(signal.SIGKILL)
        return self.process.communicate()[0].count(b"done\n")


@pytest.mark.slow
@pytest.mark.timeout(300)
def test_killed_publishers_leave_one_active_policy_and_no_stray_file(tmp_path: Path) -> None:
    chance = random.Random(7)
    with open_registry(tmp_path, FakeClock()) as registry:
        first = registry.publish(draft("the first"))
        registry.activate(first.id, force=True)
        workers = [Worker(tmp_path, number) for number in range(PROCESSES)]
        calls, kills = 0, 0
        try:
            while calls < CALLS:
                for _ in range(chance.randrange(1, 30)):
                    chance.choice(workers).done()
                    calls += 1
                    resolves_to_whole_record(registry)
                place = chance.randrange(PROCESSES)
                calls += workers[place].kill()
                kills += 1
                workers[place] = Worker(tmp_path, 100 + kills)
        finally:
            for worker in workers:
                worker.kill()
        resolves_to_whole_record(registry)
        assert kills >= 10
        registry.publish(draft("the last"))
        packages = {path.name for path in (tmp_path / "registry" / "packages").iterdir()}
        assert packages == {record.package for record in registry.records()}
        assert {path.name for path in (tmp_path / "registry").iterdir()} <= {
            "packages",
            "registry.db",
            "registry.db-wal",
            "registry.db-shm",
        }


def resolves_to_whole_record(registry: Registry) -> None:
    """There is one, and its files are there: at every moment, whoever died."""
    record = registry.resolve(WORLD, BASE.fingerprint)
    assert record is not None
    assert registry.damaged(record) == []
    assert sum(one.state is State.ACTIVE for one in registry.records()) == 1
