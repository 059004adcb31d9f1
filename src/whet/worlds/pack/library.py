"""The lending desk of a town library: loans, renewals, returns, holds and charges."""

from __future__ import annotations

from datetime import date, timedelta
from random import Random
from typing import Annotated, Any, Literal

from msgspec import Meta

from whet.core import Act
from whet.worlds.calling import ToolRefusal
from whet.worlds.database import Draft, Rule, Scenario, State, act, done, insert, items, read_handbook, refused, update
from whet.worlds.database.scenario import get_time
from whet.worlds.pack.people import days_ago, names, pick, set_clock

SCHEMA = """\
CREATE TABLE members (id INTEGER PRIMARY KEY, name TEXT NOT NULL, card TEXT NOT NULL UNIQUE, joined TEXT NOT NULL);
CREATE TABLE titles (id INTEGER PRIMARY KEY, title TEXT NOT NULL, kind TEXT NOT NULL, copies INTEGER NOT NULL);
CREATE TABLE loans (id INTEGER PRIMARY KEY, member_id INTEGER NOT NULL REFERENCES members,
    title_id INTEGER NOT NULL REFERENCES titles, due TEXT NOT NULL, renewals INTEGER NOT NULL DEFAULT 0, returned TEXT);
CREATE TABLE holds (id INTEGER PRIMARY KEY, title_id INTEGER NOT NULL REFERENCES titles,
    member_id INTEGER NOT NULL REFERENCES members, placed TEXT NOT NULL);
CREATE TABLE charges (id INTEGER PRIMARY KEY, member_id INTEGER NOT NULL REFERENCES members, cents INTEGER NOT NULL,
    reason TEXT NOT NULL, paid INTEGER NOT NULL DEFAULT 0);
CREATE INDEX loans_of ON loans (member_id);
"""

PERIODS = {"book": 28, "film": 7, "game": 14}
RULES = (
    Rule(
        "loan-period",
        "lending",
        "Books are lent for 28 days, games for 14 and films for 7. A renewal gives the same time anew, from today.",
    ),
    Rule("loan-limit", "lending", "A member has at most 5 things at a time."),
    Rule("debts", "lending", "Who owes 10.00 EUR or more borrows and renews nothing until it is paid."),
    Rule("waiting", "renewals", "What another member waits for (a hold) is not renewed."),
    Rule(
        "overdue",
        "returns",
        "What comes back late costs 20 cents for each day past the due date, at most 5.00 EUR, charged at once.",
    ),
    Rule("all-lent", "lending", "If every copy is out, the member is put on hold for the title."),
)
FIRST_WORDS = ("Silent", "Northern", "Crooked", "Second", "Paper", "Winter")
LAST_WORDS = ("Harbour", "Orchard", "Signal", "Garden", "Letters", "Bridge")
Days = Annotated[int, Meta(ge=1, le=60)]
Cents = Annotated[int, Meta(ge=1, le=10_000)]


def find_members(state: State, name: str) -> list[dict[str, Any]]:
    """Members by name or a part of it."""
    return state.rows("SELECT * FROM members WHERE name LIKE ? ORDER BY id LIMIT 20", f"%{name}%")


def get_member(state: State, member_id: int) -> dict[str, Any]:
    """A member, with the number of things at home and what is owed in cents."""
    member = state.get("members", member_id)
    out = state.value("SELECT count(*) FROM loans WHERE member_id = ? AND returned IS NULL", member_id)
    owed = state.value("SELECT coalesce(sum(cents), 0) FROM charges WHERE member_id = ? AND paid = 0", member_id)
    return {**member, "at_home": out, "owed_cents": owed}


def find_titles(state: State, words: str) -> list[dict[str, Any]]:
    """Titles that hold these words, with their kind (book, film or game)."""
    return state.rows("SELECT id, title, kind FROM titles WHERE title LIKE ? ORDER BY id LIMIT 20", f"%{words}%")


