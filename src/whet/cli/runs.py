"""`whet runs`: one line for each run."""

from __future__ import annotations

from pathlib import Path

import click

from whet.cli.numbers import money, share, when
from whet.cli.options import examples, json_option, project_option
from whet.cli.output import number, print_json, print_table, text
from whet.cli.standing import Standing, State, standing_of
from whet.core import InputError
from whet.training import run_folders

_COLUMNS = (
    text("run"),
    text("state"),
    number("steps"),
    number("start"),
    number("best"),
    number("cost"),
    text("last active"),
)


@click.command("runs", epilog=examples("whet runs", "whet runs --json"))
@project_option
@json_option
def command(project: Path, as_json: bool) -> None:
    """One line for each run of the project, the latest last.

    The scores are those on the selection tasks: of the policy that the run started from, and of the best so far.
    """
    if not project.is_dir():
        raise InputError(f"there is no folder {project}")
    standings = [standing_of(folder) for folder in run_folders(project)]
    if as_json:
        print_json(standings)
    elif not standings:
        click.echo("No runs yet: `whet train` starts one.")
    else:
        print_table(_COLUMNS, [_row(standing) for standing in standings])


def _row(standing: Standing) -> tuple[str, ...]:
    lineage = standing.lineage
    return (
        standing.run,
        f"running ({standing.pid})" if standing.state is State.RUNNING else standing.state,
        f"{standing.steps}/{standing.planned}" if standing.planned else str(standing.steps),
        share(lineage.start_score),
        share(lineage.best_score),
        money(standing.nanodollars),
        when(standing.at),
    )
