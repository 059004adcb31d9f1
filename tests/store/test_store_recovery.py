"""What a run's file promises when its process dies, its disk fills up, or it was made by another whet."""

from __future__ import annotations

import os
import signal
import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import msgspec
import pytest
from storing import Onlooker, attempt_row, call_key, call_row, rollout_row, trajectory

from whet.core import InputError, Policy, Score, Split, StoreBusy, StoreError, StoreTooNew
from whet.store import (
    MIGRATIONS,
    SCHEMA_VERSION,
    AttemptStatus,
    DecisionRow,
    FailureRow,
    MetaRow,
    PolicyRow,
    RunReader,
    open_run,
    writer_of,
)
from whet.testing import FakeClock

HERE = Path(__file__).parent

HOLDER = """
import asyncio, sys
from pathlib import Path
from storing import attempt_row, call_row
from whet.store import AttemptStatus, open_run

async def main():
    store = open_run(Path(sys.argv[1]))
    await store.write(call_row(1), attempt_row(1, AttemptStatus.ANSWERED))
    await store.write(attempt_row(2, AttemptStatus.OPEN, tokens=700, nanodollars=9000))
    store.add(call_row(3))
    print("ready", flush=True)
    sys.stdin.read()

asyncio.run(main())
"""

FULL_DISK = """
import asyncio, resource, sys
from pathlib import Path
from storing import Onlooker, call_row
from whet.core import StoreFull
from whet.store import open_run

async def main():
    path = Path(sys.argv[1])
    store = open_run(path)
    _, most = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (400_000, most))
    stored = []
    try:
        for number in range(10_000):
            await store.write(call_row(number, text="x" * 2000))
            stored.append(number)
        raise AssertionError("the limit was never reached")
    except StoreFull as error:
        assert "Make room" in str(error), error
    assert stored, "nothing was stored before the disk was full"
    try:
        await store.write(call_row(10_001))
        raise AssertionError("it was written to after it was full")
    except StoreFull:
        pass
    try:
        await store.aclose()
        raise AssertionError("it was closed without a word")
    except StoreFull:
        pass
    resource.setrlimit(resource.RLIMIT_FSIZE, (most, most))
    assert Onlooker(path).answers() == stored
    store = open_run(path)
    await store.write(call_row(len(stored)))
    await store.aclose()
    assert Onlooker(path).answers() == [*stored, len(stored)]
    print("went on after", len(stored))

asyncio.run(main())
"""


def python(source: str, *arguments: object) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-c", source, *map(str, arguments)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": str(HERE)},
    )


@pytest.fixture
def holder(tmp_path: Path) -> Iterator[subprocess.Popen[str]]:
    """Another process that writes the run at tmp_path."""
    process = python(HOLDER, tmp_path / "run.db")
    assert process.stdout is not None
    assert process.stdout.readline() == "ready\n"
    yield process
    process.kill()
    process.communicate()


def test_a_second_writer_is_told_who_writes(tmp_path: Path, holder: subprocess.Popen[str]) -> None:
    assert writer_of(tmp_path / "run.lock") == holder.pid
    with pytest.raises(StoreBusy, match=rf"another process \(pid {holder.pid}\)"):
        open_run(tmp_path / "run.db")


def test_readers_read_what_another_process_writes(tmp_path: Path, holder: subprocess.Popen[str]) -> None:
    with RunReader(tmp_path / "run.db") as reader:
        assert [call.reply.text for call in reader.calls()] == ["answer 1"]


async def test_a_killed_writer_leaves_the_run_free_and_its_open_calls_counted(
    tmp_path: Path, holder: subprocess.Popen[str]
) -> None:
    holder.send_signal(signal.SIGKILL)
    holder.wait()
    assert writer_of(tmp_path / "run.lock") is None
    store = open_run(tmp_path / "run.db")
    spent = store.spending()
    assert (spent.calls, spent.tokens, spent.nanodollars, spent.last_attempt) == (2, 800, 14_000, 2)
    reply = store.reply(call_key(1))
    assert reply is not None
    assert reply.text == "answer 1"
    with RunReader(store.path) as reader:
        (line,) = reader.spending()
        assert (line.attempts, line.answers, line.lost) == (2, 1, 1)
    await store.aclose()


async def test_a_run_that_was_closed_has_no_writer(tmp_path: Path) -> None:
    assert writer_of(tmp_path / "run.lock") is None
    store = open_run(tmp_path / "run.db")
    assert writer_of(tmp_path / "run.lock") == os.getpid()
    with pytest.raises(StoreBusy):
        open_run(tmp_path / "run.db")
    await store.aclose()
    assert writer_of(tmp_path / "run.lock") is None