def get_title(state: State, title_id: int) -> dict[str, Any]:
    """A title, with how many copies are free and how many members wait for it."""
    title = state.get("titles", title_id)
    out = state.value("SELECT count(*) FROM loans WHERE title_id = ? AND returned IS NULL", title_id)
    waiting = state.value("SELECT count(*) FROM holds WHERE title_id = ?", title_id)
    return {**title, "free": title["copies"] - out, "waiting": waiting}


def list_loans(state: State, member_id: int) -> list[dict[str, Any]]:
    """What a member has at home."""
    state.get("members", member_id)
    return state.rows(
        "SELECT loans.id AS loan_id, title_id, title, kind, due, renewals FROM loans"
        " JOIN titles ON titles.id = title_id WHERE member_id = ? AND returned IS NULL ORDER BY loans.id",
        member_id,
    )


def list_overdue(state: State) -> list[dict[str, Any]]:
    """Every loan that is past its due date today."""
    return state.rows(
        "SELECT loans.id AS loan_id, card, title_id, due FROM loans JOIN members ON members.id = member_id"
        " WHERE returned IS NULL AND due < ? ORDER BY loans.id",
        str(state.today),
    )


def lend(state: State, member_id: int, title_id: int, days: Days) -> str:
    """Lend a title to a member for so many days from today."""
    state.get("members", member_id)
    if get_title(state, title_id)["free"] < 1:
        raise ToolRefusal("every copy is out")
    due = str(state.today + timedelta(days=days))
    loan = state.insert("loans", member_id=member_id, title_id=title_id, due=due)
    return f"loan {loan}, due on {due}"


def renew(state: State, loan_id: int, days: Days) -> str:
    """Make a loan due so many days from today."""
    loan = state.get("loans", loan_id)
    if loan["returned"]:
        raise ToolRefusal(f"loan {loan_id} was returned")
    due = str(state.today + timedelta(days=days))
    state.update("loans", loan_id, due=due, renewals=loan["renewals"] + 1)
    return f"due on {due}"


def take_back(state: State, loan_id: int) -> str:
    """Record that a loan came back today."""
    if state.get("loans", loan_id)["returned"]:
        raise ToolRefusal(f"loan {loan_id} was returned before")
    state.update("loans", loan_id, returned=str(state.today))
    return "returned"


def charge(state: State, member_id: int, cents: Cents, reason: Literal["overdue", "damage", "lost"]) -> str:
    """Charge a member an amount in cents."""
    state.get("members", member_id)
    state.insert("charges", member_id=member_id, cents=cents, reason=reason)
    return "charged"


def place_hold(state: State, member_id: int, title_id: int) -> str:
    """Put a member on hold for a title."""
    state.get("members", member_id)
    state.get("titles", title_id)
    state.insert("holds", title_id=title_id, member_id=member_id, placed=str(state.today))
    return "on hold"


def fill(state: State, rng: Random) -> None:
    """Members 1 to 4 owe money, 5 to 8 have all they may have; titles 1 to 8 are waited for and all lent."""
    today = set_clock(state, rng)
    for place, name in enumerate(names(rng, 24)):
        state.insert(
            "members",
            name=name,
            card=f"L{rng.randrange(100, 1000)}{place:02d}",
            joined=days_ago(today, 400 + 7 * place),
        )
    titles = [f"The {first} {last}" for first in FIRST_WORDS for last in LAST_WORDS]
    rng.shuffle(titles)
    for place, title in enumerate(titles):
        state.insert("titles", title=title, kind=tuple(PERIODS)[place % 3], copies=0)
    for member in range(1, 25):
        _loans(state, rng, today, member)
    for member in range(1, 25):
        cents = rng.randrange(1000, 2400, 20) if member <= 4 else rng.choice((0, 0, 40, 260, 620))
        if cents:
            state.insert("charges", member_id=member, cents=cents, reason="overdue")
    for title in range(1, 9):
        state.insert("holds", title_id=title, member_id=rng.randrange(1, 25), placed=days_ago(today, title))
    out = "(SELECT count(*) FROM loans WHERE title_id = titles.id AND returned IS NULL)"
    state.connection.execute(f"UPDATE titles SET copies = {out} + CASE WHEN id <= 8 THEN 0 ELSE 1 + id % 3 END")


