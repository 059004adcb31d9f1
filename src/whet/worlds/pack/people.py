"""Names, places and dates that scenarios draw from."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date, datetime, timedelta
from random import Random
from typing import TypeVar

from whet.worlds.database import State

Item = TypeVar("Item")

# fmt: off
FIRST = (
    "Ada", "Amir", "Bela", "Boris", "Carla", "Chidi", "Dana", "Dewi", "Elif", "Emil", "Farah", "Felix", "Greta",
    "Hana", "Hugo", "Ines", "Ivo", "Jonas", "Juno", "Kaja", "Kofi", "Lars", "Leila", "Malik", "Mira", "Nadia",
    "Nils", "Odile", "Omar", "Paula", "Petra", "Quinn", "Rosa", "Rune", "Sami", "Selma", "Tariq", "Thea", "Uma",
    "Viktor", "Wanda", "Yara", "Zoe",
)
LAST = (
    "Abel", "Brandt", "Castro", "Dvorak", "Eriksen", "Farkas", "Gruber", "Haddad", "Ivanov", "Jansen", "Keller",
    "Lindqvist", "Moreau", "Novak", "Okafor", "Petrov", "Quist", "Rossi", "Santos", "Tanaka", "Ueda", "Varga",
    "Weiss", "Ximenes", "Yilmaz", "Zhang", "Berger", "Costa", "Dumas", "Holm",
)
# fmt: on
CITIES = ("Aarhus", "Bruges", "Cork", "Dresden", "Evora", "Faro", "Ghent", "Haarlem", "Iasi", "Jena")


def names(rng: Random, count: int) -> list[str]:
    """Different names, in a drawn order."""
    return rng.sample([f"{first} {last}" for first in FIRST for last in LAST], count)


def set_clock(state: State, rng: Random, *, hour: int = 9) -> date:
    """A working day of its own for the scenario."""
    day = date(2031, 2, 3) + timedelta(days=rng.randrange(300))
    day += timedelta(days=(7 - day.weekday()) % 7 if day.weekday() > 4 else 0)
    state.connection.execute("INSERT INTO clock VALUES (?)", (f"{day} {hour:02d}:{rng.choice((0, 10, 20, 40)):02d}",))
    return day


def days_ago(day: date, days: int) -> str:
    return str(day - timedelta(days=days))


def later(now: str, *, hours: int) -> str:
    return (datetime.fromisoformat(now) + timedelta(hours=hours)).strftime("%Y-%m-%d %H:%M")


def pick(rng: Random, found: Sequence[Item]) -> Item:
    """One of what a query found; a scenario's data always holds one."""
    if not found:
        raise LookupError("the data holds no row that this task could be about")
    return rng.choice(found)


def euros(cents: int) -> str:
    return f"{cents / 100:.2f} EUR"
