"""What guests say of a stay, as the codes that the house files it under."""

from __future__ import annotations

from collections.abc import Sequence
from random import Random

from whet.worlds.drills.drill import Drill, DrillSettings, Item, Words
from whet.worlds.marking import world

_CODES = {"pleased": "K7", "displeased": "Q2", "no opinion": "M0"}
_THINGS = Words(
    ("room", "breakfast", "pool", "bed", "view", "staff", "bar", "shower", "garden", "lobby"),
    ("sauna", "balcony", "dinner", "reception", "terrace", "gym"),
)
_GOOD = Words(
    ("wonderful", "lovely", "excellent", "perfect", "great", "delightful", "superb"),
    ("fantastic", "amazing", "charming", "brilliant"),
)
_BAD = Words(
    ("awful", "dirty", "terrible", "disgusting", "horrible", "dreadful", "poor"),
    ("disappointing", "filthy", "nasty", "unpleasant"),
)
_SAID = Words(
    ("The {thing} was {word}.", "We found the {thing} {word}.", "What {a} {word} {thing}!", "The {thing}? {Word}."),
    ("I must say the {thing} was {word}.", "Honestly, {a} {word} {thing}."),
)
_PLAIN = Words(
    (
        "We used the {thing} on Monday.",
        "The {thing} is on the first floor.",
        "There was a {thing}.",
        "We saw the {thing}.",
    ),
    ("The {thing} opens at eight.", "I asked where the {thing} was."),
)


@world("house_codes")
class HouseCodes(Drill):
    """What guests say as codes of the house: K7 if they are pleased, Q2 if they are not, M0 if they say neither."""

    asks = ("Guest", "Code")
    content = "house_codes 1"

    def __init__(self, settings: DrillSettings) -> None:
        super().__init__(settings)

    def draw(self, rng: Random, *, new: bool) -> Item:
        kind = rng.choice(tuple(_CODES))
        thing, phrase = _THINGS.draw(rng, new=new), new and rng.random() < 0.5
        if kind == "no opinion":
            return Item(_PLAIN.draw(rng, new=phrase).format(thing=thing), _CODES[kind], kind)
        word = (_GOOD if kind == "pleased" else _BAD).draw(rng, new=new)
        a = "an" if word[0] in "aeiou" else "a"
        text = _SAID.draw(rng, new=phrase).format(thing=thing, word=word, Word=word.capitalize(), a=a)
        return Item(text, _CODES[kind], kind)

    def parts(self, answer: str) -> Sequence[str] | str:
        return [answer] if answer in _CODES.values() else "not a code of the house"
