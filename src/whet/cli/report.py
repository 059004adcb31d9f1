"""`whet report`: a run's report."""

from __future__ import annotations

from pathlib import Path

import click

from whet.cli.loading import find_folder
from whet.cli.options import examples, json_option, project_option, run_argument
from whet.cli.output import print_json
from whet.cli.standing import report_of
from whet.core import InputError
from whet.training import report_text


@click.command("report", epilog=examples("whet report run-1 > run-1.md", "whet report run-1 --json"))
@run_argument
@project_option
@json_option
def command(run: str | None, project: Path, as_json: bool) -> None:
    """Print the report of RUN (the latest without one), as Markdown.

    A training writes it at its end, also when it is stopped early.
    """
    folder = find_folder(project, run)
    report = report_of(folder)
    if report is None:
        raise InputError(f"{folder.name} has no report yet", hint=f"`whet show {folder.name}` shows what there is.")
    print_json(report) if as_json else click.echo(report_text(report), nl=False)