def _loans(state: State, rng: Random, today: date, member: int) -> None:
    count = 5 if 5 <= member <= 8 else 3
    chosen = [1 + member % 8, *rng.sample(range(9, 37), count - 1)]
    for place, title in enumerate(chosen):
        late = (
            rng.randrange(2, 20)
            if place == 1 and member > 8
            else rng.randrange(30, 60)
            if place == 2 and member > 18
            else 0
        )
        due = days_ago(today, late) if late else str(today + timedelta(days=rng.randrange(1, 7)))
        state.insert("loans", member_id=member, title_id=title, due=due, renewals=rng.choice((0, 1)))
    state.insert("loans", member_id=member, title_id=9, due=days_ago(today, 90), returned=days_ago(today, 95))


_LOANS = """\
SELECT loans.id, member_id, title_id, name, title, kind, due, renewals,
    julianday((SELECT substr(now, 1, 10) FROM clock)) - julianday(due) AS late
FROM loans JOIN members ON members.id = member_id JOIN titles ON titles.id = title_id
WHERE returned IS NULL AND {where} ORDER BY loans.id"""


def _borrower(state: State, rng: Random, low: int, high: int) -> dict[str, Any]:
    return pick(rng, state.rows("SELECT * FROM members WHERE id BETWEEN ? AND ?", low, high))


def _free_title(state: State, rng: Random, kind: str) -> dict[str, Any]:
    return pick(rng, state.rows("SELECT * FROM titles WHERE id > 8 AND kind = ?", kind))


def _lent(state: State, rng: Random, kind: str) -> Draft:
    member, title = _borrower(state, rng, 9, 24), _free_title(state, rng, kind)
    days = PERIODS[kind]
    due = str(state.today + timedelta(days=days))
    return Draft(
        f"{member['name']} wants to borrow '{title['title']}'.",
        (
            act(read_handbook, topic="lending"),
            act(find_members, name=member["name"]),
            act(get_member, member_id=member["id"]),
            act(find_titles, words=title["title"]),
            act(lend, member_id=member["id"], title_id=title["id"], days=days),
        ),
        done(insert("loans", member_id=member["id"], title_id=title["id"], due=due, renewals=0, returned=None)),
        ("loan-period",),
    )


def _not_lent(state: State, rng: Random, low: int, high: int, rule: str) -> Draft:
    member, title = _borrower(state, rng, low, high), _free_title(state, rng, rng.choice(tuple(PERIODS)))
    looks = (
        act(read_handbook, topic="lending"),
        act(find_members, name=member["name"]),
        act(get_member, member_id=member["id"]),
    )
    return Draft(f"{member['name']} wants to borrow '{title['title']}'.", looks, refused(rule), (rule,))


def lend_book(state: State, rng: Random) -> Draft:
    return _lent(state, rng, "book")


def lend_film(state: State, rng: Random) -> Draft:
    return _lent(state, rng, "film")


def lend_to_debtor(state: State, rng: Random) -> Draft:
    return _not_lent(state, rng, 1, 4, "debts")


def lend_beyond_limit(state: State, rng: Random) -> Draft:
    return _not_lent(state, rng, 5, 8, "loan-limit")


def put_on_hold(state: State, rng: Random) -> Draft:
    title = pick(rng, state.rows("SELECT * FROM titles WHERE id <= 8"))
    has = "SELECT member_id FROM loans WHERE title_id = ? UNION SELECT member_id FROM holds WHERE title_id = ?"
    members = state.rows(f"SELECT * FROM members WHERE id > 8 AND id NOT IN ({has})", title["id"], title["id"])
    member = pick(rng, members)
    return Draft(
        f"{member['name']} asks for '{title['title']}'.",
        (
            act(read_handbook, topic="lending"),
            act(find_members, name=member["name"]),
            act(find_titles, words=title["title"]),
            act(get_title, title_id=title["id"]),
            act(place_hold, member_id=member["id"], title_id=title["id"]),
        ),
        done(insert("holds", member_id=member["id"], title_id=title["id"])),
        ("all-lent",),
    )


