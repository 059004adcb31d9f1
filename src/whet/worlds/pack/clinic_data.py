"""The clinic's house rules, and how its data is made."""

from __future__ import annotations

from datetime import datetime, timedelta
from random import Random

from whet.worlds.database import Rule, State
from whet.worlds.pack.people import days_ago, names, set_clock

SCHEMA = """\
CREATE TABLE patients (id INTEGER PRIMARY KEY, name TEXT NOT NULL, born TEXT NOT NULL, phone TEXT NOT NULL);
CREATE TABLE doctors (id INTEGER PRIMARY KEY, name TEXT NOT NULL, specialty TEXT NOT NULL);
CREATE TABLE appointments (id INTEGER PRIMARY KEY, patient_id INTEGER NOT NULL REFERENCES patients,
    doctor_id INTEGER NOT NULL REFERENCES doctors, day TEXT NOT NULL, time TEXT NOT NULL, minutes INTEGER NOT NULL,
    status TEXT NOT NULL DEFAULT 'booked');
CREATE TABLE allergies (patient_id INTEGER NOT NULL REFERENCES patients, substance TEXT NOT NULL,
    PRIMARY KEY (patient_id, substance)) WITHOUT ROWID;
CREATE TABLE drugs (id INTEGER PRIMARY KEY, name TEXT NOT NULL, substance TEXT NOT NULL);
CREATE TABLE prescriptions (id INTEGER PRIMARY KEY, patient_id INTEGER NOT NULL REFERENCES patients,
    drug_id INTEGER NOT NULL REFERENCES drugs, until TEXT NOT NULL, repeats INTEGER NOT NULL);
CREATE TABLE fees (id INTEGER PRIMARY KEY, patient_id INTEGER NOT NULL REFERENCES patients, cents INTEGER NOT NULL,
    reason TEXT NOT NULL);
CREATE INDEX appointments_on ON appointments (doctor_id, day);
"""

RULES = (
    Rule(
        "visit-length",
        "appointments",
        "A patient's first visit ever takes 40 minutes, every other visit 20.",
    ),
    Rule("children", "appointments", "Patients under 14 are seen by a doctor for children, and by no other."),
    Rule(
        "short-notice",
        "appointments",
        "Who cancels less than 24 hours before the appointment pays a fee of 25.00 EUR.",
    ),
    Rule("renewal-time", "prescriptions", "A prescription is renewed until 90 days from today."),
    Rule(
        "repeats",
        "prescriptions",
        "A prescription without repeats left is not renewed; the patient sees a doctor first.",
    ),
    Rule("allergies", "prescriptions", "No drug is prescribed whose substance the patient is allergic to."),
)
SPECIALTIES = ("general", "children", "skin", "children", "eyes", "general", "children")
SUBSTANCES = ("penicillin", "ibuprofen", "codeine", "cetirizine", "metformin", "ramipril")
BRANDS = (
    "Alvox",
    "Bremil",
    "Cantor",
    "Dolmat",
    "Erivan",
    "Fostal",
    "Gelmar",
    "Hydrin",
    "Ixolan",
    "Jurex",
    "Kestin",
    "Lumex",
)


def is_free(state: State, doctor_id: int, day: str, time: str, minutes: int, but: int = 0) -> bool:
    start = datetime.fromisoformat(f"{state.day(day)} {time}")
    for other in state.rows("SELECT * FROM appointments WHERE doctor_id = ? AND day = ?", doctor_id, day):
        begins = datetime.fromisoformat(f"{day} {other['time']}")
        ends = begins + timedelta(minutes=other["minutes"])
        apart = ends <= start or start + timedelta(minutes=minutes) <= begins
        if other["status"] == "booked" and other["id"] != but and not apart:
            return False
    return True


def fill(state: State, rng: Random) -> None:
    """Patients 1 to 4 have never been here, 5 to 8 are children, the others are adults who have been here."""
    today = set_clock(state, rng, hour=10)
    people = names(rng, 24 + len(SPECIALTIES))
    for name, specialty in zip(people[24:], SPECIALTIES, strict=True):
        state.insert("doctors", name=f"Dr {name}", specialty=specialty)
    for place, name in enumerate(people[:24], start=1):
        age = rng.randrange(4, 13) if 5 <= place <= 8 else rng.randrange(20, 80)
        born = days_ago(today, age * 365 + rng.randrange(40, 300))
        state.insert("patients", name=name, born=born, phone=f"0{rng.randrange(10**8, 10**9)}")
    for place, brand in enumerate(BRANDS):
        state.insert("drugs", name=brand, substance=SUBSTANCES[place % len(SUBSTANCES)])
    for patient in range(5, 25):
        doctor = rng.choice((2, 4, 7) if patient <= 8 else (1, 3, 5, 6))
        _booked(state, rng, patient, doctor, days_ago(today, rng.randrange(40, 400)))
        ahead = (1, 2, 3, 6)[patient % 4]
        _booked(state, rng, patient, doctor, str(today + timedelta(days=ahead)))
        cancelled = {"doctor_id": doctor, "day": str(today + timedelta(days=ahead)), "time": "07:40", "minutes": 20}
        state.insert("appointments", patient_id=rng.randrange(5, 25), status="cancelled", **cancelled)
        if patient % 4 == 0:
            _booked(state, rng, patient, doctor, str(today), after="13:00")
        state.insert("allergies", patient_id=patient, substance=SUBSTANCES[patient % len(SUBSTANCES)])
        for place, drug in enumerate(rng.sample(range(1, len(BRANDS) + 1), 2)):
            until = str(today + timedelta(days=rng.randrange(2, 9)))
            state.insert(
                "prescriptions", patient_id=patient, drug_id=drug, until=until, repeats=place * rng.randrange(1, 4)
            )


def slots(after: str = "08:00") -> list[str]:
    return [time for hour in range(8, 17) for minute in (0, 20, 40) if (time := f"{hour:02d}:{minute:02d}") >= after]


def _booked(state: State, rng: Random, patient: int, doctor: int, day: str, after: str = "08:00") -> None:
    free = [time for time in slots(after) if is_free(state, doctor, day, time, 20)]
    state.insert("appointments", patient_id=patient, doctor_id=doctor, day=day, time=rng.choice(free), minutes=20)
