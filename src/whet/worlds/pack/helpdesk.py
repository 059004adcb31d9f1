"""The help desk of an office: tickets, devices and access."""

from __future__ import annotations

from random import Random
from typing import Any, Literal

from whet.core import Act
from whet.worlds.calling import ToolRefusal
from whet.worlds.database import (
    Draft,
    Scenario,
    State,
    act,
    any_of,
    done,
    insert,
    number,
    read_handbook,
    refused,
    update,
)
from whet.worlds.database.scenario import get_time
from whet.worlds.pack.helpdesk_data import RULES, SCHEMA, TEAMS, fill
from whet.worlds.pack.people import days_ago, pick

Priority = Literal["normal", "high", "urgent"]
Outcome = Literal["solved", "no answer", "duplicate"]
System = Literal["mail", "payroll", "stock", "archive", "reports"]


def find_staff(state: State, name: str) -> list[dict[str, Any]]:
    """People by name or a part of it, with their devices, accounts and approvals."""
    people = state.rows("SELECT * FROM staff WHERE name LIKE ? ORDER BY id LIMIT 5", f"%{name}%")
    return [
        {
            **person,
            "devices": state.rows("SELECT id, kind, model, bought FROM devices WHERE staff_id = ?", person["id"]),
            "accounts": state.rows("SELECT id, system, locked FROM accounts WHERE staff_id = ?", person["id"]),
            "approvals": state.rows("SELECT system, given_by FROM approvals WHERE staff_id = ?", person["id"]),
        }
        for person in people
    ]


def list_tickets(state: State, status: Literal["open", "waiting", "closed"]) -> list[dict[str, Any]]:
    """Tickets of a status, with the day on which each was last touched."""
    return state.rows(
        "SELECT id, subject, team, status, touched, technician_id FROM tickets WHERE status LIKE ?", f"{status}%"
    )


def get_ticket(state: State, ticket_id: int) -> dict[str, Any]:
    """A ticket; `people` is how many the fault stops from working."""
    return state.get("tickets", ticket_id)


def set_priority(state: State, ticket_id: int, priority: Priority) -> str:
    """Set how urgent a ticket is."""
    if state.get("tickets", ticket_id)["priority"] == priority:
        raise ToolRefusal(f"it is {priority} already")
    state.update("tickets", ticket_id, priority=priority)
    return "set"


def list_technicians(state: State, team: Literal["network", "software", "hardware"]) -> list[dict[str, Any]]:
    """The technicians of a team, with how many open tickets each has."""
    count = "(SELECT count(*) FROM tickets WHERE technician_id = technicians.id AND status = 'open')"
    return state.rows(f"SELECT id, name, {count} AS open_tickets FROM technicians WHERE team = ? ORDER BY id", team)


def assign(state: State, ticket_id: int, technician_id: int) -> str:
    """Give a ticket to a technician."""
    state.get("tickets", ticket_id)
    state.get("technicians", technician_id)
    state.update("tickets", ticket_id, technician_id=technician_id)
    return "assigned"


def close_ticket(state: State, ticket_id: int, outcome: Outcome) -> str:
    """Close a ticket."""
    if state.get("tickets", ticket_id)["status"].startswith("closed"):
        raise ToolRefusal(f"ticket {ticket_id} is closed already")
    state.update("tickets", ticket_id, status=f"closed: {outcome}")
    return "closed"


def lock_account(state: State, account_id: int) -> str:
    """Lock an account."""
    if state.get("accounts", account_id)["locked"]:
        raise ToolRefusal(f"account {account_id} is locked already")
    state.update("accounts", account_id, locked=1)
    return "locked"


def grant_access(state: State, staff_id: int, system: System) -> str:
    """Make an account for a person in a system."""
    state.get("staff", staff_id, "person")
    if state.value("SELECT id FROM accounts WHERE staff_id = ? AND system = ?", staff_id, system):
        raise ToolRefusal("the person has an account there already")
    return f"account {state.insert('accounts', staff_id=staff_id, system=system, locked=0)} is made"


