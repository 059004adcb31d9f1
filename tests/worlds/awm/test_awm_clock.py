"""A world's own time and chance, as a generated program meets them."""

from __future__ import annotations

import datetime
import sqlite3
from contextlib import closing

import pytest

from whet.worlds.awm.inside.clock import WorldClock, _classes, teach

MOMENT = 1_700_000_000.0
SAYS = "2023-11-14 22:13:20"


@pytest.mark.parametrize(
    ("asked", "answer"),
    [
        ("datetime('now')", SAYS),
        ("datetime()", SAYS),
        ("CURRENT_TIMESTAMP", SAYS),
        ("current_date", "2023-11-14"),
        ("CURRENT_TIME", "22:13:20"),
        ("date('now', '-3 days')", "2023-11-11"),
        ("datetime(' NOW ', '+1 hour')", "2023-11-14 23:13:20"),
        ("strftime('%Y', 'now')", "2023"),
        ("strftime('%d')", "14"),
        ("unixepoch('now')", 1_700_000_000),
        ("datetime('2020-01-01', '+1 day')", "2020-01-02 00:00:00"),
        ("date(NULL)", None),
        ("time('12:30')", "12:30:00"),
    ],
)
def test_sqlite_says_the_worlds_now(asked: str, answer: object) -> None:
    with closing(sqlite3.connect(":memory:")) as connection:
        teach(connection, WorldClock(MOMENT))
        assert connection.execute(f"SELECT {asked}").fetchone() == (answer,)


def test_a_columns_default_is_the_worlds_now_too() -> None:
    with closing(sqlite3.connect(":memory:")) as connection:
        teach(connection, WorldClock(MOMENT))
        connection.execute("CREATE TABLE t (a, at DATETIME DEFAULT CURRENT_TIMESTAMP, b DEFAULT (datetime('now')))")
        connection.execute("INSERT INTO t (a) VALUES (1)")
        assert connection.execute("SELECT * FROM t").fetchone() == (1, SAYS, SAYS)


def test_each_call_takes_a_second_and_the_same_seed_draws_the_same() -> None:
    clock = WorldClock(0.0)
    with closing(sqlite3.connect(":memory:")) as connection:
        teach(connection, clock)

        def drawn() -> object:
            clock.begin(MOMENT, 7)
            clock.tick()
            return connection.execute("SELECT random(), hex(randomblob(4)), datetime('now')").fetchone()

        first = drawn()
        assert first == drawn()
        assert first[2] == "2023-11-14 22:13:21"


def test_the_programs_datetime_is_the_worlds_and_makes_real_ones() -> None:
    ours = _classes(WorldClock(MOMENT))
    now = ours["datetime"].now()
    assert (type(now), str(now)) == (datetime.datetime, SAYS)
    assert ours["datetime"].now(datetime.UTC).tzinfo is datetime.UTC
    assert str(ours["date"].today()) == "2023-11-14"
    assert type(ours["datetime"](2020, 1, 2)) is datetime.datetime
    assert type(ours["datetime"].fromisoformat("2020-01-02")) is datetime.datetime
    assert type(ours["datetime"].strptime("2020", "%Y")) is datetime.datetime
    assert isinstance(datetime.datetime(2020, 1, 1), ours["datetime"])
    assert isinstance(now, ours["date"])
    assert not isinstance(datetime.date(2020, 1, 1), ours["datetime"])
