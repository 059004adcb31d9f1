"""The service desk of a shop for outdoor gear: returns, cancellations, vouchers, orders."""

from __future__ import annotations

from datetime import date
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
from whet.worlds.database.scenario import get_time
from whet.worlds.pack.people import CITIES, days_ago, names, pick, set_clock

SCHEMA = """\
CREATE TABLE customers (id INTEGER PRIMARY KEY, name TEXT NOT NULL, city TEXT NOT NULL, email TEXT NOT NULL,
    tier TEXT NOT NULL);
CREATE TABLE products (id INTEGER PRIMARY KEY, name TEXT NOT NULL, category TEXT NOT NULL, cents INTEGER NOT NULL,
    stock INTEGER NOT NULL, clearance INTEGER NOT NULL);
CREATE TABLE orders (id INTEGER PRIMARY KEY, customer_id INTEGER NOT NULL REFERENCES customers, placed TEXT NOT NULL,
    delivered TEXT, status TEXT NOT NULL);
CREATE TABLE lines (id INTEGER PRIMARY KEY, order_id INTEGER NOT NULL REFERENCES orders,
    product_id INTEGER NOT NULL REFERENCES products, quantity INTEGER NOT NULL, cents INTEGER NOT NULL,
    returned INTEGER NOT NULL DEFAULT 0);
CREATE TABLE refunds (id INTEGER PRIMARY KEY, line_id INTEGER NOT NULL REFERENCES lines, cents INTEGER NOT NULL,
    method TEXT NOT NULL);
CREATE TABLE vouchers (id INTEGER PRIMARY KEY, customer_id INTEGER NOT NULL REFERENCES customers,
    cents INTEGER NOT NULL, issued TEXT NOT NULL);
CREATE INDEX orders_of ON orders (customer_id);
CREATE INDEX lines_of ON lines (order_id);
"""

RULES = (
    Rule(
        "return-window",
        "returns",
        "Goods are taken back within 30 days, for gold customers within 60 days. Days are counted from the delivery to"
        " today.",
    ),
    Rule("clearance", "returns", "What is on clearance is never taken back."),
    Rule(
        "refund-method",
        "returns",
        "Refunds of up to 50.00 EUR go to the card, larger ones by bank transfer.",
    ),
    Rule("shipped", "orders", "Only orders that are open can be cancelled; what is shipped or delivered cannot."),
    Rule(
        "late-parcel",
        "orders",
        "Who asks about a parcel that took more than 7 days from order to delivery gets a voucher for a tenth of what"
        " the order's goods cost, rounded down to whole euros.",
    ),
    Rule(
        "full-stock", "orders", "An order is placed only for goods of which at least 2 pieces stay in stock after it."
    ),
)

CATEGORIES = ("tent", "stove", "jacket", "boots", "lamp", "rope")
MODELS = ("Alder", "Birch", "Cedar", "Fjord", "Larch", "Tarn")
Method = Literal["card", "bank transfer"]
Quantity = Annotated[int, Meta(ge=1, le=20)]
Voucher = Annotated[int, Meta(ge=100, le=1_000_000, description="in cents, whole euros")]


def find_customers(state: State, name: str) -> list[dict[str, Any]]:
    """Customers by name or a part of it. Two customers may have the same name."""
    return state.rows("SELECT * FROM customers WHERE name LIKE ? ORDER BY id LIMIT 20", f"%{name}%")


def list_orders(state: State, customer_id: int) -> list[dict[str, Any]]:
    """The orders of a customer, without their lines."""
    state.get("customers", customer_id)
    return state.rows("SELECT * FROM orders WHERE customer_id = ? ORDER BY id", customer_id)


def get_order(state: State, order_id: int) -> dict[str, Any]:
    """An order with its lines. Prices of lines are in cents a piece, as paid."""
    lines = "SELECT lines.*, name, clearance FROM lines JOIN products ON products.id = product_id WHERE order_id = ?"
    return {**state.get("orders", order_id), "lines": state.rows(lines, order_id)}