def list_spare_devices(state: State, kind: Literal["laptop", "phone", "screen"]) -> list[dict[str, Any]]:
    """Devices of a kind that nobody has."""
    return state.rows("SELECT id, model, bought FROM devices WHERE kind = ? AND staff_id IS NULL ORDER BY id", kind)


def hand_out(state: State, staff_id: int, device_id: int) -> str:
    """Hand out a device that nobody has to a person."""
    state.get("staff", staff_id, "person")
    device = state.get("devices", device_id)
    if device["staff_id"] is not None:
        raise ToolRefusal(f"device {device_id} is with person {device['staff_id']}")
    state.update("devices", device_id, staff_id=staff_id)
    return "handed out"


def take_in(state: State, device_id: int) -> str:
    """Take a device in from whoever has it."""
    if state.get("devices", device_id)["staff_id"] is None:
        raise ToolRefusal(f"device {device_id} is in already")
    state.update("devices", device_id, staff_id=None)
    return "taken in"


def _triage(state: State, rng: Random, where: str, priority: str) -> Draft:
    ticket = pick(rng, state.rows(f"SELECT * FROM tickets WHERE priority = 'unset' AND {where}"))
    return Draft(
        f"Ticket {ticket['id']} ('{ticket['subject']}') has no priority yet. Give it the right one.",
        (
            act(read_handbook, topic="tickets"),
            act(get_ticket, ticket_id=ticket["id"]),
            act(set_priority, ticket_id=ticket["id"], priority=priority),
        ),
        done(update("tickets", ticket["id"], priority=priority)),
        ("priority",),
    )


def triage_large(state: State, rng: Random) -> Draft:
    return _triage(state, rng, "people >= 10", "urgent")


def triage_medium(state: State, rng: Random) -> Draft:
    return _triage(state, rng, "people BETWEEN 3 AND 9", "high")


def assign_ticket(state: State, rng: Random) -> Draft:
    ticket = pick(rng, state.rows("SELECT * FROM tickets WHERE technician_id IS NULL"))
    technicians = list_technicians(state, ticket["team"])
    chosen = min(technicians, key=lambda each: (each["open_tickets"], each["id"]))["id"]
    return Draft(
        f"Find a technician for ticket {ticket['id']} and assign it.",
        (
            act(read_handbook, topic="tickets"),
            act(get_ticket, ticket_id=ticket["id"]),
            act(list_technicians, team=ticket["team"]),
            act(assign, ticket_id=ticket["id"], technician_id=chosen),
        ),
        done(update("tickets", ticket["id"], technician_id=chosen)),
        ("assignment",),
    )


def close_silent(state: State, rng: Random) -> Draft:
    silent = state.values("SELECT id FROM tickets WHERE status = 'waiting' AND touched < ?", days_ago(state.today, 14))
    return Draft(
        "Go through the waiting tickets and close those that are due to be closed.",
        (
            act(read_handbook, topic="tickets"),
            act(get_time),
            act(list_tickets, status="waiting"),
            *(act(close_ticket, ticket_id=ticket, outcome="no answer") for ticket in silent),
        ),
        done(*(update("tickets", ticket, status="closed: no answer") for ticket in silent)),
        ("silence",),
    )


def _person(state: State, rng: Random, where: str) -> dict[str, Any]:
    return pick(rng, state.rows(f"SELECT * FROM staff WHERE {where} ORDER BY id"))


def _looked_up(person: dict[str, Any], topic: str) -> tuple[Act, ...]:
    return act(read_handbook, topic=topic), act(find_staff, name=person["name"])


