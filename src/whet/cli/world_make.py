"""`whet world make`: worlds from a theme, written by the optimizer model and tried part by part."""

from __future__ import annotations

import os
from pathlib import Path

import click

from whet.cli.audit import print_probes
from whet.cli.boundary import NO
from whet.cli.loading import config_file
from whet.cli.numbers import plural
from whet.cli.options import examples, json_option, plain_option, project_option, set_option
from whet.cli.output import number, paragraph, print_json, print_table, rest, text, title
from whet.cli.progress import spent_line
from whet.cli.working import work_on
from whet.core import RunStopped, SystemClock
from whet.making import Made, Order, make_worlds, open_maker
from whet.models import Models, Prices
from whet.training import Config, Monitor, load_config

DEFAULT_OUT = Path("worlds") / "made"


@click.command(
    "make",
    epilog=examples(
        'whet world make "a parcel locker network"',
        'whet world make "municipal services" --scenarios 5 --out worlds/town --set budget.usd=10',
    ),
)
@click.argument("theme")
@click.option("--tasks", type=click.IntRange(1, 50), default=10, show_default=True, help="Tasks of each scenario.")
@click.option("--scenarios", type=click.IntRange(1), default=1, show_default=True, help="Scenarios of the theme.")
@click.option(
    "--corrections", type=click.IntRange(0, 20), default=3, show_default=True, help="Times to ask again for a part."
)
@click.option("--out", type=click.Path(file_okay=False, path_type=Path), help="The folder.  [default: worlds/made]")
@project_option
@set_option
@plain_option
@json_option
def command(
    theme: str,
    tasks: int,
    scenarios: int,
    corrections: int,
    out: Path | None,
    project: Path,
    overrides: tuple[str, ...],
    plain: bool,
    as_json: bool,
) -> None:
    """Make scenarios of a theme: a database, tools, tasks and verifiers, ready to be played as world awm.

    The model of [optimizer] writes them part by part. Each part is tried in the sandbox, and what is wrong with it goes
    back to the model. A folder that holds scenarios already is added to; one that is too much like them is refused.
    What came about is admitted and audited in the end.

    The same command goes on with what was ended, and repeats no call; with more --scenarios, it makes those that are
    missing. Exit code 1: nothing sound came about, or it was stopped.
    """
    if not theme.strip():
        raise click.UsageError("the theme is empty")
    path = config_file(project)
    config = _config(path, overrides)
    folder = out or path.parent / DEFAULT_OUT
    clock = SystemClock()
    order = Order(theme, tasks, scenarios, corrections)

    async def work(monitor: Monitor) -> Made:
        models = Models(environ=os.environ, base_dir=path.parent, prices=Prices(config.prices), clock=clock)
        async with open_maker(config, models, folder, clock, monitor) as maker:
            return await make_worlds(order, folder, maker)

    made, ledger = work_on(work, clock, plain=plain, log=as_json)
    if as_json:
        print_json(made)
    else:
        _print(made, path.parent)
        if ledger is not None:
            click.echo(f"Spent: {spent_line(ledger)}.")
    if made.stopped:
        raise RunStopped(made.stopped)
    if not made.sound:
        click.get_current_context().exit(NO)


def _config(path: Path, overrides: tuple[str, ...]) -> Config:
    """What is made needs neither of the tables that a training does, so both may still be missing."""
    return load_config(path, (*overrides, "world.use=awm", "target.max_turns=1"))


def _print(made: Made, base_dir: Path) -> None:
    title("Scenarios")
    print_table(
        (text("scenario"), number("tasks"), number("left out"), rest("why not")),
        [(one.name, str(one.tasks), str(len(one.left_out)), one.given_up) for one in made.scenarios],
    )
    refused = [f"{report.name}: {problem}" for report in made.reports for problem in report.problems]
    refused += [
        f"{report.name}/{task.index}: {'; '.join(task.problems)}"
        for report in made.reports
        for task in report.tasks
        if task.problems
    ]
    left_out = [f"{one.name}, {task.text!r}: {task.reason}" for one in made.scenarios for task in one.left_out]
    for heading, lines in (("Left out", left_out), ("Not admitted", refused)):
        if lines:
            title(heading)
            for line in lines:
                paragraph(line, indent="  ")
    if made.audit:
        title("Audit")
        print_probes(made.audit)
    click.echo(f"\n{made.sound} of {plural(sum(one.tasks for one in made.scenarios), 'task')} sound.")
    if made.sound:
        click.echo(f'Play them: [world]\nuse = "awm"\npath = "{_shown(made.folder, base_dir)}"')


def _shown(folder: str, base_dir: Path) -> str:
    """As [world] of the project's whet.toml names it."""
    return os.path.relpath(folder, base_dir)
