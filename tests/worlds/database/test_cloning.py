from __future__ import annotations

import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest

from whet.worlds.database import clone, clone_file, difference, restore, snapshot


def database(path: Path | str, rows: int = 3, mode: str = "DELETE") -> sqlite3.Connection:
    connection = sqlite3.connect(path)
    connection.execute(f"PRAGMA journal_mode = {mode}")
    connection.execute("CREATE TABLE t (a INTEGER PRIMARY KEY, b)")
    connection.executemany("INSERT INTO t (b) VALUES (?)", [("x" * 100,)] * rows)
    connection.commit()
    return connection


@pytest.mark.parametrize("rows", [0, 3, 20_000])
@pytest.mark.parametrize("copy", [clone, lambda one: restore(snapshot(one))], ids=["clone", "bytes"])
def test_a_copy_is_the_same_and_neither_sees_what_the_other_does(
    copy: Callable[[sqlite3.Connection], sqlite3.Connection], rows: int
) -> None:
    with closing(database(":memory:", rows)) as one, closing(copy(one)) as other:
        assert not difference(one, other)
        other.execute("INSERT INTO t (b) VALUES ('mine')")
        assert one.execute("SELECT count(*) FROM t").fetchone() == (rows,)
        one.execute("DELETE FROM t")
        assert other.execute("SELECT count(*) FROM t").fetchone() == (rows + 1,)


@pytest.mark.parametrize("mode", ["DELETE", "WAL"])
def test_a_file_is_cloned_with_what_stands_in_its_journal(tmp_path: Path, mode: str) -> None:
    with closing(database(tmp_path / "one.db", mode=mode)) as one:
        clone_file(tmp_path / "one.db", tmp_path / "two.db")
        with closing(sqlite3.connect(tmp_path / "two.db")) as two:
            assert not difference(one, two)
            two.execute("DELETE FROM t")
            two.commit()
        assert one.execute("SELECT count(*) FROM t").fetchone() == (3,)


def test_a_clone_takes_the_place_of_what_was_there(tmp_path: Path) -> None:
    with closing(database(tmp_path / "one.db", 1)) as one, closing(database(tmp_path / "two.db", 5_000)):
        clone_file(tmp_path / "one.db", tmp_path / "two.db")
        with closing(sqlite3.connect(tmp_path / "two.db")) as two:
            assert not difference(one, two)


def test_what_is_cloned_is_not_changed(tmp_path: Path) -> None:
    database(tmp_path / "one.db").close()
    before = (tmp_path / "one.db").read_bytes()
    clone_file(tmp_path / "one.db", tmp_path / "two.db")
    assert (tmp_path / "one.db").read_bytes() == before == (tmp_path / "two.db").read_bytes()
