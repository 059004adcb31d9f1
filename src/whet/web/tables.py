"""Tables, lists of names and values, and headings, as every section uses them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import msgspec

from whet.web.markup import Markup, many, tag


class Column(msgspec.Struct, frozen=True):
    title: str
    kind: str = ""
    """"n" for numbers, "plot" for drawings."""


def words(title: str) -> Column:
    return Column(title)


def numbers(title: str) -> Column:
    return Column(title, "n")


def drawing(title: str) -> Column:
    return Column(title, "plot")


def table(caption: str, columns: Sequence[Column], rows: Iterable[Sequence[str]], last: Sequence[str] = ()) -> Markup:
    """The first cell of a row is its name. `last` is a row of sums. A table that is too wide can be moved sideways."""
    head = tag(
        "thead", tag("tr", *(tag("th", column.title, scope="col", class_=column.kind or None) for column in columns))
    )
    body = tag("tbody", *(_row(columns, row) for row in rows))
    foot = tag("tfoot", _row(columns, last)) if last else ""
    whole = tag("table", tag("caption", caption), head, body, foot)
    return tag("div", whole, class_="scroll", role="region", tabindex="0", aria_label=caption)


def _row(columns: Sequence[Column], cells: Sequence[str]) -> Markup:
    first, *others = zip(columns, cells, strict=True)
    name = tag("th", first[1], scope="row", class_=first[0].kind or None)
    return tag("tr", name, *(tag("td", cell, class_=column.kind or None) for column, cell in others))


def section(name: str, title: str, *content: str) -> Markup:
    heading = tag("h2", title, id=f"{name}-title")
    return tag("section", heading, *content, id=name, aria_labelledby=f"{name}-title")


def pairs(rows: Iterable[tuple[str, str]], class_: str = "pairs") -> Markup:
    return tag("dl", *(tag("div", tag("dt", name), tag("dd", said)) for name, said in rows), class_=class_)


def paragraphs(said: str, class_: str = "said") -> Markup:
    """What a model or a world wrote, with its lines."""
    return tag("p", said.strip(), class_=class_)


def folded(summary: str, *content: str, opened: bool = False, class_: str | None = None) -> Markup:
    return tag("details", tag("summary", summary), *content, open=opened, class_=class_)


def bullets(items: Iterable[str], class_: str | None = None) -> Markup:
    return tag("ul", many(tag("li", item) for item in items), class_=class_)
