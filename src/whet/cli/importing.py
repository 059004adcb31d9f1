"""`whet import`: what other systems wrote, in whet's words."""

from __future__ import annotations

from pathlib import Path

import click

from whet.cli.options import examples, json_option
from whet.cli.output import print_json
from whet.core import InputError
from whet.training.skillopt import import_skillopt
from whet.training.skills import replace_text


@click.group("import", epilog=examples("whet import skillopt-config configs/searchqa.yaml --out whet.toml"))
def command() -> None:
    """Read what other systems wrote."""


@command.command("skillopt-config", epilog=examples("whet import skillopt-config config.yaml --out whet.toml"))
@click.argument("file", type=click.Path(path_type=Path))
@click.option("--out", type=click.Path(path_type=Path), help="Where to write it; without, it is printed.")
@json_option
def skillopt_config(file: Path, out: Path | None, as_json: bool) -> None:
    """A published SkillOpt configuration as a whet.toml. What has no counterpart is listed, and nothing is guessed."""
    imported = import_skillopt(file)
    if out is not None:
        if out.exists():
            raise InputError(f"{out} is there already", hint="Name another file, or move that one away.")
        replace_text(out, imported.toml)
    if as_json:
        print_json(imported)
        return
    click.echo(f"wrote {out}" if out is not None else imported.toml)
    if imported.left_out:
        click.echo("Left out:", err=True)
    for line in imported.left_out:
        click.echo(f"  {line}", err=True)
    click.echo('Name the world under [world]: it is "jsonl" until then.', err=True)
