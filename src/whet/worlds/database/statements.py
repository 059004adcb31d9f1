"""A database as the SQL statements that make it again, table by table, in the shape of the AgentWorldModel format."""

from __future__ import annotations

import sqlite3
from typing import Any

from whet.worlds.database.contents import quoted, read


def schema_statements(connection: sqlite3.Connection) -> list[dict[str, Any]]:
    """Each table with its definition and its indexes, in the order in which they were made."""
    found = connection.execute(
        "SELECT name, tbl_name, type, sql FROM sqlite_schema WHERE sql IS NOT NULL ORDER BY rowid"
    )
    rows = found.fetchall()
    return [
        {
            "name": name,
            "ddl": f"{sql};",
            "indexes": [f"{one[3]};" for one in rows if one[1] == name and one[2] == "index"],
        }
        for name, _, kind, sql in rows
        if kind == "table"
    ]


def data_statements(connection: sqlite3.Connection) -> list[dict[str, Any]]:
    """Each table with one INSERT for each of its rows, so that what is referred to is there first."""
    tables = read(connection).tables
    made = connection.execute("SELECT name FROM sqlite_schema WHERE type = 'table' ORDER BY rowid").fetchall()
    return [
        {"table_name": name, "insert_statements": _inserts(connection, name, tables[name].columns)}
        for (name,) in made
        if name in tables
    ]


def _inserts(connection: sqlite3.Connection, name: str, columns: tuple[str, ...]) -> list[str]:
    into = f"INSERT INTO {quoted(name)} ({', '.join(map(quoted, columns))}) VALUES ("
    values = " || ', ' || ".join(f"quote({quoted(column)})" for column in columns)
    return [f"{into}{row[0]});" for row in connection.execute(f"SELECT {values} FROM {quoted(name)}")]
