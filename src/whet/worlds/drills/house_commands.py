"""Sentences that a household says, as commands of a small language of its own."""

from __future__ import annotations

import re
from collections.abc import Sequence
from random import Random

from whet.worlds.drills.drill import Drill, DrillSettings, Item, Words
from whet.worlds.marking import world

_ROOMS = Words(
    (
        "kitchen",
        "bedroom",
        "bathroom",
        "garage",
        "office",
        "nursery",
        "pantry",
        "cellar",
        "attic",
        "lounge",
        "workshop",
    ),
    ("library", "laundry", "studio", "hallway", "basement", "study"),
)
_DOORS = Words(
    ("front", "back", "hall", "garden", "kitchen", "cellar", "patio", "balcony", "attic"),
    ("garage", "shed", "studio", "side", "office"),
)
_LIGHT = Words(
    (
        "Turn {state} the light in the {room}.",
        "Please switch {state} the {room} lamp.",
        "Could you turn the {room} lights {state}?",
        "I want the light in the {room} {state}.",
        "Switch the lamp in the {room} {state}, please.",
    ),
    ("Would you please switch {state} the lights in the {room}?", "The {room} lamp should be {state}."),
)
_HEAT = Words(
    (
        "Set the {room} to {degrees} degrees.",
        "Heat the {room} to {degrees} degrees, please.",
        "I would like {degrees} degrees in the {room}.",
        "Make it {degrees} degrees in the {room}.",
    ),
    ("Please bring the {room} to {degrees} degrees.", "The {room} should have {degrees} degrees."),
)
_TIMER = Words(
    (
        "Set a timer for {minutes} minutes.",
        "Wake me in {minutes} minutes.",
        "Remind me in {minutes} minutes.",
        "Start a timer of {minutes} minutes, please.",
    ),
    ("I need a timer for {minutes} minutes.", "Tell me when {minutes} minutes have passed."),
)
_DOOR = Words(
    (
        "{Act} the {door} door.",
        "Please {act} the {door} door.",
        "Could you {act} the {door} door for me?",
        "Make sure to {act} the {door} door.",
    ),
    ("I want you to {act} the {door} door.", "Would you {act} the door to the {door}?"),
)
_STATES = ("on", "off")
_ACTS = ("lock", "unlock")
_DEGREES = Words(range(16, 27, 2), range(17, 26, 2))
_MINUTES = Words((3, 5, 8, 10, 15, 20, 30, 45, 60), (4, 7, 12, 18, 25, 35, 50))
_FORM = re.compile(r"([a-z]+)\(([a-z0-9]+)(?:,([a-z0-9]+))?\)")


@world("house_commands")
class HouseCommands(Drill):
    """Sentences of a household as commands: light(kitchen,on), heat(attic,19), timer(7), door(hall,lock)."""

    asks = ("Sentence", "Command")
    content = "house_commands 1"

    def __init__(self, settings: DrillSettings) -> None:
        super().__init__(settings)

    def draw(self, rng: Random, *, new: bool) -> Item:
        kind = rng.choice(("light", "light", "heat", "timer", "door"))
        # What is new is the thing that is spoken of, or how, or both.
        thing, phrase = rng.choice(((True, False), (False, True), (True, True))) if new else (False, False)
        if kind == "timer":
            minutes = _MINUTES.draw(rng, new=thing)
            return Item(_TIMER.draw(rng, new=phrase).format(minutes=minutes), f"timer({minutes})", kind)
        if kind == "door":
            door, act = _DOORS.draw(rng, new=thing), rng.choice(_ACTS)
            text = _DOOR.draw(rng, new=phrase).format(door=door, act=act, Act=act.capitalize())
            return Item(text, f"door({door},{act})", kind)
        room = _ROOMS.draw(rng, new=thing)
        if kind == "heat":
            degrees = _DEGREES.draw(rng, new=thing)
            text = _HEAT.draw(rng, new=phrase).format(room=room, degrees=degrees)
            return Item(text, f"heat({room},{degrees})", kind)
        state = rng.choice(_STATES)
        return Item(_LIGHT.draw(rng, new=phrase).format(room=room, state=state), f"light({room},{state})", kind)

    def parts(self, answer: str) -> Sequence[str] | str:
        match = _FORM.fullmatch(answer)
        return [part for part in match.groups() if part is not None] if match else "not one command"
