"""Judging what an agent did: was everything changed that had to be, and nothing else?

Needs the standard library alone and passes plain values, because exported verifiers carry these functions as they are.
A check is {"ways": [[expected change, ...], ...], "answer": None or [kind, value]}: one way must fit
the whole difference.
An expected change is {"kind", "table", "key", "columns"}; one that happened is {"kind", "table", "before", "after"}.
"""

from __future__ import annotations

import re
import sqlite3
from typing import Any


def judged(check: dict[str, Any], changes: list[dict[str, Any]], answer: str) -> dict[str, Any]:
    """How a try fits the way that it fits best: what is missing, what is too much, and whether the answer is right."""
    tried = [matched(way, changes) for way in check["ways"]]
    way, missing, extra = min(tried, key=lambda found: len(found[1]) + len(found[2]))
    asked = check["answer"] is not None
    right = not asked or answer_is_right(check["answer"], answer)
    parts = len(way) + asked
    done = len(way) - len(missing) + (asked and right) - len(extra)
    passed = not missing and not extra and right
    soft = 1.0 if passed else max(0.0, min(0.99, done / parts))
    return {"passed": passed, "soft": soft, "missing": missing, "extra": extra, "answer_right": right}


def matched(way: list[dict[str, Any]], changes: list[dict[str, Any]]) -> tuple[Any, list[Any], list[Any]]:
    """The way, what of it did not happen, and what happened beside it. Each change counts for one expectation."""
    rest = list(changes)
    missing: list[dict[str, Any]] = []
    for expected in sorted(way, key=lambda one: -len(one["columns"])):
        found = next((change for change in rest if fits(expected, change)), None)
        if found is None:
            missing.append(expected)
        else:
            rest.remove(found)
    return way, missing, rest


def fits(expected: dict[str, Any], change: dict[str, Any]) -> bool:
    """An update must change the expected columns and no other; of a new row the expected columns count."""
    if (expected["kind"], expected["table"]) != (change["kind"], change["table"]):
        return False
    before: dict[str, Any] = change["before"] or {}
    after: dict[str, Any] = change["after"] or {}
    columns: dict[str, Any] = expected["columns"]
    if change["kind"] == "update":
        altered = {column for column in after if before.get(column) != after[column]}
        if altered != set(columns):
            return False
    keyed = before or after
    same_row = all(keyed.get(column) == value for column, value in expected["key"].items())
    return same_row and all(after.get(column) == value for column, value in columns.items())


def answer_is_right(expected: list[Any], answer: str) -> bool:
    kind, value = expected
    said = said_in(answer)
    if kind == "number":
        numbers = {float(found.replace(",", "")) for found in re.findall(r"-?\d+(?:,\d{3})*(?:\.\d+)?", said)}
        return len(numbers) == 1 and abs(numbers.pop() - value) < 0.005
    if kind == "items":
        listed = re.split(r"\s*(?:[,;\n]|\band\b)\s*", said)
        return {plain(one) for one in listed if plain(one)} == {plain(one) for one in value}
    if kind == "refused":
        return plain(said).replace(":", " ").replace(",", " ").split() == ["refused", value]
    return plain(said) == plain(value)


def said_in(answer: str) -> str:
    """What stands after the last "Answer:", or all of a reply without one."""
    return re.split(r"(?im)^\W*answer\W*:", answer)[-1].strip(" \t\n*_`")


def plain(text: str) -> str:
    return " ".join(str(text).casefold().strip(" .!\"'*_`").split())


def changes_between(before: sqlite3.Connection, after: sqlite3.Connection) -> list[dict[str, Any]] | None:
    """Every row that differs, found the plain way; None if the two do not have the same tables and columns."""
    old, new = all_rows(before), all_rows(after)
    if {table: columns for table, (columns, _) in old.items()} != {
        table: columns for table, (columns, _) in new.items()
    }:
        return None
    found: list[dict[str, Any]] = []
    for table, (columns, was) in old.items():
        now = new[table][1]
        for key in [*was, *(key for key in now if key not in was)]:
            one, other = was.get(key), now.get(key)
            if one is None or other is None or [typed(value) for value in one] != [typed(value) for value in other]:
                kind = "insert" if one is None else "delete" if other is None else "update"
                rows = [None if row is None else dict(zip(columns, row, strict=True)) for row in (one, other)]
                found.append({"kind": kind, "table": table, "before": rows[0], "after": rows[1]})
    return found


def all_rows(connection: sqlite3.Connection) -> dict[str, tuple[list[str], dict[Any, Any]]]:
    """Of each table the columns, and the rows by primary key; by content and count where a row has no key."""
    tables: dict[str, tuple[list[str], dict[Any, Any]]] = {}
    names = "SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT LIKE 'sqlite\\_%' ESCAPE '\\'"
    for (name,) in connection.execute(names).fetchall():
        quoted = '"' + name.replace('"', '""') + '"'
        described = connection.execute(f"PRAGMA table_info({quoted})").fetchall()
        key_places = [place for place, column in enumerate(described) if column[5]]
        rows: dict[Any, Any] = {}
        for row in connection.execute(f"SELECT * FROM {quoted}").fetchall():
            key: Any = ("key", *(typed(row[place]) for place in key_places))
            if not key_places or any(row[place] is None for place in key_places):
                same = ("content", *(typed(value) for value in row))
                key = (same, sum(1 for other in rows if other[0] == same))
            rows[key] = row
        tables[name] = ([column[1] for column in described], rows)
    return tables


def typed(value: Any) -> tuple[str, Any]:
    """A value that is not taken for an equal one of another type: 1 is not 1.0."""
    return type(value).__name__, value
