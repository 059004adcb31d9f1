"""`whet train`: run a training, or go on with one."""

from __future__ import annotations

from pathlib import Path

import click

from whet.cli.loading import load_for_training
from whet.cli.options import config_argument, examples, json_option, plain_option, run_option, set_option
from whet.cli.output import pairs, paragraph, print_json
from whet.cli.progress import spent_line
from whet.cli.report import PAGE, write_page
from whet.cli.standing import report_of
from whet.cli.working import work_on
from whet.core import RunStopped
from whet.models import Ledger
from whet.training import Project, Report, choose_run, train, verdict_line
from whet.training.folder import BEST


@click.command(
    "train",
    epilog=examples("whet train", "whet train --set train.epochs=2 --run short", "whet train project/other.toml"),
)
@config_argument
@set_option
@run_option
@plain_option
@json_option
def command(config: Path, overrides: tuple[str, ...], run: str | None, plain: bool, as_json: bool) -> None:
    """Run the training that CONFIG (whet.toml) describes, or go on with it.

    A training that ended early, for whatever reason, is gone on with by the same command: what was answered, played and
    decided is in the run's store and is not done again. Other settings make a new run.

    Ctrl-C lets the calls in flight end and stops; a second one stops at once. Exit code 1: it was stopped, or a cap of
    [budget] is used up; 2: it could not run.
    """
    project = load_for_training(config, overrides)
    chosen = choose_run(project.base_dir, project.settings(), run)
    click.echo(chosen.note, err=as_json)
    try:
        report, ledger = train_at(project, chosen.path, plain=plain, log=as_json)
    except RunStopped:
        if as_json:
            print_json(report_of(chosen.path))
        else:
            click.echo(f"what was learned until now is in {chosen.path / BEST}")
        raise
    if as_json:
        print_json(report)
    else:
        tell_outcome(report, chosen.path, ledger)


def train_at(project: Project, folder: Path, *, plain: bool, log: bool = False) -> tuple[Report, Ledger | None]:
    """Train the run at `folder`; with `log`, what there is to tell goes to stderr."""
    return work_on(lambda monitor: train(project, folder, monitor), project.clock, plain=plain, log=log)


def tell_outcome(report: Report, folder: Path, ledger: Ledger | None) -> None:
    click.echo("")
    paragraph(verdict_line(report))
    click.echo("")
    pairs(
        [
            ("skill", str(folder / BEST)),
            ("report", str(write_page(folder, report, "", folder / PAGE))),
            *([("spent", spent_line(ledger))] if ledger else []),
            ("look", f"whet show {folder.name}"),
        ]
    )