def _asked_to_renew(loan: dict[str, Any]) -> str:
    return f"{loan['name']} would like to keep '{loan['title']}' for longer. Renew it if we can."


def renew_loan(state: State, rng: Random) -> Draft:
    loan = pick(rng, state.rows(_LOANS.format(where="title_id > 8 AND late <= 0 AND member_id > 4")))
    days = PERIODS[loan["kind"]]
    due = str(state.today + timedelta(days=days))
    return Draft(
        _asked_to_renew(loan),
        (
            act(read_handbook, topic="lending"),
            act(read_handbook, topic="renewals"),
            act(find_members, name=loan["name"]),
            act(list_loans, member_id=loan["member_id"]),
            act(get_title, title_id=loan["title_id"]),
            act(renew, loan_id=loan["id"], days=days),
        ),
        done(update("loans", loan["id"], due=due, renewals=loan["renewals"] + 1)),
        ("loan-period", "waiting"),
    )


def renew_waited_for(state: State, rng: Random) -> Draft:
    loan = pick(rng, state.rows(_LOANS.format(where="title_id <= 8 AND late <= 0 AND member_id > 4")))
    looks = (
        act(read_handbook, topic="renewals"),
        act(find_members, name=loan["name"]),
        act(list_loans, member_id=loan["member_id"]),
        act(get_title, title_id=loan["title_id"]),
    )
    return Draft(_asked_to_renew(loan), looks, refused("waiting"), ("waiting",))


def _returned_late(state: State, rng: Random, where: str) -> Draft:
    loan = pick(rng, state.rows(_LOANS.format(where=where)))
    cents = min(500, 20 * int(loan["late"]))
    return Draft(
        f"{loan['name']} brings back '{loan['title']}'.",
        (
            act(read_handbook, topic="returns"),
            act(get_time),
            act(find_members, name=loan["name"]),
            act(list_loans, member_id=loan["member_id"]),
            act(take_back, loan_id=loan["id"]),
            act(charge, member_id=loan["member_id"], cents=cents, reason="overdue"),
        ),
        done(
            update("loans", loan["id"], returned=str(state.today)),
            insert("charges", member_id=loan["member_id"], cents=cents, reason="overdue", paid=0),
        ),
        ("overdue",),
    )


def return_late(state: State, rng: Random) -> Draft:
    return _returned_late(state, rng, "late BETWEEN 2 AND 20")


def return_very_late(state: State, rng: Random) -> Draft:
    return _returned_late(state, rng, "late >= 30")


def long_overdue(state: State, rng: Random) -> Draft:
    days = rng.choice((25, 28))
    cards = "SELECT DISTINCT card FROM loans JOIN members ON members.id = member_id WHERE returned IS NULL AND due < ?"
    found = state.values(cards, days_ago(state.today, days))
    return Draft(
        f"Which members have something at home overdue by more than {days} days? Give the numbers of their cards.",
        (act(get_time), act(list_overdue)),
        items(found),
    )


def stray(state: State) -> Act:
    return act(charge, member_id=1, cents=1000, reason="damage")


LIBRARY = Scenario(
    name="library",
    about="The lending desk of a town library.",
    conduct="You work at the lending desk of a town library.",
    schema=SCHEMA,
    fill=fill,
    rules=RULES,
    tools=(
        find_members,
        get_member,
        find_titles,
        get_title,
        list_loans,
        list_overdue,
        lend,
        renew,
        take_back,
        charge,
        place_hold,
    ),
    templates=(
        return_very_late,
        long_overdue,
        renew_waited_for,
        renew_loan,
        lend_beyond_limit,
        lend_to_debtor,
        return_late,
        put_on_hold,
        lend_film,
        lend_book,
    ),
    stray=stray,
)
