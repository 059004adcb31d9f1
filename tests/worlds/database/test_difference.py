from __future__ import annotations

import sqlite3
from collections import Counter
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from whet.worlds.database import Cell, Difference, difference, restore, snapshot
from whet.worlds.database.checking import changes_between, typed
from whet.worlds.database.feedback import as_changes

SHAPES = {
    "an integer key": "CREATE TABLE t (a INTEGER PRIMARY KEY, b, c TEXT)",
    "a key of two columns": "CREATE TABLE t (a, b, c, PRIMARY KEY (b, a))",
    "no rowid": "CREATE TABLE t (a TEXT, b REAL, c, PRIMARY KEY (a, b)) WITHOUT ROWID",
    "no key": "CREATE TABLE t (a, b, c)",
    "a name that has to be quoted": 'CREATE TABLE "t ""ö" (a PRIMARY KEY, "b c", "select")',
}
VALUES = st.one_of(
    st.none(),
    st.integers(-2, 3),
    st.sampled_from([0.0, 1.0, 1.5, -2.0, float("inf")]),
    st.sampled_from(["", "1", "a", "A", "\u00e4", "a\u0308", "\u96ea", "x'31'"]),
    st.sampled_from([b"", b"1", b"\x00", b"\xff"]),
)
ROWS = st.lists(st.tuples(VALUES, VALUES, VALUES), max_size=6)


@contextmanager
def opened(*statements: str) -> Iterator[sqlite3.Connection]:
    with closing(sqlite3.connect(":memory:")) as connection:
        for statement in statements:
            connection.execute(statement)
        yield connection


@contextmanager
def copied(connection: sqlite3.Connection) -> Iterator[sqlite3.Connection]:
    connection.commit()
    with closing(restore(snapshot(connection))) as copy:
        yield copy


def fill(connection: sqlite3.Connection, rows: list[tuple[Any, ...]]) -> None:
    (table,) = connection.execute("SELECT name FROM sqlite_schema WHERE type = 'table'").fetchone()
    quoted = table.replace('"', '""')
    connection.execute(f'DELETE FROM "{quoted}"')
    for row in rows:
        with suppress(sqlite3.IntegrityError):  # an integer key takes integers only
            connection.execute(f'INSERT OR IGNORE INTO "{quoted}" VALUES (?, ?, ?)', row)


def comparable(changes: list[dict[str, Any]]) -> Counter[Any]:
    def side(row: dict[str, Any] | None) -> Any:
        return None if row is None else tuple((name, typed(value)) for name, value in row.items())

    return Counter((each["kind"], each["table"], side(each["before"]), side(each["after"])) for each in changes)


@pytest.mark.parametrize("shape", SHAPES)
@given(before=ROWS, after=ROWS)
def test_it_finds_what_comparing_every_row_finds(shape: str, before: list[Any], after: list[Any]) -> None:
    with opened(SHAPES[shape]) as old, opened(SHAPES[shape]) as new:
        fill(old, before)
        fill(new, after)
        plain = changes_between(old, new)
        assert plain is not None
        found = difference(old, new)
        assert comparable(as_changes(found)) == comparable(plain)
        assert found.count == len(plain)
        assert bool(found) == bool(plain)


@pytest.mark.parametrize("shape", SHAPES)
@given(before=ROWS, after=ROWS)
def test_with_the_difference_the_one_state_is_made_of_the_other(
    shape: str, before: list[Any], after: list[Any]
) -> None:
    with opened(SHAPES[shape]) as old, opened(SHAPES[shape]) as new:
        fill(old, before)
        fill(new, after)
        rows, wanted = all_rows(old), all_rows(new)
        for change in as_changes(difference(old, new)):
            if change["before"] is not None:
                rows[as_row(change["before"])] -= 1
            if change["after"] is not None:
                rows[as_row(change["after"])] += 1
        assert +rows == wanted
        assert min(rows.values(), default=0) >= 0


def all_rows(connection: sqlite3.Connection) -> Counter[Any]:
    (table,) = connection.execute("SELECT name FROM sqlite_schema WHERE type = 'table'").fetchone()
    quoted = table.replace('"', '""')
    return Counter(tuple(map(typed, row)) for row in connection.execute(f'SELECT * FROM "{quoted}"'))


def as_row(row: dict[str, Any]) -> Any:
    return tuple(map(typed, row.values()))


def only(found: Difference) -> Any:
    assert len(found.tables) == 1
    return found.tables[0]


def test_the_same_state_has_no_difference() -> None:
    with opened(SHAPES["no key"]) as one:
        fill(one, [(1, None, b"x")] * 3)
        with copied(one) as other:
            found = difference(one, other)
            assert not found
            assert found.text() == ""


def test_a_change_is_told_by_its_key_and_its_columns() -> None:
    with opened(SHAPES["an integer key"]) as old:
        fill(old, [(1, 2, "x"), (2, 2, "y")])
        with copied(old) as new:
            new.execute("UPDATE t SET c = 'z', b = NULL WHERE a = 2")
            change = only(difference(old, new)).changed[0]
            assert change.key == {"a": 2}
            assert change.cells == (Cell("b", 2, None), Cell("c", "y", "z"))
            assert difference(old, new).text() == "~ t a 2: b 2 -> NULL, c 'y' -> 'z'"


