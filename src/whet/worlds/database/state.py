"""A scenario's database as its tools see it. Needs the standard library alone: exported programs carry this class."""

from __future__ import annotations

import sqlite3
from datetime import date
from typing import Any

from whet.worlds.calling import ToolRefusal


class State:
    """Rows are dicts. Every table that `get`, `insert`, `update` and `delete` are used on has an integer key `id`.

    The time is what the table `clock` says: a scenario has its own, and the machine's is never asked.
    """

    def __init__(self, connection: sqlite3.Connection) -> None:
        self.connection = connection

    def rows(self, sql: str, *values: Any) -> list[dict[str, Any]]:
        cursor = self.connection.execute(sql, values)
        names = [column[0] for column in cursor.description]
        return [dict(zip(names, row, strict=True)) for row in cursor]

    def row(self, sql: str, *values: Any) -> dict[str, Any] | None:
        found = self.rows(sql, *values)
        return found[0] if found else None

    def value(self, sql: str, *values: Any) -> Any:
        """The first column of the first row, or None."""
        found = self.connection.execute(sql, values).fetchone()
        return None if found is None else found[0]

    def values(self, sql: str, *values: Any) -> list[Any]:
        """The first column of every row."""
        return [row[0] for row in self.connection.execute(sql, values)]

    def get(self, table: str, id: int, what: str = "") -> dict[str, Any]:
        """The row, or a refusal that says that there is none."""
        found = self.row(f"SELECT * FROM {table} WHERE id = ?", id)
        if found is None:
            raise ToolRefusal(f"there is no {what or table.rstrip('s')} {id}")
        return found

    def insert(self, table: str, **columns: Any) -> int:
        """A new row; its id is one more than the highest, unless it is given."""
        names, places = ", ".join(columns), ", ".join("?" * len(columns))
        cursor = self.connection.execute(f"INSERT INTO {table} ({names}) VALUES ({places})", tuple(columns.values()))
        return int(cursor.lastrowid or 0)

    def update(self, table: str, id: int, **columns: Any) -> None:
        setting = ", ".join(f"{column} = ?" for column in columns)
        self.connection.execute(f"UPDATE {table} SET {setting} WHERE id = ?", (*columns.values(), id))

    def delete(self, table: str, id: int) -> None:
        self.connection.execute(f"DELETE FROM {table} WHERE id = ?", (id,))

    def day(self, text: str) -> date:
        """The date that a text like 2031-05-06 names, or a refusal."""
        try:
            return date.fromisoformat(text)
        except ValueError as error:
            raise ToolRefusal(f"'{text}' is no date") from error

    @property
    def now(self) -> str:
        """Such as 2031-05-06 14:30."""
        return str(self.value("SELECT now FROM clock"))

    @property
    def today(self) -> date:
        return date.fromisoformat(self.now[:10])
