"""Dates as people write them, as the house writes them."""

from __future__ import annotations

import datetime
import re
from collections.abc import Sequence
from random import Random

from whet.worlds.drills.drill import Drill, DrillSettings, Item, Words
from whet.worlds.marking import world

_MONTHS = (
    "January",
    "February",
    "March",
    "April",
    "May",
    "June",
    "July",
    "August",
    "September",
    "October",
    "November",
    "December",
)
_YEARS = Words(range(1990, 2031, 2), range(1991, 2032, 2))
_FORMS = Words(
    (
        ("written", "{month} {day}, {year}"),
        ("ordinal", "the {nth} of {month} {year}"),
        ("short", "{day} {mon} {year}"),
    ),
    (("ordinal", "{month} the {nth}, {year}"), ("written", "on {month} {day} in {year}")),
)
_FORM = re.compile(r"(\d{4})-(\d\d)-(\d\d)")


@world("dates")
class Dates(Drill):
    """Dates as people write them, as 2024-03-09."""

    asks = ("Date", "ISO")
    content = "dates 1"

    def __init__(self, settings: DrillSettings) -> None:
        super().__init__(settings)

    def draw(self, rng: Random, *, new: bool) -> Item:
        year = _YEARS.draw(rng, new=new)
        day = datetime.date(year, 1, 1) + datetime.timedelta(days=rng.randrange(365))
        kind, form = _FORMS.draw(rng, new=new and rng.random() < 0.5)
        month = _MONTHS[day.month - 1]
        text = form.format(month=month, mon=month[:3], day=day.day, nth=_ordinal(day.day), year=year)
        return Item(text, day.isoformat(), kind)

    def parts(self, answer: str) -> Sequence[str] | str:
        match = _FORM.fullmatch(answer)
        return list(match.groups()) if match else "not a date in the form 2024-03-09"


def _ordinal(day: int) -> str:
    ending = "th" if day in (11, 12, 13) else {1: "st", 2: "nd", 3: "rd"}.get(day % 10, "th")
    return f"{day}{ending}"