@pytest.mark.parametrize(("one", "other"), [(1, 1.0), (1, "1"), ("1", b"1"), (0, None), ("\u00e9", "e\u0301")])
def test_values_that_look_alike_differ(one: Any, other: Any) -> None:
    with opened("CREATE TABLE t (a INTEGER PRIMARY KEY, b)") as old:
        old.execute("INSERT INTO t VALUES (1, ?)", (one,))
        with copied(old) as new:
            new.execute("UPDATE t SET b = ?", (other,))
            cell = only(difference(old, new)).changed[0].cells[0]
            assert (typed(cell.before), typed(cell.after)) == (typed(one), typed(other))


def test_text_that_is_not_utf8_is_compared_and_shown() -> None:
    table = "CREATE TABLE t (a INTEGER PRIMARY KEY, b)"
    with opened(table, "INSERT INTO t VALUES (1, CAST(x'ff61' AS TEXT))") as old, copied(old) as new:
        assert not difference(old, new)
        new.execute("UPDATE t SET b = CAST(x'fe61' AS TEXT)")
        found = difference(old, new)
        assert only(found).changed[0].cells[0].column == "b"
        found.text().encode()
        assert new.text_factory is str


def test_rows_whose_key_is_null_are_counted() -> None:
    rows = "INSERT INTO t VALUES (NULL, 1), (NULL, 1), ('k', 1)"
    with opened("CREATE TABLE t (a TEXT PRIMARY KEY, b)", rows) as old, copied(old) as new:
        new.execute("DELETE FROM t WHERE rowid = 1")
        found = only(difference(old, new))
        assert (found.inserted, found.deleted, found.changed) == ((), ({"a": None, "b": 1},), ())


def test_tables_that_come_and_go_bring_and_take_their_rows() -> None:
    with opened("CREATE TABLE old (a)", "INSERT INTO old VALUES (1)") as before, copied(before) as after:
        after.execute("DROP TABLE old")
        after.execute("CREATE TABLE new (b)")
        after.execute("INSERT INTO new VALUES (2)")
        found = difference(before, after)
        assert (found.tables_added, found.tables_removed) == (("new",), ("old",))
        assert found.text() == "+ table new\n- table old\n+ new: b 2\n- old: a 1"


def test_a_new_column_is_told_and_only_its_values_change() -> None:
    with opened("CREATE TABLE t (a INTEGER PRIMARY KEY)", "INSERT INTO t VALUES (1), (2)") as old, copied(old) as new:
        new.execute("ALTER TABLE t ADD COLUMN b")
        new.execute("UPDATE t SET b = 5 WHERE a = 2")
        found = only(difference(old, new))
        assert found.columns_added == ("b",)
        assert [(change.key, change.cells) for change in found.changed] == [({"a": 2}, (Cell("b", None, 5),))]
        back = only(difference(new, old))
        assert back.columns_removed == ("b",)
        assert back.changed[0].cells == (Cell("b", 5, None),)


def test_another_key_makes_other_rows() -> None:
    first = ("CREATE TABLE t (a PRIMARY KEY, b)", "INSERT INTO t VALUES (1, 2)")
    second = ("CREATE TABLE t (a, b PRIMARY KEY)", "INSERT INTO t VALUES (1, 3)")
    with opened(*first) as old, opened(*second) as new:
        found = difference(old, new)
        assert found.schema[0].name == "t"
        assert (len(only(found).inserted), len(only(found).deleted)) == (1, 1)


def test_indexes_views_and_triggers_are_seen_and_what_sqlite_keeps_for_itself_is_not() -> None:
    with opened("CREATE TABLE t (a INTEGER PRIMARY KEY AUTOINCREMENT)") as old, copied(old) as new:
        new.execute("INSERT INTO t DEFAULT VALUES")
        new.execute("DELETE FROM t")
        assert not difference(old, new)
        new.execute("CREATE INDEX i ON t (a)")
        new.execute("CREATE VIEW v AS SELECT 1")
        new.execute("CREATE TRIGGER g AFTER INSERT ON t BEGIN SELECT 1; END")
        assert [(change.kind, change.name) for change in difference(old, new).schema] == [
            ("index", "i"),
            ("trigger", "g"),
            ("view", "v"),
        ]


def test_a_text_is_bounded_whatever_the_difference() -> None:
    with opened("CREATE TABLE t (a INTEGER PRIMARY KEY, b)") as old, copied(old) as new:
        new.executemany("INSERT INTO t (b) VALUES (?)", [("x" * 10_000,), (b"y" * 10_000,), *[(1,)] * 500])
        text = difference(old, new).text(limit=5)
        assert len(text.splitlines()) == 6
        assert text.endswith("… and 497 more")
        assert len(text) < 400