@pytest.mark.slow
def test_a_full_disk_ends_the_run_and_room_lets_it_go_on(tmp_path: Path) -> None:
    process = python(FULL_DISK, tmp_path / "run.db")
    said, _ = process.communicate(timeout=60)
    assert process.returncode == 0
    assert said.startswith("went on after")


def old_file(path: Path, version: int) -> None:
    """A file as whet wrote it at an earlier version, with a row in each table that counts."""
    with closing(sqlite3.connect(path, isolation_level=None)) as db:
        db.execute("PRAGMA journal_mode = WAL")
        for statements in MIGRATIONS[:version]:
            for statement in statements:
                db.execute(statement)
        db.execute(f"PRAGMA user_version = {version}")
        rows = (
            call_row(1),
            attempt_row(1, AttemptStatus.ANSWERED),
            attempt_row(2, AttemptStatus.OPEN, tokens=5, nanodollars=7),
            rollout_row(1),
            FailureRow(b"f", "world", "task-1", "it broke", 1.0),
            MetaRow("settings", "{}"),
        )
        for row in rows:
            db.execute(row.sql, row.values())


async def test_an_older_file_is_lifted_and_keeps_its_rows(tmp_path: Path) -> None:
    path = tmp_path / "run.db"
    old_file(path, 1)
    with pytest.raises(StoreError, match=r"older schema \(1;"):
        RunReader(path)
    store = open_run(path)
    assert store.spending().calls == 2
    assert store.rollout(rollout_row(1).key) == trajectory(1)
    assert store.meta("settings") == "{}"
    await store.write(call_row(2))
    await store.aclose()
    with RunReader(path) as reader:
        assert [call.reply.text for call in reader.calls()] == ["answer 1", "answer 2"]
        assert [failure.message for failure in reader.failures()] == ["it broke"]
        assert reader.spending()[0].lost == 1


async def test_a_lift_that_breaks_off_leaves_the_file_as_it_was(tmp_path: Path) -> None:
    path = tmp_path / "run.db"
    old_file(path, 1)
    with closing(sqlite3.connect(path)) as db:
        # Something in the way of the next version's table.
        db.execute("CREATE TABLE sessions (mine TEXT)")
    with pytest.raises(StoreError):
        open_run(path)
    with closing(sqlite3.connect(path)) as db:
        assert db.execute("PRAGMA user_version").fetchone() == (1,)
        assert db.execute("SELECT count(*) FROM calls").fetchone() == (1,)
        db.execute("DROP TABLE sessions")
    store = open_run(path)
    assert store.spending().calls == 2
    await store.aclose()


def test_a_file_of_a_later_whet_is_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "run.db"
    open_run(path, FakeClock()).close()
    with closing(sqlite3.connect(path)) as db:
        db.execute(f"PRAGMA user_version = {SCHEMA_VERSION + 1}")
    with pytest.raises(StoreTooNew, match="Upgrade whet"):
        open_run(path)
    with pytest.raises(StoreTooNew, match="Upgrade whet"):
        RunReader(path)
    assert writer_of(path.with_suffix(".lock")) is None


def test_what_is_not_a_database_is_one_clear_error(tmp_path: Path) -> None:
    path = tmp_path / "run.db"
    path.write_bytes(b"these are not the tables you are looking for" * 100)
    with pytest.raises(StoreError, match="move the run's folder away"):
        open_run(path)
    with pytest.raises(StoreError, match="cannot be read"):
        RunReader(path)
    assert writer_of(path.with_suffix(".lock")) is None


def damage(path: Path, first_page: int) -> None:
    content = bytearray(path.read_bytes())
    for page in range(first_page, len(content) // 4096):
        content[page * 4096 : page * 4096 + 100] = b"\xff" * 100
    path.write_bytes(content)


@pytest.mark.parametrize("first_page", [2, 20], ids=["all tables", "rows alone"])
async def test_a_file_damaged_in_its_middle_is_one_clear_error(tmp_path: Path, first_page: int) -> None:
    path = tmp_path / "run.db"
    store = open_run(path)
    await store.write(*(call_row(number, text="x" * 500) for number in range(400)))
    await store.aclose()
    damage(path, first_page)
    with pytest.raises(StoreError, match="move the run's folder away"), RunReader(path) as reader:
        list(reader.calls())


async def test_looking_up_in_a_damaged_file_is_one_clear_error(tmp_path: Path) -> None:
    path = tmp_path / "run.db"
    store = open_run(path)
    await store.write(*(call_row(number, text="x" * 500) for number in range(400)))
    await store.aclose()
    damage(path, 20)
    store = open_run(path)
    with pytest.raises(StoreError, match="move the run's folder away"):
        store.reply(call_key(200))
    store.close()


def test_there_is_no_reading_of_a_run_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="there is no run"):
        RunReader(tmp_path / "run.db")
    assert list(tmp_path.iterdir()) == []


