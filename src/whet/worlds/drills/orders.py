"""Orders at a counter, as JSON."""

from __future__ import annotations

from collections.abc import Sequence
from random import Random

import msgspec

from whet.worlds.drills.drill import Drill, DrillSettings, Item, Words, read_json
from whet.worlds.marking import world

_NUMBERS = ("one", "two", "three", "four", "five", "six")
_SIZES = ("small", "medium", "large")
_ITEMS = Words(
    ("latte", "tea", "muffin", "soup", "salad", "cookie", "cocoa", "lemonade", "wrap", "bagel"),
    ("espresso", "waffle", "smoothie", "brownie", "omelette", "milkshake"),
)
_PHRASES = Words(
    (
        "I'd like {number} {size} {item}, please.",
        "Can I get {number} {size} {item}?",
        "{Number} {size} {item} to go.",
        "Please bring us {number} {size} {item}.",
        "We will have {number} {item}, {size} ones.",
    ),
    ("Could we order {number} {size} {item}?", "Make that {number} {item}, all {size}."),
)


@world("orders")
class Orders(Drill):
    """Orders at a counter as JSON: {"item": "tea", "size": "large", "quantity": 2}."""

    asks = ("Order", "JSON")
    content = "orders 1"
    answer_schema = {  # noqa: RUF012 (never changed)
        "type": "object",
        "properties": {
            "item": {"type": "string"},
            "size": {"enum": list(_SIZES)},
            "quantity": {"type": "integer"},
        },
        "required": ["item", "size", "quantity"],
        "additionalProperties": False,
    }

    def __init__(self, settings: DrillSettings) -> None:
        super().__init__(settings)

    def draw(self, rng: Random, *, new: bool) -> Item:
        item, size, quantity = _ITEMS.draw(rng, new=new), rng.choice(_SIZES), rng.randint(1, len(_NUMBERS))
        number = _NUMBERS[quantity - 1]
        several = item if quantity == 1 else f"{item}s"
        phrase = _PHRASES.draw(rng, new=new and rng.random() < 0.5)
        text = phrase.format(number=number, Number=number.capitalize(), size=size, item=several)
        answer = {"item": item, "size": size, "quantity": quantity}
        return Item(text, msgspec.json.encode(answer).decode(), size)

    def parts(self, answer: str) -> Sequence[str] | str:
        return read_json(answer, {"item": (str,), "size": (str,), "quantity": (int,)})
