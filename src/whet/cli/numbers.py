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


def duration(seconds: float) -> str:
    """0.4 s, 12 s, 3 min 05 s, 2 h 07 min."""
    if seconds < 10:
        return f"{seconds:.1f} s"
    whole = round(seconds)
    if whole < 60:
        return f"{whole} s"
    minutes, whole = divmod(whole, 60)
    if minutes < 60:
        return f"{minutes} min {whole:02d} s"
    hours, minutes = divmod(minutes, 60)
    return f"{hours} h {minutes:02d} min"


def when(at: float) -> str:
    """A moment in the reader's own time zone."""
    return datetime.fromtimestamp(at).strftime("%Y-%m-%d %H:%M") if at else "-"


def money(amount: Nanodollars) -> str:
    return show_dollars(amount)


def plural(count: int, one: str, many: str = "") -> str:
    return f"{count:,} {one if count == 1 else many or one + 's'}"
