"""The learning curve as SVG: places along it are percentages, so that one drawing fits a phone, a screen and paper."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import groupby, pairwise

from whet.gate import Interval
from whet.training import Report
from whet.web.course import Course, Point, told
from whet.web.markup import Markup, many, percent, tag
from whet.web.outcomes import Outcome, tested

_TOP = 26
_TALL = 240
_BASE = _TOP + _TALL
_FOOT = 54
_HEIGHT = _BASE + _FOOT
_SKIPPED = _BASE + 9
"""Below the axis: what was not ruled on has no score."""
_TICKS = 10
_CROWDED = 60
"""From so many records on, only what was kept gets a whisker."""

_WORD_ROOM, _NUMBER_ROOM = 0.15, 0.04
"""The share of the width that "epoch 1" and "1" need on a phone."""

_SHAPES = {
    "accepted": tag("circle", r=5),
    "rejected": tag("path", d="M-4 -4 4 4M-4 4 4 -4"),
    "bound": tag("path", d="M-5 -3.5 5 -3.5 0 5Z"),
    "put-in": tag("path", d="M0 -6 6 0 0 6 -6 0Z"),
    "skipped": tag("path", d="M0 -4 0 4"),
    "began": tag("rect", x=-4.5, y=-4.5, width=9, height=9),
}
_CAP = tag("path", d="M-4 0H4")
_MEANINGS = {
    "accepted": "accepted",
    "rejected": "rejected",
    "bound": "rejected early; it scores at most this",
    "put-in": "put in without a gate",
    "skipped": "no candidate",
    "began": "start",
}


def learning_curve(course: Course, report: Report) -> Markup:
    scale = _Scale(course)
    drawing = tag(
        "svg",
        tag("title", "Learning curve", id="drawing-title"),
        tag("desc", told(course, report), id="drawing-desc"),
        _shapes(),
        _grid(scale),
        _epochs(course, scale),
        _played(course, scale),
        _stairs(course, scale, "best", lambda point: point.best),
        _stairs(course, scale, "current", lambda point: point.current),
        _whiskers(course, scale),
        _markers(course, scale),
        _steps_axis(course, scale),
        class_=f"curve{' crowded' if scale.crowded else ''}",
        width="100%",
        height=_HEIGHT,
        role="img",
        aria_labelledby="drawing-title drawing-desc",
    )
    apart = "; a candidate stands as far from the current policy as it differed from it" if _by_gain(report) else ""
    what = tag("p", f"Score on the selection tasks{apart}", class_="what")
    return tag("figure", what, tag("div", drawing, class_="drawing"), _legend(course), class_="learning")


def _by_gain(report: Report) -> bool:
    return any(record.ruling is not None and tested(record.ruling) for record in report.steps)


class _Scale:
    """Where a record and a score are drawn."""

    def __init__(self, course: Course) -> None:
        self.low, self.high = course.range
        self.places = len(course.points) + 1
        """The start has one too."""
        self.crowded = self.places > _CROWDED

    def x(self, place: float) -> str:
        """Place 0 is the start; record n has place n + 1."""
        return percent((place + 0.5) / self.places)

    def y(self, score: float) -> float:
        return _TOP + _TALL * (self.high - score) / (self.high - self.low)


def _grid(scale: _Scale) -> Markup:
    low, high = round(scale.low * 10), round(scale.high * 10)
    every = 1 if high - low <= 5 else 2
    marks = [tenths / 10 for tenths in range(low, high + 1) if tenths % every == 0]
    return many(
        tag(
            "g",
            tag("line", x1="0%", x2="100%", y1=scale.y(mark), y2=scale.y(mark)),
            tag("text", f"{mark:.1f}", x=-10, y=scale.y(mark) + 4, text_anchor="end"),
            class_="grid",
        )
        for mark in marks
    )


def _epochs(course: Course, scale: _Scale) -> Markup:
    """A line where an epoch begins, and its number where there is room for it."""
    held = [(epoch, len(list(group))) for epoch, group in groupby(course.points, key=lambda point: point.epoch)]
    whole = min(count for _, count in held) > _WORD_ROOM * scale.places
    drawn: list[Markup] = []
    place = 1
    for epoch, count in held:
        named = (
            f"epoch {epoch}" if whole or len(held) == 1 else str(epoch) if count > _NUMBER_ROOM * scale.places else ""
        )
        left, middle = percent(place / scale.places), percent((place + count / 2) / scale.places)
        edge = tag("line", x1=left, x2=left, y1=_TOP - 14, y2=_BASE)
        said = tag("text", named, x=middle, y=_TOP - 12, text_anchor="middle") if named else ""
        drawn.append(tag("g", edge, said, class_="epoch-mark"))
        place += count
    return many(drawn)


def _played(course: Course, scale: _Scale) -> Markup:
    """The batches that steps played: noisy, and not what anything was decided by."""
    known = ((point.record + 1, point.played) for point in course.points if point.played is not None)
    size = 1.25 if scale.crowded else 2.25
    dots = (tag("circle", cx=scale.x(place), cy=scale.y(passed), r=size) for place, passed in known)
    return tag("g", *dots, class_="played")


def _stairs(course: Course, scale: _Scale, class_: str, score: Callable[[Point], float | None]) -> Markup:
    """What held until the next record changed it."""
    values = [course.start, *(score(point) for point in course.points)]
    spans = [(first, last, value) for first, last, value in _spans(values) if value is not None]
    flat = [tag("line", x1=scale.x(a), x2=scale.x(b), y1=scale.y(v), y2=scale.y(v)) for a, b, v in spans]
    ups = [
        tag("line", x1=scale.x(b), x2=scale.x(b), y1=scale.y(v), y2=scale.y(w))
        for (_, b, v), (_, _, w) in pairwise(spans)
    ]
    return tag("g", *flat, *ups, class_=f"stairs {class_}")


def _spans(values: Sequence[float | None]) -> Iterator[tuple[int, int, float | None]]:
    """From where to where a value holds; it holds until the place of the next one."""
    place = 0
    for value, group in groupby(values):
        held = len(list(group))
        yield place, min(place + held, len(values) - 1), value
        place += held


def _whiskers(course: Course, scale: _Scale) -> Markup:
    points = (point for point in course.points if point.outcome.kept or not scale.crowded)
    drawn = [_whisker(scale, point.record + 1, point.interval, _shape(point)) for point in points if point.interval]
    if course.start_interval is not None:
        drawn.insert(0, _whisker(scale, 0, course.start_interval, "began"))
    return many(drawn)


def _whisker(scale: _Scale, place: int, found: Interval, class_: str) -> Markup:
    x, low, high = scale.x(place), scale.y(found.low), scale.y(found.high)
    caps = () if scale.crowded else (tag("use", href="#mark-cap", x=x, y=y) for y in (low, high))
    return tag("g", tag("line", x1=x, x2=x, y1=low, y2=high), *caps, class_=f"interval {class_}")


def _markers(course: Course, scale: _Scale) -> Markup:
    drawn = [_marker(scale, point) for point in course.points]
    if course.start is not None:
        drawn.insert(0, _mark("began", scale.x(0), scale.y(course.start), f"Start: {course.start:.3f}"))
    return many(drawn)


def _shapes() -> Markup:
    shapes = {**_SHAPES, "cap": _CAP}
    return tag("defs", *(tag("g", shape, id=f"mark-{name}") for name, shape in shapes.items()))


def _marker(scale: _Scale, point: Point) -> Markup:
    """It leads to the record, for the mouse; the list of steps is there for the keyboard."""
    score = point.current if point.outcome is Outcome.PUT_IN else point.score
    y = scale.y(score) if score is not None else _SKIPPED
    mark = _mark(_shape(point), scale.x(point.record + 1), y, point.told)
    return tag("a", mark, href=f"#record-{point.record}", tabindex="-1")


def _mark(shape: str, x: str, y: float, said: str) -> Markup:
    return tag("use", tag("title", said), href=f"#mark-{shape}", x=x, y=y, class_=f"mark {shape}")


def _shape(point: Point) -> str:
    if point.bound:
        return "bound"
    return point.outcome.replace(" ", "-")


def _steps_axis(course: Course, scale: _Scale) -> Markup:
    steps = [point for point in course.points if point.step]
    every = next((size for size in (1, 2, 5, 10, 20, 25, 50, 100, 200, 500) if len(steps) <= size * _TICKS), 1000)
    shown = [point for point in steps if point.step % every == 0 or (every > 1 and point.step == 1)]
    said = (
        tag("text", str(point.step), x=scale.x(point.record + 1), y=_BASE + 30, text_anchor="middle") for point in shown
    )
    name = tag("text", "step", x="50%", y=_BASE + 49, text_anchor="middle", class_="name")
    return tag("g", tag("line", x1="0%", x2="100%", y1=_BASE, y2=_BASE), *said, name, class_="steps-axis")


def _legend(course: Course) -> Markup:
    """Only what is drawn, each with its shape, its word and how many there are."""
    shapes = ["began"] if course.start is not None else []
    shapes += [_shape(point) for point in course.points]
    lines = [("current", "current policy"), ("best", "best so far")]
    if course.start_interval or any(point.interval for point in course.points):
        lines.append(("interval", "95% interval"))
    if any(point.played is not None for point in course.points):
        lines.append(("played", "train batch, passed"))
    marks = [name for name in _SHAPES if name in shapes]
    return tag(
        "figcaption",
        tag(
            "ul",
            *(tag("li", _key_line(name), said) for name, said in lines),
            *(tag("li", _key_mark(name), _counted(name, shapes)) for name in marks),
            class_="legend",
        ),
    )


def _counted(name: str, shapes: Sequence[str]) -> str:
    return _MEANINGS[name] if name == "began" else f"{_MEANINGS[name]} ({shapes.count(name)})"


def _key_line(name: str) -> Markup:
    class_ = {"interval": "interval accepted", "played": "played"}.get(name, f"stairs {name}")
    line = tag("line", x1=0, x2=22, y1=8, y2=8)
    if name == "interval":
        line = tag("path", d="M11 1V15M7 1H15M7 15H15")
    elif name == "played":
        line = tag("circle", cx=11, cy=8, r=2.25)
    return tag("svg", tag("g", line, class_=class_), class_="curve key", width=22, height=16, aria_hidden="true")


def _key_mark(name: str) -> Markup:
    shape = tag("g", _SHAPES[name], transform="translate(11 8)", class_=f"mark {name}")
    return tag("svg", shape, class_="curve key", width=22, height=16, aria_hidden="true")