def find_products(state: State, category: str, in_stock_only: bool = False) -> list[dict[str, Any]]:
    """The products of a category (tent, stove, jacket, boots, lamp or rope). Prices are in cents."""
    least = 1 if in_stock_only else 0
    return state.rows("SELECT * FROM products WHERE category = ? AND stock >= ? ORDER BY id", category, least)


def get_product(state: State, product_id: int) -> dict[str, Any]:
    """One product."""
    return state.get("products", product_id)


def return_line(state: State, line_id: int, method: Method) -> dict[str, Any]:
    """Take back all pieces of a line and refund what was paid for them."""
    line = state.get("lines", line_id)
    if line["returned"]:
        raise ToolRefusal(f"line {line_id} was returned before")
    cents = line["cents"] * line["quantity"]
    state.update("lines", line_id, returned=1)
    return {"refund": state.insert("refunds", line_id=line_id, cents=cents, method=method), "cents": cents}


def cancel_order(state: State, order_id: int) -> str:
    """Cancel an order."""
    if state.get("orders", order_id)["status"] == "cancelled":
        raise ToolRefusal(f"order {order_id} is cancelled already")
    state.update("orders", order_id, status="cancelled")
    return f"order {order_id} is cancelled"


def issue_voucher(state: State, customer_id: int, cents: Voucher) -> str:
    """Give a customer a voucher."""
    state.get("customers", customer_id)
    if cents % 100:
        raise ToolRefusal("vouchers are for whole euros")
    number = state.insert("vouchers", customer_id=customer_id, cents=cents, issued=str(state.today))
    return f"voucher {number} is issued"


def place_order(state: State, customer_id: int, product_id: int, quantity: Quantity = 1) -> str:
    """Order pieces of one product for a customer, at today's price."""
    state.get("customers", customer_id)
    product = state.get("products", product_id)
    if product["stock"] < quantity:
        raise ToolRefusal(f"only {product['stock']} pieces of {product['name']} are in stock")
    order = state.insert("orders", customer_id=customer_id, placed=str(state.today), status="open")
    state.insert("lines", order_id=order, product_id=product_id, quantity=quantity, cents=product["cents"])
    state.update("products", product_id, stock=product["stock"] - quantity)
    return f"order {order} is placed"


def change_email(state: State, customer_id: int, email: str) -> str:
    """Change where a customer's mail goes."""
    state.get("customers", customer_id)
    state.update("customers", customer_id, email=email)
    return "changed"


def fill(state: State, rng: Random) -> None:
    today = set_clock(state, rng)
    people = names(rng, 22)
    people[20:] = people[:2]
    for place, name in enumerate(people):
        city = CITIES[(place + 3 * (place >= 20)) % len(CITIES)]
        tier = "gold" if place % 4 == 2 else "basic"
        email = f"{name.lower().replace(' ', '.')}{place}@mail.example"
        state.insert("customers", name=name, city=city, email=email, tier=tier)
    for category in CATEGORIES:
        for place, model in enumerate(MODELS):
            stock = (1, 2, 14)[place] if place < 3 else rng.randrange(6, 40)
            cents = rng.randrange(1200, 4900, 50) * (1 if place % 2 else 4) + rng.randrange(0, 100, 5)
            state.insert(
                "products",
                name=f"{model} {category}",
                category=category,
                cents=cents,
                stock=stock,
                clearance=int(place == 5),
            )
    for customer in state.rows("SELECT * FROM customers"):
        _orders(state, rng, today, customer["id"])


def _orders(state: State, rng: Random, today: date, customer: int) -> None:
    """Of every customer: orders that came lately, a while ago and long ago, one on its way and one that is open."""
    ages = (rng.randrange(8, 28), rng.randrange(33, 57), rng.randrange(62, 80))
    for place, age in enumerate(ages):
        slow = rng.randrange(9, 15) if place == customer % 3 else rng.randrange(2, 6)
        _order(state, rng, customer, days_ago(today, age + slow), days_ago(today, age), "delivered")
    _order(state, rng, customer, days_ago(today, rng.randrange(2, 4)), None, "shipped")
    _order(state, rng, customer, days_ago(today, 1), None, "open")


