"""What `write` and `add` promise about the moment at which a row is safe."""

from __future__ import annotations

import asyncio
import sqlite3
import tempfile
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from storing import Onlooker, attempt_row, call_key, call_row, commits_in, rollout_row, trajectory

from whet.core import End, Split, StoreBusy, StoreError, Trajectory, Verdict
from whet.store import LOCK_PATIENCE, AttemptStatus, RolloutRow, RunReader, open_run
from whet.testing import FakeClock, settle


async def test_write_returns_only_after_the_row_is_committed(tmp_path: Path) -> None:
    store = open_run(tmp_path / "run.db")
    others = Onlooker(store.path)
    writing = asyncio.create_task(store.write(call_row(1)))
    assert others.answers() == []
    await writing
    assert others.answers() == [1]
    await store.aclose()


async def test_rows_of_one_turn_share_one_transaction(tmp_path: Path) -> None:
    store = open_run(tmp_path / "run.db")
    wal = tmp_path / "run.db-wal"
    before = commits_in(wal)
    await asyncio.gather(*(store.write(call_row(number)) for number in range(50)))
    assert commits_in(wal) == before + 1
    for number in range(50, 53):
        await store.write(call_row(number))
    assert commits_in(wal) == before + 4
    await store.aclose()


async def test_added_rows_are_written_with_the_next_commit_or_soon(tmp_path: Path) -> None:
    clock = FakeClock()
    store = open_run(tmp_path / "run.db", clock)
    others = Onlooker(store.path)
    store.add(call_row(1))
    await settle()
    assert others.answers() == []
    await store.write(call_row(2))
    assert others.answers() == [1, 2]
    store.add(call_row(3))
    await clock.advance(1.0)
    assert others.answers() == [1, 2, 3]
    await store.aclose()


async def test_closing_writes_what_was_added(tmp_path: Path) -> None:
    store = open_run(tmp_path / "run.db", FakeClock())
    store.add(call_row(1), call_row(2))
    await store.aclose()
    assert Onlooker(store.path).answers() == [1, 2]


async def test_an_added_rollout_is_found_before_it_is_committed(tmp_path: Path) -> None:
    store = open_run(tmp_path / "run.db", FakeClock())
    row = rollout_row(1)
    store.add(row)
    assert store.rollout(row.key) == row.trajectory
    await store.aclose()


async def test_the_first_answer_under_a_key_stays(tmp_path: Path) -> None:
    store = open_run(tmp_path / "run.db")
    await store.write(call_row(1, text="first"))
    await store.write(call_row(1, text="second"))
    reply = store.reply(call_key(1))
    assert reply is not None
    assert reply.text == "first"
    await store.aclose()


async def test_a_cancelled_waiter_does_not_take_the_commit_from_the_others(tmp_path: Path) -> None:
    store = open_run(tmp_path / "run.db")
    cancelled = asyncio.create_task(store.write(call_row(1)))
    kept = asyncio.create_task(store.write(call_row(2)))
    await asyncio.sleep(0)
    cancelled.cancel()
    await kept
    assert cancelled.cancelled()
    assert Onlooker(store.path).answers() == [1, 2]
    await store.aclose()


async def test_readers_read_while_the_run_is_written(tmp_path: Path) -> None:
    store = open_run(tmp_path / "run.db")
    await store.write(*(rollout_row(number) for number in range(20)))
    with RunReader(store.path) as reader:
        reading = reader.rollouts()
        first = next(reading)
        await store.write(rollout_row(20))
        assert [first.trajectory, *(one.trajectory for one in reading)] == [trajectory(n) for n in range(20)]
        assert len(list(reader.rollouts())) == 21
    await store.aclose()


async def test_a_write_waits_for_a_stranger_and_goes_on(tmp_path: Path) -> None:
    clock = FakeClock()
    store = open_run(tmp_path / "run.db", clock)
    stranger = Onlooker(store.path)
    stranger.lock()
    writing = asyncio.create_task(store.write(call_row(1)))
    await clock.advance(LOCK_PATIENCE / 2)
    assert not writing.done()
    stranger.unlock()
    await clock.advance(1.0)
    assert writing.done()
    await writing
    assert stranger.answers() == [1]
    await store.aclose()


