"""Amounts in a recipe, in the one unit that the kitchen weighs and pours by."""

from __future__ import annotations

import re
from collections.abc import Sequence
from random import Random

from whet.worlds.drills.drill import Drill, DrillSettings, Item, Words
from whet.worlds.marking import world

_DRY = Words(
    ("flour", "sugar", "rice", "butter", "salt", "cheese", "oats", "lentils"), ("cocoa", "raisins", "yeast", "pasta")
)
_WET = Words(("milk", "water", "cream", "oil", "juice", "broth"), ("vinegar", "syrup", "wine", "stock"))
_UNITS = {"a kilo": (1000, "g"), "half a kilo": (500, "g"), "a litre": (1000, "ml"), "half a litre": (500, "ml")}
_SMALL = {"g": ("gram", "grams"), "ml": ("millilitre", "millilitres")}
_COUNTS = Words((2, 3, 5, 6), (4, 7, 8))
_AMOUNTS = Words((50, 100, 200, 250, 300, 400, 600), (75, 150, 350, 450, 700))
_PHRASES = Words(
    ("{amount} of {thing}", "add {amount} of {thing}", "You need {amount} of {thing}.", "take {amount} of {thing}"),
    ("Stir in {amount} of {thing}.", "with {amount} of {thing}"),
)
_FORM = re.compile(r"(\d+) (g|ml) ([a-z]+)")


@world("measures")
class Measures(Drill):
    """Amounts of a recipe in grams and millilitres: 500 g flour, 2000 ml milk."""

    asks = ("Amount", "Measure")
    content = "measures 1"

    def __init__(self, settings: DrillSettings) -> None:
        super().__init__(settings)

    def draw(self, rng: Random, *, new: bool) -> Item:
        unit = rng.choice(("g", "ml"))
        thing = (_DRY if unit == "g" else _WET).draw(rng, new=new)
        said, amount, kind = _amount(rng, unit, new=new)
        text = _PHRASES.draw(rng, new=new and rng.random() < 0.5).format(amount=said, thing=thing)
        return Item(text, f"{amount} {unit} {thing}", kind)

    def parts(self, answer: str) -> Sequence[str] | str:
        match = _FORM.fullmatch(answer)
        return list(match.groups()) if match else "not an amount, a unit and a name"


def _amount(rng: Random, unit: str, *, new: bool) -> tuple[str, int, str]:
    """How it is said, how much it is, and which kind of saying that is."""
    kind = rng.choice(("exact", "whole", "several"))
    if kind == "exact":
        amount = _AMOUNTS.draw(rng, new=new)
        return f"{amount} {_SMALL[unit][1]}", amount, kind
    if kind == "several":
        count = _COUNTS.draw(rng, new=new)
        return f"{count} {'kilos' if unit == 'g' else 'litres'}", 1000 * count, kind
    said, (amount, _) = rng.choice([(said, found) for said, found in _UNITS.items() if found[1] == unit])
    return said, amount, kind