class Note(msgspec.Struct, frozen=True):
    text: str


async def test_the_reader_tells_what_was_written(tmp_path: Path, policy: Policy) -> None:
    store = open_run(tmp_path / "run.db", FakeClock(wall=50.0))
    await store.write(
        PolicyRow(policy),
        *(call_row(number) for number in (1, 2)),
        attempt_row(1, AttemptStatus.ANSWERED, tokens=10, nanodollars=5, seconds=1.0),
        attempt_row(2, AttemptStatus.FAILED, tokens=0, nanodollars=0),
        attempt_row(3, AttemptStatus.ABANDONED, tokens=7, nanodollars=3),
        rollout_row(1, hard=True, policy="p"),
        rollout_row(2, hard=False, policy="p"),
        rollout_row(3, hard=True, policy="p", split=Split.TEST),
        rollout_row(4, hard=True, policy="q"),
        FailureRow(b"f", "world", "task-9", "it broke", 1.0),
        DecisionRow(b"b", "note", "000002", 60.0, Note("second")),
        DecisionRow(b"a", "note", "000001", 70.0, Note("first")),
    )
    with RunReader(store.path) as reader:
        (line,) = reader.spending()
        assert (line.attempts, line.answers, line.failed, line.abandoned, line.lost) == (3, 1, 1, 1, 0)
        assert (line.tokens, line.nanodollars, line.seconds) == (17, 8, 1.0)
        (answered,) = reader.answered()
        assert (answered.calls, answered.input_tokens, answered.output_tokens) == (2, 20, 3)
        assert {(one.policy, one.split): one.score for one in reader.scores()} == {
            ("p", Split.TRAIN): Score(0.5, 0.5, 2),
            ("p", Split.TEST): Score(1.0, 1.0, 1),
            ("q", Split.TRAIN): Score(1.0, 1.0, 1),
        }
        assert [note.text for note in reader.decisions("note", Note)] == ["first", "second"]
        assert [one.trajectory.task for one in reader.rollouts(policy="p", split=Split.TRAIN)] == ["task-1", "task-2"]
        assert [one.trajectory.task for one in reader.rollouts(task="task-4")] == ["task-4"]
        assert reader.policy(policy.fingerprint) == policy
        assert reader.policies() == [policy]
        assert reader.counts() == {"calls": 2, "rollouts": 4, "failures": 1, "decisions": 2}
    await store.aclose()


async def test_decisions_that_are_written_again_are_counted_once(tmp_path: Path) -> None:
    store = open_run(tmp_path / "run.db")
    for _ in range(3):
        await store.write(DecisionRow(b"a", "note", "1", 1.0, Note("a")))
        await store.write(DecisionRow(b"b", "note", "2", 2.0, Note("b")))
    with RunReader(store.path) as reader:
        assert reader.counts()["decisions"] == 2
        assert [note.text for note in reader.decisions("note", Note)] == ["a", "b"]
    await store.aclose()


async def test_a_run_without_decisions_has_its_activity_too(tmp_path: Path) -> None:
    clock = FakeClock(wall=5_000.0)
    store = open_run(tmp_path / "run.db", clock)
    await clock.advance(10.0)
    await store.write(call_row(1))
    with RunReader(store.path) as reader:
        assert reader.last_activity() == 5_010.0
    await store.aclose()


async def test_every_open_attempt_of_the_past_is_lost_and_none_of_the_present(tmp_path: Path) -> None:
    store = open_run(tmp_path / "run.db")
    await store.write(attempt_row(1, AttemptStatus.OPEN), attempt_row(2, AttemptStatus.FAILED))
    await store.aclose()
    store = open_run(tmp_path / "run.db")
    await store.write(attempt_row(3, AttemptStatus.OPEN))
    db = Onlooker(store.path).db
    assert db.execute("SELECT id, status FROM attempts ORDER BY id").fetchall() == [
        (1, "lost"),
        (2, "failed"),
        (3, "open"),
    ]
    assert store.spending().tokens == 300
    await store.aclose()
