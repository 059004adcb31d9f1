"""What commands share: arguments, options, and help texts with an example."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from difflib import get_close_matches
from pathlib import Path
from typing import Any, TypeVar

import click

F = TypeVar("F", bound=Callable[..., Any])

CONFIG = "whet.toml"


def examples(*lines: str) -> str:
    """An epilog that click does not reflow."""
    title = "Example:" if len(lines) == 1 else "Examples:"
    return "\b\n" + "\n".join([title, *(f"  {line}" for line in lines)])


def json_option(function: F) -> F:
    return click.option("--json", "as_json", is_flag=True, help="Print JSON, for machines.")(function)


def project_option(function: F) -> F:
    return click.option(
        "-C",
        "--project",
        type=click.Path(path_type=Path),
        default=Path(),
        show_default="here",
        help="The project's folder.",
    )(function)


def config_argument(function: F) -> F:
    return click.argument("config", type=click.Path(path_type=Path), default=Path(CONFIG))(function)


def run_argument(function: F) -> F:
    return click.argument("run", required=False)(function)


def set_option(function: F) -> F:
    return click.option(
        "--set", "overrides", metavar="KEY=VALUE", multiple=True, help="Change a setting, such as train.epochs=2."
    )(function)


def run_option(function: F) -> F:
    return click.option("--run", "run", metavar="NAME", help="The name of the run.")(function)


def plain_option(function: F) -> F:
    return click.option("--plain", is_flag=True, help="Plain lines also on a terminal.")(function)


def closing(wanted: str, known: Iterable[str]) -> str:
    """The end of a message about an unknown name: the nearest one that there is, or all of them."""
    names = list(known)
    near = get_close_matches(wanted, names, n=1, cutoff=0.5)
    return f"Did you mean {near[0]!r}?" if near else f"There are: {', '.join(names)}."