async def test_patience_with_a_stranger_counts_anew_for_each_lock(tmp_path: Path) -> None:
    clock = FakeClock()
    store = open_run(tmp_path / "run.db", clock)
    stranger = Onlooker(store.path)
    for number in range(3):
        stranger.lock()
        writing = asyncio.create_task(store.write(call_row(number)))
        await clock.advance(LOCK_PATIENCE - 1)
        stranger.unlock()
        await clock.advance(1.0)
        await writing
    assert stranger.answers() == [0, 1, 2]
    await store.aclose()


async def test_a_stranger_who_stays_ends_every_wait_and_nothing_is_half_written(tmp_path: Path) -> None:
    clock = FakeClock()
    store = open_run(tmp_path / "run.db", clock)
    await store.write(call_row(0))
    stranger = Onlooker(store.path)
    stranger.lock()
    writing = [asyncio.create_task(store.write(call_row(n), attempt_row(n, AttemptStatus.ANSWERED))) for n in (1, 2, 3)]
    await clock.advance(LOCK_PATIENCE / 2)
    writing += [asyncio.create_task(store.write(call_row(n))) for n in (4, 5)]
    await clock.advance(LOCK_PATIENCE)
    for task in writing:
        with pytest.raises(StoreBusy, match="stayed locked"):
            await task
    stranger.unlock()
    with pytest.raises(StoreBusy):
        await store.write(call_row(6))
    store.add(call_row(7))
    await clock.advance(1.0)
    assert stranger.answers() == [0]
    with pytest.raises(StoreBusy):
        await store.aclose()
    reopened = open_run(store.path, clock)
    assert reopened.spending().calls == 0
    await reopened.write(call_row(1))
    await reopened.aclose()


async def test_a_failed_write_that_nobody_waited_for_is_told_at_the_end(tmp_path: Path) -> None:
    clock = FakeClock()
    store = open_run(tmp_path / "run.db", clock)
    stranger = Onlooker(store.path)
    stranger.lock()
    store.add(call_row(1))
    await clock.advance(LOCK_PATIENCE * 2)
    stranger.unlock()
    with pytest.raises(StoreBusy):
        await store.aclose()
    open_run(store.path, clock).close()


@pytest.mark.parametrize("fact", [10**30, "half a \ud83d"])
async def test_a_row_that_cannot_be_stored_is_an_error_and_not_a_wait_without_end(tmp_path: Path, fact: object) -> None:
    store = open_run(tmp_path / "run.db")
    played = Trajectory("p", "t", Split.TRAIN, 0, (), "", End.ANSWERED, Verdict(True, 1.0, facts={"seen": fact}))
    async with asyncio.timeout(5):
        with pytest.raises(StoreError, match="cannot be stored"):
            await store.write(call_row(1), RolloutRow(b"key", played, 0.0, 0.0))
        with pytest.raises(StoreError):
            await store.aclose()
    reopened = open_run(store.path)
    assert Onlooker(store.path).answers() == []
    await reopened.write(call_row(2))
    await reopened.aclose()


async def test_a_number_that_sqlite_refuses_leaves_no_open_transaction(tmp_path: Path) -> None:
    store = open_run(tmp_path / "run.db")
    async with asyncio.timeout(5):
        with pytest.raises(StoreError, match="cannot be stored"):
            await store.write(call_row(1), attempt_row(1, AttemptStatus.OPEN, tokens=2**70))
    assert Onlooker(store.path).answers() == []
    with pytest.raises(StoreError):
        await store.aclose()
    open_run(store.path).close()


async def test_a_checkpoint_that_fails_costs_nothing_and_keeps_no_lock(tmp_path: Path) -> None:
    store = open_run(tmp_path / "one" / "run.db")
    await store.write(call_row(0))
    # Somebody moves the folder of a run that is being written: the open file goes with it, the path does not.
    (tmp_path / "one").rename(tmp_path / "two")
    for number in range(1, 4100):
        await store.write(call_row(number))
    await store.aclose()
    moved = tmp_path / "two" / "run.db"
    assert Onlooker(moved).answers() == list(range(4100))
    open_run(moved).close()


