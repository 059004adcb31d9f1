"""Numbers, times and names as people read them. Pure."""

from __future__ import annotations

import re
from datetime import UTC, datetime

from whet.gate import Interval


def share(value: float) -> str:
    return f"{value:.3f}"


def interval(found: Interval) -> str:
    return f"{found.low:.3f} to {found.high:.3f}"


def signed_interval(found: Interval) -> str:
    return f"{found.low:+.3f} to {found.high:+.3f}"


def whole(count: int) -> str:
    return f"{count:,}"


def plural(count: int, one: str, many: str = "") -> str:
    return f"{count:,} {one if count == 1 else many or one + 's'}"


def moment(at: float) -> str:
    """In one time zone for all, because the page travels."""
    return datetime.fromtimestamp(at, UTC).strftime("%Y-%m-%d %H:%M UTC") if at else "-"


def in_order(name: str) -> tuple[tuple[int, str], ...]:
    """A key that sorts `kind2` before `kind10`."""
    parts = re.findall(r"\d+|\D+", name)
    return tuple((int(part), "") if part.isdecimal() else (-1, part) for part in parts)


def spaced(name: str) -> str:
    """`reflect_failure` in words."""
    return name.replace("_", " ")


def sentence(said: str) -> str:
    """With a capital and a full stop."""
    stripped = said.strip()
    return stripped[:1].upper() + stripped[1:] + ("" if stripped.endswith((".", "!", "?", "…")) else ".")


def shortened(said: str, letters: int) -> str:
    return said if len(said) <= letters else f"{said[: letters - 1].rstrip()}…"
