"""`whet demo`: the whole job, end to end, in a folder of its own."""

from __future__ import annotations

from pathlib import Path

import click

from whet.cli.init import write_project
from whet.cli.loading import load_for_training
from whet.cli.options import CONFIG, examples, json_option, plain_option
from whet.cli.output import print_json
from whet.cli.showing_run import facts_of, print_run
from whet.cli.train import train_at
from whet.training import choose_run


@click.command("demo", epilog=examples("whet demo", "whet demo --dir /tmp/try-whet"))
@click.option(
    "--dir",
    "folder",
    type=click.Path(path_type=Path),
    default=Path("whet-demo"),
    show_default=True,
    help="Where the demonstration's project is; made if it is not there.",
)
@plain_option
@json_option
def command(folder: Path, plain: bool, as_json: bool) -> None:
    """Make a small project, train it, and show what came of it: a second or two, no key, no network.

    The agent and its coach are scripted (models.py says how), the rest is as with real models. Where the folder holds
    the project already, the demonstration goes on with it.
    """
    if not (folder / CONFIG).exists():
        write_project(folder)
        click.echo(f"made a project in {folder}", err=as_json)
    project = load_for_training(folder / CONFIG)
    chosen = choose_run(project.base_dir, project.settings(), None)
    click.echo(f"{chosen.note}\n", err=as_json)
    train_at(project, chosen.path, plain=plain, log=as_json)
    facts = facts_of(chosen.path)
    if as_json:
        print_json(facts)
        return
    click.echo("")
    print_run(facts)
    _print_next(folder)


def _print_next(folder: Path) -> None:
    click.secho("\nTry next", bold=True)
    click.echo(f"  cd {folder}")
    click.echo("  whet show --step 1                  one step in full: reasons, edits, ruling")
    click.echo("  whet eval --compare start best      the gain, measured task by task")
    click.echo("  whet train --set train.seed=2       another run, by another chance")
