"""What tokens cost: list prices in a file beside this module, and the user's own over them.

Prices change; the file says when it was checked. A model that is not in it has no price, and who asks decides what
that means: nothing here guesses.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from decimal import ROUND_CEILING, Decimal
from functools import cache
from importlib.resources import files

import msgspec

from whet.core import ConfigError, ModelRef, Nanodollars, Usage
from whet.models.providers import PROVIDERS

FREE_PROVIDERS = frozenset({"scripted", "local", *(name for name, preset in PROVIDERS.items() if preset.local)})
_NANO_PER_TOKEN = 1000
"""Nanodollars for one token at one dollar for a million."""


class Tier(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The price of a whole call whose input is longer than `above` tokens."""

    above: int
    input: float
    output: float
    cached_input: float | None = None
    cache_write: float | None = None


class Price(msgspec.Struct, frozen=True, omit_defaults=True, forbid_unknown_fields=True):
    """Dollars for a million tokens."""

    input: float
    output: float
    cached_input: float | None = None
    """None: cached input costs what other input does."""
    cache_write: float | None = None
    """Where the provider caches by itself and charges for it. Which tokens it wrote is not known, so all fresh input
    counts as written: the cost is then an upper bound."""
    tiers: tuple[Tier, ...] = ()

    def __post_init__(self) -> None:
        rates = (self.input, self.output, self.cached_input or 0.0, self.cache_write or 0.0)
        if not all(0 <= rate < 1_000_000 for rate in rates):
            raise ValueError("a price is a number of dollars that is not negative")

    def cost(self, usage: Usage) -> Nanodollars:
        """Exact, and rounded up once."""
        fresh, output, cached = self._rates(usage.input_tokens)
        cached_tokens = min(usage.cached_tokens, usage.input_tokens)
        total = (
            fresh * (usage.input_tokens - cached_tokens) + cached * cached_tokens + output * usage.output_tokens
        ) * _NANO_PER_TOKEN
        return int(total.to_integral_value(ROUND_CEILING))

    def _rates(self, input_tokens: int) -> tuple[Decimal, Decimal, Decimal]:
        rate: Price | Tier = self
        for tier in self.tiers:
            if input_tokens > tier.above:
                rate = tier
        fresh = _exact(rate.input if rate.cache_write is None else max(rate.input, rate.cache_write))
        cached = _exact(rate.input if rate.cached_input is None else rate.cached_input)
        return fresh, _exact(rate.output), cached


@cache
def _exact(rate: float) -> Decimal:
    """The decimal that was written, not the binary fraction nearest to it."""
    return Decimal(repr(rate))


FREE = Price(0.0, 0.0)


class PriceList(msgspec.Struct, frozen=True):
    """The file as it is shipped."""

    checked: str
    """The day on which the prices were last compared with what the providers publish."""
    note: str
    prices: dict[str, Price]


class Prices:
    """Looks prices up. `own` are the user's, keyed by `provider/model` like the shipped ones, and go before them."""

    def __init__(self, own: Mapping[str, Price] | None = None) -> None:
        for key in own or {}:
            if not all(key.partition("/")):
                raise ConfigError(f"{key!r} in [prices] does not name a model", hint='Write it as "provider/model"')
        self._own = dict(own or {})
        self._shipped = shipped_prices().prices

    def find(self, ref: ModelRef) -> Price | None:
        """The price of the longest listed name that this model's begins with, but for a date or a version."""
        own = _longest(self._own, str(ref))
        if own is not None or ref.provider in FREE_PROVIDERS:
            return own or FREE
        return _longest(self._shipped, str(ref))

    def is_own(self, ref: ModelRef) -> bool:
        """Whether the user gives a price for this model."""
        return _longest(self._own, str(ref)) is not None

    def cost(self, ref: ModelRef, usage: Usage) -> Nanodollars | None:
        """None where the price is not known."""
        price = self.find(ref)
        return None if price is None else price.cost(usage)


def shipped_prices() -> PriceList:
    return _read(files("whet.models").joinpath("prices.json").read_bytes())


@cache
def _read(text: bytes) -> PriceList:
    return msgspec.json.decode(text, type=PriceList)


_SAME_MODEL = re.compile(r"(?:[-@:](?:\d{8}|\d{4}-\d{2}-\d{2}|\d{4}|latest|preview))*")
"""What may follow a listed name without being another model: `gpt-5` is neither `gpt-5-pro` nor `gpt-5.1`."""


def _longest(prices: Mapping[str, Price], name: str) -> Price | None:
    matches = [key for key in prices if name.startswith(key) and _SAME_MODEL.fullmatch(name, len(key))]
    return prices[max(matches, key=len)] if matches else None
