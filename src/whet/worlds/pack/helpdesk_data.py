"""The help desk's house rules, and how its data is made."""

from __future__ import annotations

from datetime import date
from random import Random

from whet.worlds.database import Rule, State
from whet.worlds.pack.people import days_ago, names, set_clock

SCHEMA = """\
CREATE TABLE staff (id INTEGER PRIMARY KEY, name TEXT NOT NULL, department TEXT NOT NULL,
    manager_id INTEGER REFERENCES staff);
CREATE TABLE devices (id INTEGER PRIMARY KEY, kind TEXT NOT NULL, model TEXT NOT NULL, bought TEXT NOT NULL,
    staff_id INTEGER REFERENCES staff);
CREATE TABLE technicians (id INTEGER PRIMARY KEY, name TEXT NOT NULL, team TEXT NOT NULL);
CREATE TABLE tickets (id INTEGER PRIMARY KEY, staff_id INTEGER NOT NULL REFERENCES staff, subject TEXT NOT NULL,
    team TEXT NOT NULL, people INTEGER NOT NULL, priority TEXT NOT NULL, status TEXT NOT NULL, touched TEXT NOT NULL,
    technician_id INTEGER REFERENCES technicians);
CREATE TABLE accounts (id INTEGER PRIMARY KEY, staff_id INTEGER NOT NULL REFERENCES staff, system TEXT NOT NULL,
    locked INTEGER NOT NULL);
CREATE TABLE approvals (id INTEGER PRIMARY KEY, staff_id INTEGER NOT NULL REFERENCES staff, system TEXT NOT NULL,
    given_by INTEGER NOT NULL REFERENCES staff);
CREATE INDEX tickets_of ON tickets (status);
"""

RULES = (
    Rule(
        "priority",
        "tickets",
        "A fault that stops 10 people or more is urgent, one that stops 3 to 9 is high, all others are normal.",
    ),
    Rule(
        "assignment",
        "tickets",
        "A ticket goes to the technician of its team with the fewest open tickets; among equals, to the lowest number.",
    ),
    Rule(
        "silence",
        "tickets",
        "A waiting ticket that nobody has touched for more than 14 days is closed as 'no answer'; others are not.",
    ),
    Rule("own-manager", "access", "Access is given only where the person's own manager has approved it, and no other."),
    Rule(
        "leavers",
        "access",
        "Of someone who leaves, every account is locked and every device taken in, on the same day.",
    ),
    Rule("laptop-age", "devices", "A laptop is replaced when it is at least 3 years old; a younger one is kept."),
)
DEPARTMENTS = ("sales", "finance", "design", "logistics")
TEAMS = ("network", "software", "hardware")
SYSTEMS = ("mail", "payroll", "stock", "archive", "reports")
SUBJECTS = (
    "no network on the floor",
    "printer is silent",
    "program closes itself",
    "screen stays dark",
    "shared folder gone",
)


def fill(state: State, rng: Random) -> None:
    """People 1 to 4 are the managers of the departments; of the others, even ones have a laptop that is old."""
    today = set_clock(state, rng)
    people = names(rng, 34)
    for place, name in enumerate(people[:28]):
        manager = None if place < 4 else place % 4 + 1
        staff = state.insert("staff", name=name, department=DEPARTMENTS[place % 4], manager_id=manager)
        months = rng.randrange(38, 70) if staff % 2 == 0 else rng.randrange(3, 34)
        state.insert(
            "devices",
            kind="laptop",
            model=f"Nova {rng.randrange(11, 17)}",
            bought=days_ago(today, months * 31),
            staff_id=staff,
        )
        if rng.random() < 0.6:
            state.insert("devices", kind="phone", model="Pico", bought=days_ago(today, 500), staff_id=staff)
        for system in ("mail", rng.choice(("archive", "reports"))):
            state.insert("accounts", staff_id=staff, system=system, locked=0)
    for _ in range(4):
        state.insert(
            "devices", kind="laptop", model="Nova 18", bought=days_ago(today, rng.randrange(5, 40)), staff_id=None
        )
    for place, name in enumerate(people[28:]):
        state.insert("technicians", name=name, team=TEAMS[place % 3])
    for staff in range(5, 29):
        _approval(state, rng, staff)
    _tickets(state, rng, today)


def _approval(state: State, rng: Random, staff: int) -> None:
    """Of people 5 to 16 the own manager has said yes; of the others, another manager."""
    manager = state.get("staff", staff)["manager_id"]
    other = rng.choice([each for each in range(1, 5) if each != manager])
    by = manager if staff <= 16 else other
    state.insert("approvals", staff_id=staff, system=rng.choice(("payroll", "stock")), given_by=by)


def _tickets(state: State, rng: Random, today: date) -> None:
    """Two of each size without a priority or a technician, a number that wait, and others in work."""
    stopped = (rng.randrange(10, 40), 10, 1, 2, rng.randrange(3, 10), 9)
    for place, people in enumerate(stopped):
        _ticket(state, rng, people, days_ago(today, 0), "open", None, TEAMS[place % 3])
    for age in (*rng.sample(range(15, 40), rng.randrange(2, 5)), *rng.sample(range(3, 14), 3), 14):
        _ticket(state, rng, 1, days_ago(today, age), "waiting", rng.randrange(1, 7), rng.choice(TEAMS))
    for _ in range(16):
        technician = rng.randrange(1, 7)
        team = state.get("technicians", technician)["team"]
        _ticket(state, rng, rng.randrange(1, 3), days_ago(today, rng.randrange(1, 5)), "open", technician, team)


def _ticket(
    state: State, rng: Random, people: int, touched: str, status: str, technician: int | None, team: str
) -> None:
    state.insert(
        "tickets",
        staff_id=rng.randrange(5, 29),
        subject=rng.choice(SUBJECTS),
        team=team,
        people=people,
        priority="unset" if technician is None else "normal",
        status=status,
        touched=touched,
        technician_id=technician,
    )
