"""The verifier that gathers facts for a judging model, the same for every task: which rows were added or removed.

Its source is written into made folders, so it stands alone and uses nothing but Python's library.
"""

from __future__ import annotations

from typing import Any


def verify_task(initial_db_path: str, final_db_path: str) -> dict[str, Any]:
    """The rows of each table that only one of the two states has."""
    import contextlib
    import sqlite3
    import urllib.parse
    from collections import Counter

    def rows_of(path: str) -> dict[str, Any]:
        place = "file:" + urllib.parse.quote(str(path)) + "?mode=ro"
        with contextlib.closing(sqlite3.connect(place, uri=True)) as connection:
            connection.row_factory = sqlite3.Row
            names = connection.execute("SELECT name FROM sqlite_master WHERE type = 'table' ORDER BY name").fetchall()
            quoted = {name: '"' + name.replace('"', '""') + '"' for (name,) in names}
            return {
                name: Counter(repr(dict(row)) for row in connection.execute("SELECT * FROM " + table))
                for name, table in quoted.items()
            }

    before, after = rows_of(initial_db_path), rows_of(final_db_path)
    facts: dict[str, Any] = {}
    for name in sorted({*before, *after}):
        old, new = before.get(name, Counter()), after.get(name, Counter())
        if old != new:
            facts[name] = {
                "only before": sorted((old - new).elements())[:50],
                "only after": sorted((new - old).elements())[:50],
            }
    return {"rows that differ": facts}
