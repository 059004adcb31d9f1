"""Small drawings beside the numbers that they repeat, as wide as there is room. Screen readers pass them over."""

from __future__ import annotations

from collections.abc import Sequence

from whet.gate import Interval
from whet.web.markup import Markup, percent, tag

_HEIGHT = 18
_MIDDLE = _HEIGHT / 2


def interval_plot(rate: float, found: Interval, class_: str) -> Markup:
    """A rate with its interval, between 0 and 1."""
    bar = tag("line", x1=percent(found.low), x2=percent(found.high), y1=_MIDDLE, y2=_MIDDLE, class_=f"whisker {class_}")
    return _strip(_axis(), bar, _dot(rate, class_))


def move_plot(before: float, after: float) -> Markup:
    """From a hollow point to a filled one."""
    class_ = "worse" if after < before else "best"
    way = tag("line", x1=percent(before), x2=percent(after), y1=_MIDDLE, y2=_MIDDLE, class_=f"way {class_}")
    return _strip(_axis(), way, _dot(before, "start"), _dot(after, class_))


def bar_plot(share: float) -> Markup:
    return _strip(tag("rect", x=0, y=4, width=percent(min(1.0, share)), height=_HEIGHT - 8, rx=2, class_="bar"))


def parts_plot(parts: Sequence[tuple[str, int]]) -> Markup:
    """How a whole falls into parts, each with a class of its own."""
    whole = sum(count for _, count in parts) or 1
    drawn: list[Markup] = []
    before = 0
    for class_, count in parts:
        place, width = percent(before / whole), percent(count / whole)
        drawn.append(tag("rect", x=place, y=0, width=width, height=_HEIGHT, class_=f"part {class_}"))
        before += count
    return _strip(*drawn)


def _dot(rate: float, class_: str) -> Markup:
    return tag("circle", cx=percent(rate), cy=_MIDDLE, r=4.5, class_=f"dot {class_}")


def _axis() -> Markup:
    ticks = (tag("line", x1=percent(at), x2=percent(at), y1=3, y2=_HEIGHT - 3, class_="tick") for at in (0.0, 0.5, 1.0))
    return tag("g", tag("line", x1="0%", x2="100%", y1=_MIDDLE, y2=_MIDDLE, class_="axis"), *ticks)


def _strip(*content: Markup) -> Markup:
    return tag("svg", *content, class_="strip", width="100%", height=_HEIGHT, aria_hidden="true")
