"""The telephone desk of a bank: transfers, cards, fees and disputes."""

from __future__ import annotations

from datetime import date
from random import Random
from typing import Annotated, Any, Literal

from msgspec import Meta

from whet.core import Act
from whet.worlds.calling import ToolRefusal
from whet.worlds.database import Draft, Rule, Scenario, State, act, done, insert, number, read_handbook, refused, update
from whet.worlds.database.scenario import get_time
from whet.worlds.pack.people import CITIES, days_ago, euros, names, pick, set_clock

SCHEMA = """\
CREATE TABLE customers (id INTEGER PRIMARY KEY, name TEXT NOT NULL, town TEXT NOT NULL);
CREATE TABLE accounts (id INTEGER PRIMARY KEY, customer_id INTEGER NOT NULL REFERENCES customers, kind TEXT NOT NULL,
    cents INTEGER NOT NULL CHECK (cents >= 0));
CREATE TABLE transfers (id INTEGER PRIMARY KEY, from_id INTEGER NOT NULL REFERENCES accounts,
    to_id INTEGER NOT NULL REFERENCES accounts, cents INTEGER NOT NULL, day TEXT NOT NULL);
CREATE TABLE cards (id INTEGER PRIMARY KEY, account_id INTEGER NOT NULL REFERENCES accounts, ends_in TEXT NOT NULL,
    status TEXT NOT NULL, limit_cents INTEGER NOT NULL);
CREATE TABLE fees (id INTEGER PRIMARY KEY, account_id INTEGER NOT NULL REFERENCES accounts, cents INTEGER NOT NULL,
    day TEXT NOT NULL, kind TEXT NOT NULL, waived TEXT);
CREATE TABLE disputes (id INTEGER PRIMARY KEY, transfer_id INTEGER NOT NULL REFERENCES transfers, reason TEXT NOT NULL);
CREATE INDEX transfers_from ON transfers (from_id);
"""

RULES = (
    Rule("branch", "transfers", "Transfers of more than 5,000.00 EUR are made at a branch only, never by telephone."),
    Rule(
        "savings-limit",
        "transfers",
        "From a savings account there are at most 3 transfers in a calendar month; a fourth is refused.",
    ),
    Rule("lost-card", "cards", "A lost card is blocked, and a new one for the same account is ordered with it."),
    Rule("card-limit", "cards", "A card's limit is at most 2,000.00 EUR, and never more than what is in its account."),
    Rule("one-waiver", "fees", "One fee a calendar year can be waived for each customer; a second one is refused."),
)
Cents = Annotated[int, Meta(ge=1, description="in cents")]


def find_customers(state: State, name: str) -> list[dict[str, Any]]:
    """Customers by name or a part of it. Two customers may have the same name."""
    return state.rows("SELECT * FROM customers WHERE name LIKE ? ORDER BY id LIMIT 20", f"%{name}%")


def get_customer(state: State, customer_id: int) -> dict[str, Any]:
    """A customer with accounts and cards. Amounts are in cents."""
    accounts = state.rows("SELECT id, kind, cents FROM accounts WHERE customer_id = ? ORDER BY id", customer_id)
    cards = (
        "SELECT cards.* FROM cards JOIN accounts ON accounts.id = account_id WHERE customer_id = ? ORDER BY cards.id"
    )
    return {**state.get("customers", customer_id), "accounts": accounts, "cards": state.rows(cards, customer_id)}


def list_transfers(state: State, account_id: int, since: str = "") -> list[dict[str, Any]]:
    """Transfers from and to an account, from a day (YYYY-MM-DD) on. Amounts are in cents."""
    state.get("accounts", account_id)
    sql = "SELECT * FROM transfers WHERE (from_id = ? OR to_id = ?) AND day >= ? ORDER BY day, id"
    return state.rows(sql, account_id, account_id, since)


def transfer(state: State, from_account: int, to_account: int, cents: Cents) -> str:
    """Move money from one account to another."""
    source, target = state.get("accounts", from_account), state.get("accounts", to_account)
    if from_account == to_account:
        raise ToolRefusal("the two accounts are the same")
    if source["cents"] < cents:
        raise ToolRefusal("there is not enough money in the account")
    state.update("accounts", from_account, cents=source["cents"] - cents)
    state.update("accounts", to_account, cents=target["cents"] + cents)
    made = state.insert("transfers", from_id=from_account, to_id=to_account, cents=cents, day=str(state.today))
    return f"transfer {made} is made"


