"""Numbers and times as people read them. Pure."""

from __future__ import annotations

from datetime import datetime

from whet.core import Nanodollars, show_dollars
from whet.gate import Interval


def share(value: float | None) -> str:
    return "-" if value is None else f"{value:.3f}"


def interval(found: Interval) -> str:
    return f"{found.low:.3f} to {found.high:.3f}"


def signed_interval(found: Interval) -> str:
    return f"{found.low:+.3f} to {found.high:+.3f}"


def short_count(count: int) -> str:
    """At most five letters: 812, 31.4k, 2.07M."""
    for limit, unit in ((1_000_000_000, "G"), (1_000_000, "M"), (10_000, "k")):
        if count >= limit:
            size = count / (1000 if unit == "k" else limit)
            return f"{size:.3g}{unit}" if size < 1000 else f"{size:.0f}{unit}"
    return str(count)


def when(at: float) -> str:
    """A moment in the reader's own time zone."""
    return datetime.fromtimestamp(at).strftime("%Y-%m-%d %H:%M") if at else "-"


def money(amount: Nanodollars) -> str:
    return show_dollars(amount)


def plural(count: int, one: str, many: str = "") -> str:
    return f"{count:,} {one if count == 1 else many or one + 's'}"