def _order(state: State, rng: Random, customer: int, placed: str, delivered: str | None, status: str) -> None:
    order = state.insert("orders", customer_id=customer, placed=placed, delivered=delivered, status=status)
    plain = state.rows("SELECT * FROM products WHERE clearance = 0")
    cleared = state.rows("SELECT * FROM products WHERE clearance = 1")
    for product in (*rng.sample(plain, 2), rng.choice(cleared)):
        quantity = rng.choice((1, 1, 1, 2))
        state.insert("lines", order_id=order, product_id=product["id"], quantity=quantity, cents=product["cents"])


_DELIVERED = """\
SELECT lines.id, order_id, quantity, lines.cents, products.name AS product, customers.id AS customer_id,
    customers.name, city, tier, placed, delivered
FROM lines JOIN orders ON orders.id = order_id JOIN products ON products.id = product_id
    JOIN customers ON customers.id = customer_id
WHERE status = 'delivered' AND {where} ORDER BY lines.id"""
_AGE = "julianday((SELECT substr(now, 1, 10) FROM clock)) - julianday(delivered)"


def _delivered(state: State, rng: Random, where: str) -> dict[str, Any]:
    return pick(rng, state.rows(_DELIVERED.format(where=where)))


def _send_back(line: dict[str, Any]) -> str:
    return (
        f"{line['name']} from {line['city']} sends back what stands in order {line['order_id']} as {line['product']}."
        " Take it back if we can."
    )


def _taken_back(line: dict[str, Any], *rules: str) -> Draft:
    cents = line["cents"] * line["quantity"]
    method = "card" if cents <= 5000 else "bank transfer"
    return Draft(
        _send_back(line),
        (
            act(read_handbook, topic="returns"),
            act(get_time),
            act(find_customers, name=line["name"]),
            act(get_order, order_id=line["order_id"]),
            act(return_line, line_id=line["id"], method=method),
        ),
        done(
            insert("refunds", line_id=line["id"], cents=cents, method=method), update("lines", line["id"], returned=1)
        ),
        rules,
    )


def _not_taken_back(line: dict[str, Any], rule: str) -> Draft:
    looks = (act(read_handbook, topic="returns"), act(get_time), act(get_order, order_id=line["order_id"]))
    return Draft(_send_back(line), looks, refused(rule), (rule,))


def take_back(state: State, rng: Random) -> Draft:
    small = _delivered(state, rng, f"clearance = 0 AND {_AGE} <= 30 AND lines.cents * quantity > 5000")
    return _taken_back(small, "refund-method", "return-window")


def take_back_small(state: State, rng: Random) -> Draft:
    line = _delivered(state, rng, f"clearance = 0 AND {_AGE} <= 30 AND lines.cents * quantity <= 5000")
    return _taken_back(line, "refund-method", "return-window")


def take_back_gold(state: State, rng: Random) -> Draft:
    line = _delivered(state, rng, f"clearance = 0 AND tier = 'gold' AND {_AGE} BETWEEN 31 AND 60")
    return _taken_back(line, "return-window", "refund-method")


def take_back_late(state: State, rng: Random) -> Draft:
    line = _delivered(state, rng, f"clearance = 0 AND tier = 'basic' AND {_AGE} BETWEEN 31 AND 60")
    return _not_taken_back(line, "return-window")


def take_back_clearance(state: State, rng: Random) -> Draft:
    return _not_taken_back(_delivered(state, rng, f"clearance = 1 AND {_AGE} <= 30"), "clearance")


def cancel(state: State, rng: Random) -> Draft:
    """One of two customers of the same name."""
    twins = "SELECT name FROM customers GROUP BY name HAVING count(*) > 1"
    customer = pick(rng, state.rows(f"SELECT * FROM customers WHERE name IN ({twins})"))
    order = state.value("SELECT id FROM orders WHERE customer_id = ? AND status = 'open'", customer["id"])
    return Draft(
        f"{customer['name']} of {customer['city']} does not want the order of yesterday any more. Cancel it.",
        (
            act(read_handbook, topic="orders"),
            act(find_customers, name=customer["name"]),
            act(list_orders, customer_id=customer["id"]),
            act(cancel_order, order_id=order),
        ),
        done(update("orders", order, status="cancelled")),
        ("shipped",),
    )