def list_fees(state: State, customer_id: int) -> list[dict[str, Any]]:
    """The fees of all accounts of a customer; `waived` is the day on which one was waived."""
    state.get("customers", customer_id)
    sql = (
        "SELECT fees.* FROM fees JOIN accounts ON accounts.id = account_id WHERE customer_id = ? ORDER BY day, fees.id"
    )
    return state.rows(sql, customer_id)


def waive_fee(state: State, fee_id: int) -> str:
    """Waive a fee and pay it back."""
    fee = state.get("fees", fee_id)
    if fee["waived"]:
        raise ToolRefusal(f"fee {fee_id} was waived on {fee['waived']}")
    state.update("fees", fee_id, waived=str(state.today))
    account = state.get("accounts", fee["account_id"])
    state.update("accounts", account["id"], cents=account["cents"] + fee["cents"])
    return "waived"


def block_card(state: State, card_id: int) -> str:
    """Block a card for good."""
    if state.get("cards", card_id)["status"] == "blocked":
        raise ToolRefusal(f"card {card_id} is blocked already")
    state.update("cards", card_id, status="blocked")
    return "blocked"


def order_card(state: State, account_id: int) -> str:
    """Order a new card for an account; it comes with a limit of 500.00 EUR."""
    state.get("accounts", account_id)
    card = state.insert("cards", account_id=account_id, ends_in="new", status="ordered", limit_cents=50_000)
    return f"card {card} is ordered"


def set_card_limit(state: State, card_id: int, cents: Cents) -> str:
    """Set how much a card pays in a day."""
    if state.get("cards", card_id)["limit_cents"] == cents:
        raise ToolRefusal("that is its limit already")
    state.update("cards", card_id, limit_cents=cents)
    return "set"


def open_dispute(state: State, transfer_id: int, reason: Literal["not mine", "wrong amount", "not delivered"]) -> str:
    """Dispute a transfer."""
    state.get("transfers", transfer_id)
    state.insert("disputes", transfer_id=transfer_id, reason=reason)
    return "opened"


def fill(state: State, rng: Random) -> None:
    """Every customer has a current and a savings account (ids 2n-1 and 2n) and two cards on the current one."""
    today = set_clock(state, rng)
    people = names(rng, 20)
    people[18:] = people[:2]
    for place, name in enumerate(people, start=1):
        customer = state.insert("customers", name=name, town=CITIES[(place + 5 * (place > 18)) % len(CITIES)])
        current = rng.randrange(60_000, 190_000) if place % 3 else rng.randrange(620_000, 1_500_000)
        for kind, cents in (("current", current), ("savings", rng.randrange(400_000, 2_000_000))):
            state.insert("accounts", customer_id=customer, kind=kind, cents=cents)
        for ends_in in rng.sample(range(1000, 10_000), 2):
            state.insert(
                "cards",
                account_id=2 * place - 1,
                ends_in=str(ends_in),
                status="active",
                limit_cents=rng.choice((30_000, 50_000)),
            )
    for customer in range(1, 21):
        _history(state, rng, today, customer)


def _history(state: State, rng: Random, today: date, customer: int) -> None:
    """Odd customers had a fee waived this year; every fourth has used up this month's savings transfers."""
    current, savings = 2 * customer - 1, 2 * customer
    others = [account for account in range(1, 40, 2) if account != current]
    for age in sorted(rng.sample(range(1, 58), 6), reverse=True):
        cents = rng.randrange(1_000, 40_000)
        state.insert("transfers", from_id=current, to_id=rng.choice(others), cents=cents, day=days_ago(today, age))
    month = str(today)[:8]
    for _ in range(3 if customer % 4 == 0 else 1):
        cents = rng.randrange(10_000, 90_000)
        state.insert(
            "transfers", from_id=savings, to_id=current, cents=cents, day=f"{month}{rng.randint(1, today.day):02d}"
        )
    year = str(today)[:4]
    waived = f"{year}-01-{rng.randint(2, 28):02d}" if customer % 2 else None
    earlier = f"{int(year) - 1}-06-{rng.randint(10, 28)}"
    for day, kind, when in ((f"{year}-01-02", "statement", waived), (earlier, "late payment", earlier)):
        state.insert("fees", account_id=current, cents=rng.randrange(300, 1500, 50), day=day, kind=kind, waived=when)
    state.insert(
        "fees", account_id=current, cents=rng.randrange(300, 1500, 50), day=days_ago(today, 3), kind="cash", waived=None
    )


