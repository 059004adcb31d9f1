"""Whether a scenario is another one in other words."""

from __future__ import annotations

import pytest

from whet.making import nearest_of
from whet.making.answers import Sketch
from whet.making.nearness import most_alike

LOCKERS = Sketch(
    "parcel_lockers",
    "Couriers put parcels into lockers at stations, recipients collect them by a code, and overdue parcels go back.",
    ("stations", "lockers", "parcels", "couriers", "collections"),
)
CLINIC = Sketch(
    "village_clinic",
    "Receptionists book appointments of patients with doctors, and nurses keep the vaccine fridge filled.",
    ("patients", "doctors", "appointments", "vaccines"),
)


@pytest.mark.parametrize(
    ("name", "description", "tables", "what"),
    [
        ("parcel_locker_network", "Something else entirely.", ("a", "b"), "name"),
        ("The Parcel Locker Management System", "Something else entirely.", ("a", "b"), "name"),
        ("dropbox", f"{LOCKERS.description} All of this is kept in an app.", ("a", "b"), "description"),
        ("dropbox", "Something else entirely.", ("station", "locker", "parcel", "courier"), "tables"),
    ],
)
def test_what_is_too_close_is_named_with_what_it_is_close_in(
    name: str, description: str, tables: tuple[str, ...], what: str
) -> None:
    near = nearest_of(Sketch(name, description, tables), [CLINIC, LOCKERS])
    assert near is not None
    assert (near.name, near.what) == ("parcel_lockers", what)
    assert f"its {what} " in str(near)
    assert "'parcel_lockers'" in str(near)


@pytest.mark.parametrize(
    "sketch",
    [
        CLINIC,
        Sketch("parcel_insurance", "Clerks settle claims of senders.", ("claims", "senders", "parcels")),
        Sketch("luggage_storage", "Travellers leave bags at stations.", ("stations", "bags")),
    ],
)
def test_what_shares_a_word_or_few_tables_is_new(sketch: Sketch) -> None:
    assert nearest_of(sketch, [LOCKERS]) is None


def test_nothing_is_near_where_there_is_nothing() -> None:
    assert nearest_of(LOCKERS, []) is None


def test_of_many_the_ones_most_like_the_theme_are_told() -> None:
    assert most_alike("a clinic for vaccines", [LOCKERS, CLINIC], 1) == [CLINIC]
    assert most_alike("couriers and parcels", [CLINIC, LOCKERS], 1) == [LOCKERS]
    assert most_alike("nothing in common", [CLINIC, LOCKERS], 2) == [LOCKERS, CLINIC]
