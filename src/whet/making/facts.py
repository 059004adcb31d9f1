"""The verifier that gathers facts for a judging model, the same for every task: which rows were added or removed.

The source of the function is written into made folders, so it uses Python's own names and what it imports itself.
"""

from __future__ import annotations


def verify_task(initial_db_path: str, final_db_path: str) -> dict[str, object]:
    """The rows of each table that only one of the two states has."""
    import contextlib
    import sqlite3
    import urllib.parse
    from collections import Counter

    def rows_of(path: str) -> dict[str, Counter[str]]:
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
    nothing: Counter[str] = Counter()
    facts: dict[str, object] = {}
    for name in sorted({*before, *after}):
        old, new = before.get(name, nothing), after.get(name, nothing)
        if old != new:
            facts[name] = {
                "only before": sorted((old - new).elements())[:50],
                "only after": sorted((new - old).elements())[:50],
            }
    return {"rows that differ": facts}
