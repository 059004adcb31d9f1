"""The control room of a vehicle fleet: trips, drivers, services and defects."""

from __future__ import annotations

from datetime import timedelta
from random import Random
from typing import Annotated, Any, Literal

from msgspec import Meta

from whet.core import Act
from whet.worlds.calling import ToolRefusal
from whet.worlds.database import (
    Draft,
    Rule,
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
from whet.worlds.pack.people import names, pick, set_clock

SCHEMA = """\
CREATE TABLE vehicles (id INTEGER PRIMARY KEY, plate TEXT NOT NULL UNIQUE, kind TEXT NOT NULL, fuel TEXT NOT NULL,
    km INTEGER NOT NULL, service_km INTEGER NOT NULL, depot TEXT NOT NULL);
CREATE TABLE defects (id INTEGER PRIMARY KEY, vehicle_id INTEGER NOT NULL REFERENCES vehicles, part TEXT NOT NULL,
    mended INTEGER NOT NULL DEFAULT 0);
CREATE TABLE drivers (id INTEGER PRIMARY KEY, name TEXT NOT NULL, licence TEXT NOT NULL, hours INTEGER NOT NULL);
CREATE TABLE trips (id INTEGER PRIMARY KEY, day TEXT NOT NULL, depot TEXT NOT NULL, kind TEXT NOT NULL,
    planned_km INTEGER NOT NULL, hours INTEGER NOT NULL, status TEXT NOT NULL DEFAULT 'planned',
    vehicle_id INTEGER REFERENCES vehicles, driver_id INTEGER REFERENCES drivers, driven_km INTEGER);
CREATE TABLE services (id INTEGER PRIMARY KEY, vehicle_id INTEGER NOT NULL REFERENCES vehicles, day TEXT NOT NULL);
CREATE INDEX trips_of ON trips (vehicle_id);
"""

RULES = (
    Rule("service-due", "vehicles", "A vehicle with less than 500 km left until its next service is given no trip."),
    Rule("open-defect", "vehicles", "A vehicle with a defect that is not mended is given no trip."),
    Rule("electric-first", "vehicles", "Trips of up to 120 km are driven by electric vehicles, longer ones by diesel."),
    Rule("after-defect", "vehicles", "When a defect is reported, all planned trips of that vehicle are cancelled."),
    Rule("licences", "drivers", "Buses need the licence D, trucks the licence C, cars and vans the licence B, C or D."),
    Rule("weekly-hours", "drivers", "With a trip's hours, a driver has at most 40 hours in the week."),
    Rule("kilometres", "records", "Distances are recorded in whole kilometres; a mile is 1.6 km, rounded down."),
)
DEPOTS = ("North", "Harbour", "Airport")
KINDS = ("van", "car", "bus", "truck")
Kind = Literal["van", "car", "bus", "truck"]
Depot = Literal["North", "Harbour", "Airport"]
Part = Literal["brakes", "lights", "tyres", "door"]
Day = Annotated[str, Meta(pattern=r"^\d{4}-\d\d-\d\d$", description="as YYYY-MM-DD")]


def list_vehicles(state: State, depot: Depot, kind: Kind | None = None) -> list[dict[str, Any]]:
    """The vehicles of a depot; `service_km` is the reading at which the next service is due."""
    return state.rows(
        "SELECT * FROM vehicles WHERE depot = ? AND (? IS NULL OR kind = ?) ORDER BY id", depot, kind, kind
    )


def list_defects(state: State, depot: Depot) -> list[dict[str, Any]]:
    """Defects of a depot's vehicles, mended ones included."""
    sql = (
        "SELECT plate, vehicle_id, part, mended FROM defects JOIN vehicles ON vehicles.id = vehicle_id WHERE depot = ?"
    )
    return state.rows(f"{sql} ORDER BY defects.id", depot)


def find_vehicle(state: State, plate: str) -> dict[str, Any]:
    """A vehicle by its plate, with its defects and its trips."""
    found = state.row("SELECT * FROM vehicles WHERE plate = ?", plate.strip().upper())
    if found is None:
        raise ToolRefusal(f"no vehicle has the plate {plate}")
    return {
        **found,
        "defects": state.rows("SELECT part, mended FROM defects WHERE vehicle_id = ? ORDER BY id", found["id"]),
        "trips": state.rows("SELECT id, day, status FROM trips WHERE vehicle_id = ? ORDER BY id", found["id"]),
    }


def get_trip(state: State, trip_id: int) -> dict[str, Any]:
    """A trip: where it starts, which kind of vehicle it needs, how far and long it is."""
    return state.get("trips", trip_id)


def list_drivers(state: State, licence: Literal["B", "C", "D"]) -> list[dict[str, Any]]:
    """Drivers whose licence is this one, with their hours of the week so far."""
    return state.rows("SELECT * FROM drivers WHERE licence = ? ORDER BY id", licence)


def find_drivers(state: State, name: str) -> list[dict[str, Any]]:
    """Drivers by name or a part of it."""
    return state.rows("SELECT * FROM drivers WHERE name LIKE ? ORDER BY id LIMIT 20", f"%{name}%")


def assign_vehicle(state: State, trip_id: int, vehicle_id: int) -> str:
    """Give a trip a vehicle of the kind and depot that it needs."""
    trip, vehicle = state.get("trips", trip_id), state.get("vehicles", vehicle_id)
    if (trip["kind"], trip["depot"]) != (vehicle["kind"], vehicle["depot"]):
        raise ToolRefusal(f"the trip needs a {trip['kind']} of the depot {trip['depot']}")
    state.update("trips", trip_id, vehicle_id=vehicle_id)
    return "assigned"


def assign_driver(state: State, trip_id: int, driver_id: int) -> str:
    """Give a trip a driver; the trip's hours are added to the driver's."""
    trip, driver = state.get("trips", trip_id), state.get("drivers", driver_id)
    state.update("trips", trip_id, driver_id=driver_id)
    state.update("drivers", driver_id, hours=driver["hours"] + trip["hours"])
    return "assigned"


def cancel_trip(state: State, trip_id: int) -> str:
    """Cancel a trip that is planned."""
    if state.get("trips", trip_id)["status"] != "planned":
        raise ToolRefusal(f"trip {trip_id} is not planned")
    state.update("trips", trip_id, status="cancelled")
    return "cancelled"


def record_distance(state: State, trip_id: int, km: Annotated[int, Meta(ge=1, le=5_000)]) -> str:
    """Record that a trip was driven, and add its distance to the vehicle's reading."""
    trip = state.get("trips", trip_id)
    if trip["status"] != "under way":
        raise ToolRefusal(f"trip {trip_id} is not under way")
    vehicle = state.get("vehicles", trip["vehicle_id"])
    state.update("trips", trip_id, status="driven", driven_km=km)
    state.update("vehicles", vehicle["id"], km=vehicle["km"] + km)
    return "recorded"


def report_defect(state: State, vehicle_id: int, part: Part) -> str:
    """Report a defect of a vehicle."""
    state.get("vehicles", vehicle_id)
    return f"defect {state.insert('defects', vehicle_id=vehicle_id, part=part)} is reported"


def book_service(state: State, vehicle_id: int, day: Day) -> str:
    """Book a service for a vehicle."""
    state.get("vehicles", vehicle_id)
    return f"service {state.insert('services', vehicle_id=vehicle_id, day=str(state.day(day)))} is booked"


def fill(state: State, rng: Random) -> None:
    """Of each kind and depot: two sound vehicles of each fuel, one that is due for service and one with a defect."""
    today = set_clock(state, rng)
    plates = iter(rng.sample(range(1000, 10_000), len(DEPOTS) * len(KINDS) * 6))
    for depot in DEPOTS:
        for kind in KINDS:
            for place in range(6):
                fuel = ("electric", "diesel")[place % 2]
                _vehicle(state, rng, f"FL {next(plates)}", kind, fuel, depot, place)
    for place, name in enumerate(names(rng, 18)):
        hours = rng.randrange(36, 40) if place >= 9 else rng.randrange(10, 30)
        state.insert("drivers", name=name, licence="BCD"[place % 3], hours=hours)
    for depot in DEPOTS:
        for kind in KINDS:
            for place in range(4):
                far = rng.randrange(30, 118) if place % 2 == 0 else rng.randrange(140, 300)
                day = str(today + timedelta(days=1 + place))
                state.insert("trips", day=day, depot=depot, kind=kind, planned_km=far, hours=rng.randrange(5, 9))
    for vehicle in state.rows("SELECT * FROM vehicles WHERE id % 6 IN (1, 2)"):
        for ahead, status in ((0, "under way"), (2, "planned"), (5, "planned")):
            trip = {
                "depot": vehicle["depot"],
                "kind": vehicle["kind"],
                "planned_km": rng.randrange(40, 110),
                "hours": 6,
            }
            day = str(today + timedelta(days=ahead))
            state.insert(
                "trips", day=day, status=status, vehicle_id=vehicle["id"], driver_id=rng.randrange(1, 10), **trip
            )


def _vehicle(state: State, rng: Random, plate: str, kind: str, fuel: str, depot: str, place: int) -> None:
    km = rng.randrange(20_000, 90_000)
    left = rng.randrange(50, 480) if place == 5 else rng.randrange(900, 9_000)
    vehicle = state.insert("vehicles", plate=plate, kind=kind, fuel=fuel, km=km, service_km=km + left, depot=depot)
    if place == 4:
        state.insert("defects", vehicle_id=vehicle, part=rng.choice(("brakes", "lights", "tyres")), mended=0)
    elif rng.random() < 0.4:
        state.insert("defects", vehicle_id=vehicle, part="door", mended=1)


_SOUND = "service_km - km >= 500 AND id NOT IN (SELECT vehicle_id FROM defects WHERE mended = 0)"


def _trip(state: State, rng: Random, where: str) -> dict[str, Any]:
    return pick(rng, state.rows(f"SELECT * FROM trips WHERE vehicle_id IS NULL AND {where} ORDER BY id"))


def _find_vehicle_for(state: State, rng: Random, where: str, fuel: str) -> Draft:
    trip = _trip(state, rng, where)
    sql = f"SELECT id FROM vehicles WHERE depot = ? AND kind = ? AND fuel = ? AND {_SOUND} ORDER BY id"
    fitting = state.values(sql, trip["depot"], trip["kind"], fuel)
    return Draft(
        f"Trip {trip['id']} has no vehicle yet. Give it one that fits.",
        (
            act(read_handbook, topic="vehicles"),
            act(get_trip, trip_id=trip["id"]),
            act(list_vehicles, depot=trip["depot"], kind=trip["kind"]),
            act(list_defects, depot=trip["depot"]),
            act(assign_vehicle, trip_id=trip["id"], vehicle_id=fitting[0]),
        ),
        any_of(*([update("trips", trip["id"], vehicle_id=vehicle)] for vehicle in fitting)),
        ("electric-first", "service-due", "open-defect"),
    )


def short_trip(state: State, rng: Random) -> Draft:
    return _find_vehicle_for(state, rng, "planned_km <= 120", "electric")


def long_trip(state: State, rng: Random) -> Draft:
    return _find_vehicle_for(state, rng, "planned_km > 120", "diesel")


def _named_vehicle(state: State, rng: Random, where: str, rule: str) -> Draft:
    vehicle = pick(rng, state.rows(f"SELECT * FROM vehicles WHERE {where} ORDER BY id"))
    near = "planned_km <= 120" if vehicle["fuel"] == "electric" else "planned_km > 120"
    trip = _trip(state, rng, f"kind = '{vehicle['kind']}' AND depot = '{vehicle['depot']}' AND {near}")
    return Draft(
        f"Give trip {trip['id']} the vehicle with the plate {vehicle['plate']}.",
        (
            act(read_handbook, topic="vehicles"),
            act(get_trip, trip_id=trip["id"]),
            act(find_vehicle, plate=vehicle["plate"]),
        ),
        refused(rule),
        (rule,),
    )


def vehicle_with_defect(state: State, rng: Random) -> Draft:
    return _named_vehicle(state, rng, "id IN (SELECT vehicle_id FROM defects WHERE mended = 0)", "open-defect")


def vehicle_due(state: State, rng: Random) -> Draft:
    return _named_vehicle(state, rng, "service_km - km < 500", "service-due")


def find_driver(state: State, rng: Random) -> Draft:
    trip = _trip(state, rng, "kind IN ('bus', 'truck')")
    licence = "D" if trip["kind"] == "bus" else "C"
    rested = [one for one in list_drivers(state, licence) if one["hours"] + trip["hours"] <= 40]
    return Draft(
        f"Trip {trip['id']} has no driver yet. Give it one.",
        (
            act(read_handbook, topic="drivers"),
            act(get_trip, trip_id=trip["id"]),
            act(list_drivers, licence=licence),
            act(assign_driver, trip_id=trip["id"], driver_id=rested[0]["id"]),
        ),
        any_of(
            *(
                [
                    update("trips", trip["id"], driver_id=driver["id"]),
                    update("drivers", driver["id"], hours=driver["hours"] + trip["hours"]),
                ]
                for driver in rested
            )
        ),
        ("licences", "weekly-hours"),
    )


def tired_driver(state: State, rng: Random) -> Draft:
    trip = _trip(state, rng, "kind = 'van'")
    driver = pick(rng, state.rows("SELECT * FROM drivers WHERE hours + ? > 40", trip["hours"]))
    return Draft(
        f"Let {driver['name']} drive trip {trip['id']}.",
        (
            act(read_handbook, topic="drivers"),
            act(get_trip, trip_id=trip["id"]),
            act(find_drivers, name=driver["name"]),
        ),
        refused("weekly-hours"),
        ("weekly-hours",),
    )


def record_miles(state: State, rng: Random) -> Draft:
    trip = pick(rng, state.rows("SELECT * FROM trips WHERE status = 'under way'"))
    miles = rng.randrange(21, 84)
    km = miles * 16 // 10
    reading = state.value("SELECT km FROM vehicles WHERE id = ?", trip["vehicle_id"])
    return Draft(
        f"The driver of trip {trip['id']} is back and says it was {miles} miles. Record it.",
        (act(read_handbook, topic="records"), act(record_distance, trip_id=trip["id"], km=km)),
        done(
            update("trips", trip["id"], status="driven", driven_km=km),
            update("vehicles", trip["vehicle_id"], km=reading + km),
        ),
        ("kilometres",),
    )


def defect_found(state: State, rng: Random) -> Draft:
    vehicle = pick(rng, state.rows("SELECT * FROM vehicles WHERE id % 6 IN (1, 2)"))
    part = rng.choice(("brakes", "lights", "tyres"))
    trips = state.values("SELECT id FROM trips WHERE vehicle_id = ? AND status = 'planned'", vehicle["id"])
    return Draft(
        f"The {part} of {vehicle['plate']} do not work. Put it on record.",
        (
            act(read_handbook, topic="vehicles"),
            act(find_vehicle, plate=vehicle["plate"]),
            act(report_defect, vehicle_id=vehicle["id"], part=part),
            *(act(cancel_trip, trip_id=trip) for trip in trips),
        ),
        done(
            insert("defects", vehicle_id=vehicle["id"], part=part, mended=0),
            *(update("trips", trip, status="cancelled") for trip in trips),
        ),
        ("after-defect",),
    )


def book_services(state: State, rng: Random) -> Draft:
    depot, day = rng.choice(DEPOTS), str(state.today + timedelta(days=rng.randrange(7, 20)))
    sql = "SELECT id FROM vehicles WHERE depot = ? AND service_km - km < 500 ORDER BY id"
    due = state.values(sql, depot)
    return Draft(
        f"Book a service on {day} for every vehicle of the depot {depot} that may get no trip until it had one.",
        (
            act(read_handbook, topic="vehicles"),
            act(list_vehicles, depot=depot),
            *(act(book_service, vehicle_id=vehicle, day=day) for vehicle in due),
        ),
        done(*(insert("services", vehicle_id=vehicle, day=day) for vehicle in due)),
        ("service-due",),
    )


def total_km(state: State, rng: Random) -> Draft:
    depot, kind = rng.choice(DEPOTS), rng.choice(KINDS)
    total = state.value("SELECT sum(km) FROM vehicles WHERE depot = ? AND kind = ? AND fuel = 'electric'", depot, kind)
    return Draft(
        f"How many km have the electric {kind}s of the depot {depot} been driven in all?".replace("buss", "buses"),
        (act(list_vehicles, depot=depot, kind=kind),),
        number(total),
    )


def stray(state: State) -> Act:
    return act(report_defect, vehicle_id=1, part="door")


FLEET = Scenario(
    name="fleet",
    about="The control room of a fleet of cars, vans, buses and trucks.",
    conduct="You plan the trips of a fleet of cars, vans, buses and trucks.",
    schema=SCHEMA,
    fill=fill,
    rules=RULES,
    tools=(
        list_vehicles,
        list_defects,
        find_vehicle,
        get_trip,
        list_drivers,
        find_drivers,
        assign_vehicle,
        assign_driver,
        cancel_trip,
        record_distance,
        report_defect,
        book_service,
    ),
    templates=(
        short_trip,
        vehicle_with_defect,
        long_trip,
        find_driver,
        total_km,
        vehicle_due,
        tired_driver,
        defect_found,
        record_miles,
        book_services,
    ),
    stray=stray,
)