def _customer(state: State, rng: Random, where: str) -> dict[str, Any]:
    return pick(rng, state.rows(f"SELECT * FROM customers WHERE {where} ORDER BY id"))


def _looked_up(customer: dict[str, Any], topic: str) -> tuple[Act, ...]:
    return (
        act(read_handbook, topic=topic),
        act(find_customers, name=customer["name"]),
        act(get_customer, customer_id=customer["id"]),
    )


def _who(customer: dict[str, Any]) -> str:
    return f"{customer['name']} of {customer['town']}"


def _money(state: State, account: int) -> int:
    return int(state.value("SELECT cents FROM accounts WHERE id = ?", account))


def move_savings(state: State, rng: Random) -> Draft:
    customer = _customer(state, rng, "id % 4 <> 0")
    current, savings = 2 * customer["id"] - 1, 2 * customer["id"]
    cents = rng.randrange(50_000, 350_000, 1_000)
    return Draft(
        f"{_who(customer)} wants {euros(cents)} moved from savings to the current account.",
        (
            *_looked_up(customer, "transfers"),
            act(get_time),
            act(list_transfers, account_id=savings, since=f"{str(state.today)[:8]}01"),
            act(transfer, from_account=savings, to_account=current, cents=cents),
        ),
        done(
            update("accounts", savings, cents=_money(state, savings) - cents),
            update("accounts", current, cents=_money(state, current) + cents),
            insert("transfers", from_id=savings, to_id=current, cents=cents),
        ),
        ("savings-limit",),
    )


def move_savings_again(state: State, rng: Random) -> Draft:
    customer = _customer(state, rng, "id % 4 = 0")
    cents = rng.randrange(50_000, 350_000, 1_000)
    return Draft(
        f"{_who(customer)} wants {euros(cents)} moved from savings to the current account.",
        (
            *_looked_up(customer, "transfers"),
            act(get_time),
            act(list_transfers, account_id=2 * customer["id"], since=f"{str(state.today)[:8]}01"),
        ),
        refused("savings-limit"),
        ("savings-limit",),
    )


def pay_much(state: State, rng: Random) -> Draft:
    customer = _customer(state, rng, "id % 3 = 0")
    other = pick(rng, [account for account in range(1, 40, 2) if account != 2 * customer["id"] - 1])
    cents = rng.randrange(510_000, 600_000, 1_000)
    text = f"{_who(customer)} wants {euros(cents)} sent from the current account to account {other}."
    return Draft(text, _looked_up(customer, "transfers"), refused("branch"), ("branch",))


def pay(state: State, rng: Random) -> Draft:
    """From one of two customers of the same name."""
    customer = _customer(state, rng, "name IN (SELECT name FROM customers GROUP BY name HAVING count(*) > 1)")
    account = 2 * customer["id"] - 1
    other = pick(rng, [each for each in range(1, 40, 2) if each != account])
    cents = rng.randrange(5_000, 50_000, 5)
    return Draft(
        f"{_who(customer)} wants {euros(cents)} sent from the current account to account {other}.",
        (*_looked_up(customer, "transfers"), act(transfer, from_account=account, to_account=other, cents=cents)),
        done(
            update("accounts", account, cents=_money(state, account) - cents),
            update("accounts", other, cents=_money(state, other) + cents),
            insert("transfers", from_id=account, to_id=other, cents=cents),
        ),
        ("branch",),
    )