def see_off(state: State, rng: Random) -> Draft:
    person = _person(state, rng, "id > 4")
    accounts = state.values("SELECT id FROM accounts WHERE staff_id = ? ORDER BY id", person["id"])
    devices = state.values("SELECT id FROM devices WHERE staff_id = ? ORDER BY id", person["id"])
    return Draft(
        f"Today is the last day of {person['name']} in {person['department']}. Do what has to be done.",
        (
            *_looked_up(person, "access"),
            *(act(lock_account, account_id=account) for account in accounts),
            *(act(take_in, device_id=device) for device in devices),
        ),
        done(
            *(update("accounts", account, locked=1) for account in accounts),
            *(update("devices", device, staff_id=None) for device in devices),
        ),
        ("leavers",),
    )


def _access(state: State, rng: Random, where: str) -> tuple[dict[str, Any], str, str]:
    person = _person(state, rng, where)
    system = state.value("SELECT system FROM approvals WHERE staff_id = ?", person["id"])
    return person, system, f"{person['name']} in {person['department']} asks for access to {system}."


def give_access(state: State, rng: Random) -> Draft:
    person, system, told = _access(state, rng, "id BETWEEN 5 AND 16")
    return Draft(
        told,
        (*_looked_up(person, "access"), act(grant_access, staff_id=person["id"], system=system)),
        done(insert("accounts", staff_id=person["id"], system=system, locked=0)),
        ("own-manager",),
    )


def give_no_access(state: State, rng: Random) -> Draft:
    person, _, told = _access(state, rng, "id > 16")
    return Draft(told, _looked_up(person, "access"), refused("own-manager"), ("own-manager",))


def _laptop(state: State, rng: Random, where: str) -> tuple[dict[str, Any], int, str]:
    person = _person(state, rng, f"id > 4 AND {where}")
    laptop = state.value("SELECT id FROM devices WHERE staff_id = ? AND kind = 'laptop'", person["id"])
    return (
        person,
        laptop,
        f"{person['name']} in {person['department']} would like a new laptop in exchange for the old one.",
    )


def replace_laptop(state: State, rng: Random) -> Draft:
    person, laptop, told = _laptop(state, rng, "id % 2 = 0")
    spare = [device["id"] for device in list_spare_devices(state, "laptop")]
    return Draft(
        told,
        (
            *_looked_up(person, "devices"),
            act(get_time),
            act(list_spare_devices, kind="laptop"),
            act(take_in, device_id=laptop),
            act(hand_out, staff_id=person["id"], device_id=spare[0]),
        ),
        any_of(
            *(
                [update("devices", laptop, staff_id=None), update("devices", new, staff_id=person["id"])]
                for new in spare
            )
        ),
        ("laptop-age",),
    )


def keep_laptop(state: State, rng: Random) -> Draft:
    person, _, told = _laptop(state, rng, "id % 2 = 1")
    return Draft(told, (*_looked_up(person, "devices"), act(get_time)), refused("laptop-age"), ("laptop-age",))


def open_in_team(state: State, rng: Random) -> Draft:
    team = rng.choice(TEAMS)
    count = state.value("SELECT count(*) FROM tickets WHERE team = ? AND status = 'open'", team)
    return Draft(
        f"How many open tickets does the {team} team have, those without a technician included?",
        (act(list_tickets, status="open"),),
        number(count),
    )


def stray(state: State) -> Act:
    return act(lock_account, account_id=1)


HELPDESK = Scenario(
    name="helpdesk",
    about="The help desk of an office: tickets, devices and access.",
    conduct="You work at the help desk for computers of an office.",
    schema=SCHEMA,
    fill=fill,
    rules=RULES,
    tools=(
        find_staff,
        list_tickets,
        get_ticket,
        set_priority,
        list_technicians,
        assign,
        close_ticket,
        lock_account,
        grant_access,
        list_spare_devices,
        hand_out,
        take_in,
    ),
    templates=(
        triage_large,
        see_off,
        triage_medium,
        give_no_access,
        assign_ticket,
        keep_laptop,
        give_access,
        close_silent,
        open_in_team,
        replace_laptop,
    ),
    stray=stray,
)
