"""The front desk of a clinic: appointments, prescriptions and fees."""

from __future__ import annotations

from datetime import date, timedelta
from random import Random
from typing import Annotated, Any, Literal

from msgspec import Meta

from whet.core import Act
from whet.worlds.calling import ToolRefusal
from whet.worlds.database import (
    Change,
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
from whet.worlds.pack.clinic_data import RULES, SCHEMA, fill, is_free, slots
from whet.worlds.pack.people import pick

Day = Annotated[str, Meta(pattern=r"^\d{4}-\d\d-\d\d$", description="as YYYY-MM-DD")]
Time = Annotated[str, Meta(pattern=r"^([01]\d|2[0-3]):[0-5]\d$", description="as HH:MM")]


def find_patients(state: State, name: str) -> list[dict[str, Any]]:
    """Patients by name or a part of it."""
    return state.rows("SELECT * FROM patients WHERE name LIKE ? ORDER BY id LIMIT 20", f"%{name}%")


def get_patient(state: State, patient_id: int) -> dict[str, Any]:
    """A patient with allergies and prescriptions."""
    prescriptions = (
        "SELECT prescriptions.id, name AS drug, until, repeats FROM prescriptions JOIN drugs ON drugs.id = drug_id"
    )
    return {
        **state.get("patients", patient_id),
        "allergies": state.values("SELECT substance FROM allergies WHERE patient_id = ? ORDER BY 1", patient_id),
        "prescriptions": state.rows(f"{prescriptions} WHERE patient_id = ? ORDER BY 1", patient_id),
    }


def list_doctors(state: State) -> list[dict[str, Any]]:
    """All doctors with what they are doctors of."""
    return state.rows("SELECT * FROM doctors ORDER BY id")


def list_appointments(state: State, doctor_id: int, day: Day) -> list[dict[str, Any]]:
    """A doctor's appointments on a day, cancelled ones included."""
    state.get("doctors", doctor_id)
    return state.rows("SELECT * FROM appointments WHERE doctor_id = ? AND day = ? ORDER BY time", doctor_id, day)


def list_visits(state: State, patient_id: int) -> list[dict[str, Any]]:
    """All appointments of a patient, past ones included."""
    state.get("patients", patient_id)
    return state.rows("SELECT * FROM appointments WHERE patient_id = ? ORDER BY day, time", patient_id)


def book(state: State, patient_id: int, doctor_id: int, day: Day, time: Time, minutes: Literal[20, 40]) -> str:
    """Book an appointment."""
    state.get("patients", patient_id)
    if not is_free(state, doctor_id, day, time, minutes):
        raise ToolRefusal("the doctor is not free then")
    made = state.insert("appointments", patient_id=patient_id, doctor_id=doctor_id, day=day, time=time, minutes=minutes)
    return f"appointment {made} is booked"


def move_appointment(state: State, appointment_id: int, day: Day, time: Time) -> str:
    """Move an appointment to another day or time with the same doctor."""
    found = state.get("appointments", appointment_id)
    if found["status"] != "booked" or (found["day"], found["time"]) == (day, time):
        raise ToolRefusal("there is nothing to move")
    if not is_free(state, found["doctor_id"], day, time, found["minutes"], appointment_id):
        raise ToolRefusal("the doctor is not free then")
    state.update("appointments", appointment_id, day=day, time=time)
    return "moved"


def cancel_appointment(state: State, appointment_id: int) -> str:
    """Cancel an appointment."""
    if state.get("appointments", appointment_id)["status"] != "booked":
        raise ToolRefusal("it is cancelled already")
    state.update("appointments", appointment_id, status="cancelled")
    return "cancelled"


def find_drugs(state: State, name: str) -> list[dict[str, Any]]:
    """Drugs by name or a part of it, with their substances."""
    return state.rows("SELECT * FROM drugs WHERE name LIKE ? ORDER BY id", f"%{name}%")


def renew_prescription(state: State, prescription_id: int, until: Day) -> str:
    """Make a prescription good until a day; it uses up one repeat if there is one."""
    found = state.get("prescriptions", prescription_id)
    state.update("prescriptions", prescription_id, until=str(state.day(until)), repeats=max(0, found["repeats"] - 1))
    return "renewed"


def prescribe(state: State, patient_id: int, drug_id: int, until: Day) -> str:
    """Prescribe a drug that a doctor has named."""
    state.get("patients", patient_id)
    state.get("drugs", drug_id)
    made = state.insert("prescriptions", patient_id=patient_id, drug_id=drug_id, until=str(state.day(until)), repeats=0)
    return f"prescription {made} is made"


def charge_fee(
    state: State,
    patient_id: int,
    cents: Annotated[int, Meta(ge=1, le=100_000)],
    reason: Literal["short notice", "certificate", "copies"],
) -> str:
    """Charge a patient a fee, in cents."""
    state.get("patients", patient_id)
    state.insert("fees", patient_id=patient_id, cents=cents, reason=reason)
    return "charged"


def _patient(state: State, rng: Random, low: int, high: int) -> dict[str, Any]:
    return pick(rng, state.rows("SELECT * FROM patients WHERE id BETWEEN ? AND ?", low, high))


def _looked_up(patient: dict[str, Any], topic: str, look: Any = list_visits) -> tuple[Act, ...]:
    return (
        act(read_handbook, topic=topic),
        act(find_patients, name=patient["name"]),
        act(look, patient_id=patient["id"]),
    )


def _free_time(state: State, rng: Random, doctors: list[int], minutes: int) -> tuple[str, str]:
    """When the first of these doctors is free."""
    day = str(state.today + timedelta(days=rng.randrange(2, 9)))
    return day, pick(rng, [time for time in slots() if is_free(state, doctors[0], day, time, minutes)])


def _booking(state: State, rng: Random, low: int, high: int, minutes: int) -> Draft:
    patient = _patient(state, rng, low, high)
    doctor = pick(rng, state.rows("SELECT * FROM doctors WHERE specialty <> 'children'"))
    day, time = _free_time(state, rng, [doctor["id"]], 40)
    booking = {"patient_id": patient["id"], "doctor_id": doctor["id"], "day": day, "time": time, "minutes": minutes}
    return Draft(
        f"{patient['name']} wants to see {doctor['name']} on {day} at {time}.",
        (*_looked_up(patient, "appointments"), act(list_doctors), act(book, **booking)),
        done(insert("appointments", **booking)),
        ("visit-length",),
    )


def book_first(state: State, rng: Random) -> Draft:
    return _booking(state, rng, 1, 4, 40)


def book_again(state: State, rng: Random) -> Draft:
    return _booking(state, rng, 9, 24, 20)


def book_child(state: State, rng: Random) -> Draft:
    """Any doctor for children who is free then will do."""
    patient = _patient(state, rng, 5, 8)
    doctors = state.values("SELECT id FROM doctors WHERE specialty = 'children' ORDER BY id")
    rng.shuffle(doctors)
    day, time = _free_time(state, rng, doctors, 20)
    ways: list[list[Change]] = [
        [insert("appointments", patient_id=patient["id"], doctor_id=doctor, day=day, time=time, minutes=20)]
        for doctor in doctors
        if is_free(state, doctor, day, time, 20)
    ]
    return Draft(
        f"{patient['name']} needs to be seen on {day} at {time}, by whichever doctor is right and free. Book it.",
        (
            *_looked_up(patient, "appointments"),
            act(list_doctors),
            act(list_appointments, doctor_id=doctors[0], day=day),
            act(book, patient_id=patient["id"], doctor_id=doctors[0], day=day, time=time, minutes=20),
        ),
        any_of(*ways),
        ("children", "visit-length"),
    )


def _cancelling(state: State, rng: Random, where: str, *more: Change) -> Draft:
    sql = "SELECT appointments.*, patients.name FROM appointments JOIN patients ON patients.id = patient_id"
    found = pick(rng, state.rows(f"{sql} WHERE status = 'booked' AND {where} ORDER BY appointments.id"))
    patient = {"id": found["patient_id"], "name": found["name"]}
    fee = {"patient_id": patient["id"], "cents": 2500, "reason": "short notice"}
    short = found["day"] == str(state.today)
    return Draft(
        f"{found['name']} calls off the appointment of {found['day']} at {found['time']}.",
        (
            *_looked_up(patient, "appointments"),
            act(get_time),
            act(cancel_appointment, appointment_id=found["id"]),
            *((act(charge_fee, **fee),) if short else ()),
        ),
        done(update("appointments", found["id"], status="cancelled"), *((insert("fees", **fee),) if short else ())),
        ("short-notice",),
    )


def call_off(state: State, rng: Random) -> Draft:
    return _cancelling(state, rng, f"day > '{state.today + timedelta(days=1)}'")


def call_off_late(state: State, rng: Random) -> Draft:
    return _cancelling(state, rng, f"day = '{state.today}'")


def _renewal(state: State, rng: Random, where: str) -> tuple[dict[str, Any], str]:
    sql = (
        "SELECT prescriptions.*, patients.name, drugs.name AS drug FROM prescriptions"
        " JOIN patients ON patients.id = patient_id JOIN drugs ON drugs.id = drug_id"
    )
    found = pick(rng, state.rows(f"{sql} WHERE {where} ORDER BY prescriptions.id"))
    return found, f"{found['name']} asks for the prescription of {found['drug']} to be renewed."


def renew(state: State, rng: Random) -> Draft:
    found, told = _renewal(state, rng, "repeats > 0")
    until = str(state.today + timedelta(days=90))
    return Draft(
        told,
        (
            *_looked_up({"id": found["patient_id"], "name": found["name"]}, "prescriptions", get_patient),
            act(get_time),
            act(renew_prescription, prescription_id=found["id"], until=until),
        ),
        done(update("prescriptions", found["id"], until=until, repeats=found["repeats"] - 1)),
        ("renewal-time",),
    )


def renew_without_repeats(state: State, rng: Random) -> Draft:
    found, told = _renewal(state, rng, "repeats = 0")
    looks = _looked_up({"id": found["patient_id"], "name": found["name"]}, "prescriptions", get_patient)
    return Draft(told, looks, refused("repeats"), ("repeats",))


def prescribe_allergic(state: State, rng: Random) -> Draft:
    patient = _patient(state, rng, 9, 24)
    substance = state.value("SELECT substance FROM allergies WHERE patient_id = ?", patient["id"])
    drug = pick(rng, state.rows("SELECT * FROM drugs WHERE substance = ?", substance))
    doctor = pick(rng, state.values("SELECT name FROM doctors WHERE specialty = 'general'"))
    return Draft(
        f"{doctor} asks you to prescribe {drug['name']} to {patient['name']} until {state.today + timedelta(days=14)}.",
        (*_looked_up(patient, "prescriptions", get_patient), act(find_drugs, name=drug["name"])),
        refused("allergies"),
        ("allergies",),
    )


def minutes_booked(state: State, rng: Random) -> Draft:
    """On one of the days on which a doctor has most appointments; cancelled ones stand beside the others."""
    sql = "SELECT doctor_id, day FROM appointments WHERE day > ? GROUP BY 1, 2 ORDER BY count(*) DESC, 1, 2 LIMIT 4"
    most = pick(rng, state.rows(sql, str(state.today)))
    doctor, day = state.get("doctors", most["doctor_id"]), most["day"]
    booked = "SELECT sum(minutes) FROM appointments WHERE doctor_id = ? AND day = ? AND status = 'booked'"
    minutes = state.value(booked, doctor["id"], day)
    return Draft(
        f"For how many minutes is {doctor['name']} booked on {day}? What is cancelled does not count.",
        (act(list_doctors), act(list_appointments, doctor_id=doctor["id"], day=day)),
        number(minutes),
    )


def put_off(state: State, rng: Random) -> Draft:
    """To the first free time of another day."""
    sql = (
        "SELECT appointments.*, patients.name FROM appointments JOIN patients ON patients.id = patient_id"
        " WHERE status = 'booked' AND day > ?"
    )
    found = pick(rng, state.rows(f"{sql} ORDER BY appointments.id", str(state.today + timedelta(days=1))))
    day = str(date.fromisoformat(found["day"]) + timedelta(days=3))
    time = next(time for time in slots("13:00") if is_free(state, found["doctor_id"], day, time, 20))
    columns = {"day": day} if time == found["time"] else {"day": day, "time": time}
    return Draft(
        f"{found['name']} cannot come on {found['day']} at {found['time']}. Move that appointment to {day}, to the"
        " first time from 13:00 on, in steps of 20 minutes, at which the doctor is free.",
        (
            act(find_patients, name=found["name"]),
            act(list_visits, patient_id=found["patient_id"]),
            act(list_appointments, doctor_id=found["doctor_id"], day=day),
            act(move_appointment, appointment_id=found["id"], day=day, time=time),
        ),
        done(update("appointments", found["id"], **columns)),
    )


def stray(state: State) -> Act:
    return act(charge_fee, patient_id=1, cents=500, reason="copies")


CLINIC = Scenario(
    name="clinic",
    about="The front desk of a clinic.",
    conduct="You work at the front desk of a clinic.",
    schema=SCHEMA,
    fill=fill,
    rules=RULES,
    tools=(
        find_patients,
        get_patient,
        list_doctors,
        list_appointments,
        list_visits,
        book,
        move_appointment,
        cancel_appointment,
        find_drugs,
        renew_prescription,
        prescribe,
        charge_fee,
    ),
    templates=(
        book_first,
        book_child,
        book_again,
        call_off_late,
        prescribe_allergic,
        renew_without_repeats,
        call_off,
        renew,
        minutes_booked,
        put_off,
    ),
    stray=stray,
)