def waive(state: State, rng: Random) -> Draft:
    customer = _customer(state, rng, "id % 2 = 0")
    account = 2 * customer["id"] - 1
    fee = pick(rng, state.rows("SELECT * FROM fees WHERE account_id = ? AND kind = 'cash'", account))
    return Draft(
        f"{_who(customer)} asks us to waive the fee for cash of {fee['day']}.",
        (
            act(read_handbook, topic="fees"),
            act(find_customers, name=customer["name"]),
            act(list_fees, customer_id=customer["id"]),
            act(waive_fee, fee_id=fee["id"]),
        ),
        done(
            update("fees", fee["id"], waived=str(state.today)),
            update("accounts", account, cents=_money(state, account) + fee["cents"]),
        ),
        ("one-waiver",),
    )


def waive_again(state: State, rng: Random) -> Draft:
    customer = _customer(state, rng, "id % 2 = 1")
    day = state.value("SELECT day FROM fees WHERE account_id = ? AND kind = 'cash'", 2 * customer["id"] - 1)
    looks = (
        act(read_handbook, topic="fees"),
        act(find_customers, name=customer["name"]),
        act(list_fees, customer_id=customer["id"]),
    )
    text = f"{_who(customer)} asks us to waive the fee for cash of {day}."
    return Draft(text, looks, refused("one-waiver"), ("one-waiver",))


def lost_card(state: State, rng: Random) -> Draft:
    customer = _customer(state, rng, "id <= 18")
    card = pick(rng, state.rows("SELECT * FROM cards WHERE account_id = ?", 2 * customer["id"] - 1))
    return Draft(
        f"{_who(customer)} has lost the card that ends in {card['ends_in']}.",
        (
            *_looked_up(customer, "cards"),
            act(block_card, card_id=card["id"]),
            act(order_card, account_id=card["account_id"]),
        ),
        done(
            update("cards", card["id"], status="blocked"),
            insert("cards", account_id=card["account_id"], status="ordered"),
        ),
        ("lost-card",),
    )


def _limit_wish(state: State, rng: Random, where: str, cents: int, refusal: bool) -> Draft:
    customer = _customer(state, rng, where)
    card = pick(rng, state.rows("SELECT * FROM cards WHERE account_id = ?", 2 * customer["id"] - 1))
    text = f"{_who(customer)} wants a limit of {euros(cents)} on the card that ends in {card['ends_in']}."
    looks = _looked_up(customer, "cards")
    if refusal:
        return Draft(text, looks, refused("card-limit"), ("card-limit",))
    acts = (*looks, act(set_card_limit, card_id=card["id"], cents=cents))
    return Draft(text, acts, done(update("cards", card["id"], limit_cents=cents)), ("card-limit",))


def raise_limit(state: State, rng: Random) -> Draft:
    return _limit_wish(state, rng, "id % 3 = 0", rng.randrange(60_000, 200_001, 10_000), False)


def raise_limit_too_far(state: State, rng: Random) -> Draft:
    return _limit_wish(state, rng, "id % 3 <> 0", 195_000, True)


def sent_lately(state: State, rng: Random) -> Draft:
    customer = _customer(state, rng, "id <= 18")
    account, days = 2 * customer["id"] - 1, rng.choice((45, 50))
    since = days_ago(state.today, days)
    cents = state.value("SELECT sum(cents) FROM transfers WHERE from_id = ? AND day >= ?", account, since)
    return Draft(
        f"How much, in euros, went out of the current account of {_who(customer)} by transfers since {since}, that"
        " day included?",
        (
            act(find_customers, name=customer["name"]),
            act(get_customer, customer_id=customer["id"]),
            act(list_transfers, account_id=account, since=since),
        ),
        number(cents / 100),
    )


def stray(state: State) -> Act:
    return act(open_dispute, transfer_id=1, reason="not mine")


BANK = Scenario(
    name="bank",
    about="The telephone desk of a bank.",
    conduct="You answer the telephone of a bank. Callers have been identified.",
    schema=SCHEMA,
    fill=fill,
    rules=RULES,
    tools=(
        find_customers,
        get_customer,
        list_transfers,
        transfer,
        list_fees,
        waive_fee,
        block_card,
        order_card,
        set_card_limit,
        open_dispute,
    ),
    templates=(
        move_savings,
        raise_limit_too_far,
        move_savings_again,
        pay_much,
        lost_card,
        waive_again,
        pay,
        raise_limit,
        sent_lately,
        waive,
    ),
    stray=stray,
)
