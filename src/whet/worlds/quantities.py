"""Numbers with their scale and unit as people write them: "1,234.5", "$3.2 million", "-40 %", "6.02e23". Pure."""

from __future__ import annotations

import re
from collections.abc import Iterator
from decimal import Decimal

import msgspec

from whet.worlds.text import compatible

_SCALES = {
    **dict.fromkeys(("thousand", "thousands", "k"), 3),
    **dict.fromkeys(("million", "millions", "mn", "mio", "mln"), 6),
    **dict.fromkeys(("billion", "billions", "bn", "bln"), 9),
    **dict.fromkeys(("trillion", "trillions", "tn", "trn"), 12),
}
# One letter is a scale only where it cannot be a unit: 5M, and $5m, but not 5m, which may be metres.
_LETTER_SCALES = {"K": 3, "M": 6, "B": 9, "T": 12}
_MONEY_LETTER_SCALES = {**_LETTER_SCALES, "m": 6, "b": 9, "t": 12}

_UNITS = {
    alias: unit
    for unit, aliases in {
        "%": "% percent percents pct",
        "$": "$ usd dollar dollars us$",
        "€": "€ eur euro euros",
        "£": "£ gbp",
        "¥": "¥ jpy yen",
        "₹": "₹ inr rupee rupees",
        "km": "km kilometer kilometers kilometre kilometres",
        "m": "m meter meters metre metres",
        "cm": "cm centimeter centimeters centimetre centimetres",
        "mm": "mm millimeter millimeters millimetre millimetres",
        "mi": "mi mile miles",
        "ft": "ft foot feet",
        "in": "inch inches",
        "kg": "kg kilogram kilograms kilo kilos",
        "g": "g gram grams",
        "lb": "lb lbs",
        "s": "s sec secs second seconds",
        "min": "min mins minute minutes",
        "h": "h hr hrs hour hours",
        "day": "day days",
        "week": "week weeks",
        "month": "month months",
        "year": "year years",
        "°C": "°c celsius",
        "°F": "°f fahrenheit",
    }.items()
    for alias in aliases.split()
}

_NUMBER = re.compile(
    r"""(?<![\w.,^])
        (?P<before>[-+]?\s?(?:us\$|[$€£¥₹])\s?)?
        (?P<number>[-+]?(?:\d{1,3}(?:,\d{3})+(?!\d)(?!,\d)(?:\.\d+)?|\d+(?:\.\d+)?|\.\d+)(?:e[-+]?\d{1,3})?)
        (?![\d,]*\d|[a-z_]+[-+]?\d|\.\d|\s?\^)
        (?:[ \t]?(?P<scale>thousands?|millions?|billions?|trillions?|mn|mio|mln|bn|bln|tn|trn)\b
          |(?P<letter>[kmbt])\b)?
        (?P<after>[ \t-]?(?:%|[$€£¥₹]|°[cf]\b|[a-z]+\b(?!\^)))?
    """,
    re.VERBOSE | re.IGNORECASE,
)
_HEDGE = re.compile(r"^\W*(?:or|and|to|/|-)\W*$", re.IGNORECASE)
_MINUS = dict.fromkeys(map(ord, "‐‑‒–−"), "-")


class Quantity(msgspec.Struct, frozen=True):
    value: Decimal
    unit: str = ""
    """One of the units known here, or nothing."""

    def agrees(self, other: Quantity) -> bool:
        """Units disagree only where both are written and known."""
        return not (self.unit and other.unit and self.unit != other.unit)


class Found(msgspec.Struct, frozen=True):
    quantity: Quantity
    start: int
    end: int


def quantities(text: str) -> list[Found]:
    """Every number in a text, in order."""
    return list(_found(_plain(text)))


def only_quantity(text: str) -> Quantity | str:
    """The number that a text gives, or why it gives none: there must be one, however often it is repeated."""
    different = {found.quantity for found in quantities(text)}
    if len(different) == 1:
        return different.pop()
    if not different:
        return "not a number: the answer gives none"
    return f"ambiguous: the answer gives {len(different)} numbers; end with a line 'Answer: <number>'"


def last_quantity(line: str) -> Quantity | str:
    """The final number of an answer line, unless the line hedges: "5 or 6"."""
    found = quantities(line)
    if not found:
        return "not a number: the answer line gives none"
    if len(found) > 1 and found[-2].quantity != found[-1].quantity and _hedged(_plain(line), found):
        return "ambiguous: the answer line gives more than one number"
    return found[-1].quantity


def _found(text: str) -> Iterator[Found]:
    for match in _NUMBER.finditer(text):
        before = (match["before"] or "").strip()
        currency = before.lstrip("+-").strip().casefold()
        value = Decimal(match["number"].replace(",", ""))
        if before.startswith("-"):
            value = -value
        unit = _UNITS.get(currency) or _UNITS.get((match["after"] or "").strip(" \t-").casefold(), "")
        power, letter_unit = _power(match["scale"], match["letter"], bool(currency))
        value = value.scaleb(power) if power else value
        end = match.start("after") if match["after"] and not unit else match.end()
        yield Found(Quantity(value.normalize() + 0, unit or letter_unit), match.start(), end)


def _plain(text: str) -> str:
    return compatible(text).translate(_MINUS)


def _hedged(line: str, found: list[Found]) -> bool:
    return _HEDGE.match(line[found[-2].end : found[-1].start]) is not None


def _power(scale: str | None, letter: str | None, money: bool) -> tuple[int, str]:
    """How many zeros a word or letter stands for, and the unit that the letter is where it is no scale."""
    if scale:
        return _SCALES[scale.casefold()], ""
    if not letter:
        return 0, ""
    scales = _MONEY_LETTER_SCALES if money else _LETTER_SCALES
    if letter == "k":
        return 3, ""
    return scales.get(letter, 0), "" if letter in scales else _UNITS.get(letter, "")
