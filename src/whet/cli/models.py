"""`whet models`: who can be asked and at what price, and whether a project's models answer."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Mapping
from pathlib import Path

import click
import msgspec

from whet.cli.boundary import NO
from whet.cli.checking import Checked, check_roles, configured_roles
from whet.cli.embedded import EmbeddedLine, embedded_lines, print_embedded, pull_model
from whet.cli.loading import config_file
from whet.cli.numbers import money
from whet.cli.options import config_argument, examples, json_option, set_option
from whet.cli.output import number, print_json, print_table, rest, text, title
from whet.core import SystemClock
from whet.models import PROVIDERS, Models, Prices
from whet.models.prices import Price, shipped_prices
from whet.training import load_config
from whet.training.telling import duration


class ProviderLine(msgspec.Struct, frozen=True):
    """Where a provider's key is looked for, and whether one is there; never the key."""

    provider: str
    key_names: tuple[str, ...]
    key_found: bool
    needs_key: bool
    address: str


class Providers(msgspec.Struct, frozen=True):
    providers: tuple[ProviderLine, ...]
    prices_checked: str
    prices: dict[str, Price]
    embedded: tuple[EmbeddedLine, ...]


@click.group("models", epilog=examples("whet models list", "whet models pull smollm2-135m", "whet models check"))
def command() -> None:
    """Providers and prices, models that run within whet, and whether a project's models answer."""


command.add_command(pull_model)


@command.command("list", epilog=examples("whet models list", "whet models list --json"))
@json_option
def list_models(as_json: bool) -> None:
    """Providers, whether their key is set, list prices, and models that run within whet.

    A model is named "provider/name". Prices of others are given in [prices]; without a price a cap in dollars cannot be
    kept, so then one is asked for.
    """
    shipped = shipped_prices()
    found = Providers(provider_lines(os.environ), shipped.checked, shipped.prices, embedded_lines(os.environ))
    print_json(found) if as_json else _print_providers(found)


@command.command(
    "check", epilog=examples("whet models check", "whet models check --set target.model=openai/gpt-5.4-mini")
)
@config_argument
@set_option
@json_option
def check(config: Path, overrides: tuple[str, ...], as_json: bool) -> None:
    """Make one small call to the model of each role in CONFIG (whet.toml).

    Says what it answered, how long that took and what it cost. Nothing is retried. Exit code 1: one did not answer.
    """
    path = config_file(config)
    settings = load_config(path, overrides)
    clock = SystemClock()
    models = Models(environ=os.environ, base_dir=path.parent, prices=Prices(settings.prices), clock=clock)
    checked = asyncio.run(check_roles(models, configured_roles(settings), clock))
    print_json(checked) if as_json else _print_checked(checked)
    if not all(one.answered for one in checked):
        click.get_current_context().exit(NO)


def provider_lines(environ: Mapping[str, str]) -> tuple[ProviderLine, ...]:
    return tuple(
        ProviderLine(
            name,
            preset.key_names,
            any(environ.get(variable, "").strip() for variable in preset.key_names),
            not preset.local,
            preset.base_url or next(iter(preset.regions.values()), ""),
        )
        for name, preset in PROVIDERS.items()
    )


def key_state(line: ProviderLine) -> str:
    if line.key_found:
        return "set"
    return "not set" if line.needs_key else "not needed"


def _print_providers(found: Providers) -> None:
    print_table(
        (text("provider"), text("key"), text("variable"), rest("address")),
        [(line.provider, key_state(line), line.key_names[0], line.address or "base_url") for line in found.providers],
    )
    title("Within whet")
    print_embedded(found.embedded)
    title(f"Dollars for a million tokens (checked {found.prices_checked})")
    print_table(
        (text("model"), number("input"), number("output"), number("cached input")),
        [
            (name, _price(price.input), _price(price.output), _price(price.cached_input))
            for name, price in found.prices.items()
        ],
    )


def _price(value: float | None) -> str:
    return "-" if value is None else f"{value:.3f}"


def _print_checked(checked: list[Checked]) -> None:
    print_table(
        (text("role"), text("model"), text("answers"), number("time"), number("cost"), rest("what it said")),
        [
            (
                one.role,
                one.model,
                "yes" if one.answered else "no",
                duration(one.seconds),
                money(one.nanodollars),
                one.text,
            )
            for one in checked
        ],
    )
