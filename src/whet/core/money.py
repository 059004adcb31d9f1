"""Money in whole nano-dollars, so that sums do not depend on the order in which calls finish."""

from __future__ import annotations

from typing import TypeAlias

Nanodollars: TypeAlias = int

_PER_DOLLAR = 1_000_000_000


def nanodollars(usd: float) -> Nanodollars:
    return round(usd * _PER_DOLLAR)


def dollars(amount: Nanodollars) -> float:
    return amount / _PER_DOLLAR


def show_dollars(amount: Nanodollars) -> str:
    usd = dollars(amount)
    return f"${usd:.2f}" if usd >= 1 or amount == 0 else f"${usd:.4f}"