def cancel_shipped(state: State, rng: Random) -> Draft:
    order = pick(
        rng,
        state.rows(
            "SELECT orders.id, name FROM orders JOIN customers ON customers.id = customer_id WHERE status = 'shipped'"
        ),
    )
    return Draft(
        f"{order['name']} writes: please cancel my order {order['id']}, I found it cheaper elsewhere.",
        (act(read_handbook, topic="orders"), act(get_order, order_id=order["id"])),
        refused("shipped"),
        ("shipped",),
    )


def late_parcel(state: State, rng: Random) -> Draft:
    slow = _delivered(state, rng, "julianday(delivered) - julianday(placed) > 7")
    goods = state.value("SELECT sum(cents * quantity) FROM lines WHERE order_id = ?", slow["order_id"])
    cents = goods // 1000 * 100
    return Draft(
        f"{slow['name']} from {slow['city']} complains that order {slow['order_id']} came very late. See to it.",
        (
            act(read_handbook, topic="orders"),
            act(get_order, order_id=slow["order_id"]),
            act(issue_voucher, customer_id=slow["customer_id"], cents=cents),
        ),
        done(insert("vouchers", customer_id=slow["customer_id"], cents=cents)),
        ("late-parcel",),
    )


def order_cheapest(state: State, rng: Random) -> Draft:
    """Of products at the same price any will do."""
    category = rng.choice(CATEGORIES)
    customer = pick(rng, state.rows("SELECT * FROM customers WHERE id <= 20 AND id > 2"))
    pieces = rng.choice((1, 2))
    sql = "SELECT * FROM products WHERE category = ? AND stock >= ? ORDER BY cents, id"
    enough = state.rows(sql, category, pieces + 2)
    cheapest = [product for product in enough if product["cents"] == enough[0]["cents"]]
    return Draft(
        f"{customer['name']} from {customer['city']} wants {pieces} of the cheapest {category} we can send. Order it.",
        (
            act(read_handbook, topic="orders"),
            act(find_customers, name=customer["name"]),
            act(find_products, category=category, in_stock_only=True),
            act(place_order, customer_id=customer["id"], product_id=cheapest[0]["id"], quantity=pieces),
        ),
        any_of(
            *(
                [
                    insert("orders", customer_id=customer["id"], status="open"),
                    insert("lines", product_id=product["id"], quantity=pieces, cents=product["cents"]),
                    update("products", product["id"], stock=product["stock"] - pieces),
                ]
                for product in cheapest
            )
        ),
        ("full-stock",),
    )


def spent(state: State, rng: Random) -> Draft:
    customer = pick(rng, state.rows("SELECT * FROM customers WHERE id > 2 AND id <= 20"))
    sum_of = "SELECT sum(cents * quantity) FROM lines JOIN orders ON orders.id = order_id WHERE customer_id = ?"
    cents = state.value(f"{sum_of} AND status = 'delivered'", customer["id"])
    orders = state.values("SELECT id FROM orders WHERE customer_id = ? AND status = 'delivered'", customer["id"])
    return Draft(
        f"What did the goods of all delivered orders of {customer['name']} from {customer['city']} cost, in euros?",
        (
            act(find_customers, name=customer["name"]),
            act(list_orders, customer_id=customer["id"]),
            *(act(get_order, order_id=order) for order in orders),
        ),
        number(cents / 100),
    )


def stray(state: State) -> Act:
    return act(change_email, customer_id=1, email="nobody@mail.example")


SHOP = Scenario(
    name="shop",
    about="The service desk of a shop for outdoor gear.",
    conduct="You work at the service desk of a shop for outdoor gear.",
    schema=SCHEMA,
    fill=fill,
    rules=RULES,
    tools=(
        find_customers,
        list_orders,
        get_order,
        find_products,
        get_product,
        return_line,
        cancel_order,
        issue_voucher,
        place_order,
        change_email,
    ),
    templates=(
        cancel,
        take_back,
        cancel_shipped,
        take_back_clearance,
        take_back_late,
        order_cheapest,
        late_parcel,
        take_back_small,
        spent,
        take_back_gold,
    ),
    stray=stray,
)