async def test_the_log_is_folded_into_the_file_while_the_run_goes_on(tmp_path: Path) -> None:
    store = open_run(tmp_path / "run.db")
    size = store.path.stat().st_size
    for number in range(4100):
        await store.write(call_row(number))
    async with asyncio.timeout(10):
        while store.path.stat().st_size == size:
            await asyncio.sleep(0.01)
    await store.aclose()


async def test_time_of_work_is_counted_over_processes(tmp_path: Path) -> None:
    clock = FakeClock()
    store = open_run(tmp_path / "run.db", clock)
    await clock.advance(10.0)
    await store.aclose()
    await clock.advance(100.0)
    store = open_run(tmp_path / "run.db", clock)
    assert store.spending().seconds == 10.0
    await clock.advance(7.0)
    assert store.spending().seconds == 10.0
    await store.aclose()
    with RunReader(store.path) as reader:
        assert reader.seconds() == 17.0


_OPERATIONS = st.lists(
    st.one_of(
        st.tuples(st.sampled_from(["write", "add"]), st.integers(1, 3)),
        st.tuples(st.just("cancel"), st.integers(0, 20)),
        st.tuples(st.just("pass"), st.sampled_from([0.0, 0.01, 0.3, 5.0, 40.0])),
        st.tuples(st.sampled_from(["lock", "unlock", "turn"]), st.just(0)),
    ),
    max_size=30,
)


class Interleaving:
    """Operations on a store one after another, with a look at its file after each."""

    def __init__(self, path: Path) -> None:
        self.clock = FakeClock()
        self.store = open_run(path, self.clock)
        self.others = Onlooker(path)
        self.submitted: list[int] = []
        self.tasks: list[asyncio.Task[list[int]]] = []
        self.locked = False

    async def do(self, name: str, value: float) -> None:
        match name:
            case "write":
                self.tasks.append(asyncio.create_task(self.write(int(value))))
                await asyncio.sleep(0)
            case "add":
                self.store.add(*(call_row(number) for number in self.new(int(value))))
            case "cancel" if self.tasks:
                self.tasks[int(value) % len(self.tasks)].cancel()
            case "pass":
                await self.clock.advance(value)
            case "lock" if not self.locked:
                self.others.lock()
                self.locked = True
            case "unlock" if self.locked:
                self.others.unlock()
                self.locked = False
            case _:
                await asyncio.sleep(0)
        self.look()

    def new(self, count: int) -> list[int]:
        numbers = list(range(len(self.submitted), len(self.submitted) + count))
        self.submitted += numbers
        return numbers

    async def write(self, count: int) -> list[int]:
        numbers = self.new(count)
        await self.store.write(*(call_row(number) for number in numbers))
        assert set(numbers) <= set(self.others.answers()), "it returned before its rows were there"
        return numbers

    def look(self) -> list[int]:
        seen = self.others.answers()
        assert seen == self.submitted[: len(seen)]
        return seen

    async def end(self) -> None:
        await self.do("unlock", 0)
        await self.clock.advance(1.0)
        outcomes = await asyncio.gather(*self.tasks, return_exceptions=True)
        broken = any(isinstance(outcome, StoreError) for outcome in outcomes)
        try:
            await self.store.aclose()
        except StoreError:
            broken = True
        seen = self.look()
        for outcome in outcomes:
            if isinstance(outcome, list):
                assert set(outcome) <= set(seen)
            else:
                assert isinstance(outcome, asyncio.CancelledError | StoreError)
        assert broken or seen == self.submitted
        self.others.close()


@pytest.mark.slow
@settings(max_examples=60, deadline=None)
@given(operations=_OPERATIONS)
def test_whatever_happens_the_file_holds_a_beginning_of_what_was_written(
    operations: list[tuple[str, float]],
) -> None:
    async def run(path: Path) -> None:
        interleaving = Interleaving(path)
        for name, value in operations:
            await interleaving.do(name, value)
        await interleaving.end()

    with tempfile.TemporaryDirectory() as folder:
        asyncio.run(run(Path(folder) / "run.db"))


def test_onlookers_lock_keeps_a_writer_out(tmp_path: Path) -> None:
    """What the tests above rest on."""
    open_run(tmp_path / "run.db", FakeClock()).close()
    holder, other = Onlooker(tmp_path / "run.db"), Onlooker(tmp_path / "run.db")
    holder.lock()
    with pytest.raises(sqlite3.OperationalError, match="locked"):
        other.lock()
