"""What customers write, as the desk that it goes to and how soon."""

from __future__ import annotations

import re
from collections.abc import Sequence
from random import Random

from whet.worlds.drills.drill import Drill, DrillSettings, Item, Words
from whet.worlds.marking import world

_DESKS = {
    "b": Words(
        (
            "my invoice shows the wrong amount",
            "I was charged twice",
            "I need a receipt",
            "the refund is missing",
            "my payment did not go through",
            "the discount was not taken off",
        ),
        (
            "my card was billed again",
            "the price on my bill is wrong",
            "I paid too much",
            "you owe me money",
            "the invoice has the wrong address",
        ),
    ),
    "t": Words(
        (
            "the app crashes when I open it",
            "I cannot log in",
            "the page does not load",
            "the screen stays black",
            "the update fails",
            "the printer is not found",
        ),
        (
            "the program freezes at start",
            "my password is not accepted",
            "the website shows an error",
            "my account is locked",
            "the sound does not work",
        ),
    ),
    "s": Words(
        (
            "my parcel has not arrived",
            "the box came damaged",
            "the driver left it outside",
            "the wrong item came",
            "the parcel went to my neighbour",
            "half of the order was missing",
        ),
        (
            "my package is lost",
            "the delivery is late",
            "the courier never came",
            "the shipment arrived broken",
            "the tracking has not moved",
        ),
    ),
}
_SOON = Words(
    (
        ("Please hurry, {what}.", "!"),
        ("This is urgent: {what}.", "!"),
        ("Quick, {what}!", "!"),
        ("Help now, {what}!", "!"),
        ("As soon as you can, {what}.", "!"),
    ),
    (("I need help right now, {what}.", "!"), ("It cannot wait: {what}.", "!")),
)
_LATER = Words(
    (
        ("Hello, {what}.", "."),
        ("No rush, but {what}.", "."),
        ("When you have time: {what}.", "."),
        ("Hi, {what}.", "."),
        ("Just so you know, {what}.", "."),
        ("Dear team, {what}.", "."),
    ),
    (("There is no hurry, but {what}.", "."), ("Good morning, {what}.", ".")),
)
_FORM = re.compile(r"([bts])([!.])")
_NAMES = {"b": "billing", "t": "technical", "s": "shipping"}


@world("tickets")
class Tickets(Drill):
    """What customers write as a desk and how soon: b! is billing and urgent, s. is shipping and not."""

    asks = ("Ticket", "Desk")
    content = "tickets 1"

    def __init__(self, settings: DrillSettings) -> None:
        super().__init__(settings)

    def draw(self, rng: Random, *, new: bool) -> Item:
        desk = rng.choice(tuple(_DESKS))
        frame, soon = rng.choice((_SOON, _LATER)).draw(rng, new=new and rng.random() < 0.5)
        return Item(frame.format(what=_DESKS[desk].draw(rng, new=new)), f"{desk}{soon}", _NAMES[desk])

    def parts(self, answer: str) -> Sequence[str] | str:
        match = _FORM.fullmatch(answer)
        return list(match.groups()) if match else "not a desk and how soon"
