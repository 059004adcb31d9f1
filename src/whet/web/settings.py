"""The configuration that the run was made with, as its folder has it."""

from __future__ import annotations

import re
import tomllib
from typing import Any, cast

from whet.web import tables
from whet.web.markup import Markup, tag

_PASSWORD = re.compile(r"(\w://)[^/@\s\"]+@")


def settings(config: str) -> Markup:
    """What is not said is at its default."""
    if not config.strip():
        return Markup("")
    lead = tag("p", "What is not said here is at its default.", class_="fine")
    tables_of = [
        tag("div", tag("h3", tag("code", f"[{name}]")), tables.pairs(rows, "setting"), class_="settings-table")
        for name, rows in _tables(config)
    ]
    return tables.section("settings", "Settings", lead, tag("div", *tables_of, class_="settings"))


def _tables(config: str) -> list[tuple[str, list[tuple[str, str]]]]:
    try:
        found = tomllib.loads(config)
    except tomllib.TOMLDecodeError:
        return [("config.toml", [("", without_passwords(config))])]
    named = (
        (name, _flat(cast("dict[str, Any]", values))) for name, values in found.items() if isinstance(values, dict)
    )
    return [(name, rows) for name, rows in named if rows]


def _flat(values: dict[str, Any], above: str = "") -> list[tuple[str, str]]:
    rows: list[tuple[str, str]] = []
    for key, value in values.items():
        if isinstance(value, dict):
            rows += _flat(cast("dict[str, Any]", value), f"{above}{key}.")
        else:
            rows.append((f"{above}{key}", without_passwords(_shown(value))))
    return rows


def _shown(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, list):
        return ", ".join(_shown(item) for item in cast("list[Any]", value))
    return str(value)


def without_passwords(said: str) -> str:
    """An address may carry a name and a password, and a page is passed on."""
    return _PASSWORD.sub(r"\1…@", said)
