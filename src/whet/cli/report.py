"""`whet report`: a run's report, as one HTML page."""

from __future__ import annotations

from pathlib import Path

import click

from whet.cli.loading import find_folder
from whet.cli.numbers import plural
from whet.cli.options import examples, json_option, project_option, run_argument
from whet.cli.output import print_json
from whet.cli.standing import Standing, State, lineage_of, read_standing, report_of, settings_of, skill_of
from whet.core import InputError, Split
from whet.store import RunReader
from whet.training import PolicyScore, Report, StepRecord, load_config, report_text
from whet.training.config import Config
from whet.training.folder import CONFIG_COPY, STORE_FILE
from whet.training.reporting import policy_score
from whet.training.skills import replace_text
from whet.web import page_of

PAGE = "report.html"


@click.command(
    "report",
    epilog=examples("whet report", "whet report run-1 --out run-1.html", "whet report run-1 --text > run-1.md"),
)
@run_argument
@click.option("--out", type=click.Path(path_type=Path), help="The page to write, if not runs/NAME/report.html.")
@click.option("--text", "as_text", is_flag=True, help="Print it as Markdown, and write no page.")
@project_option
@json_option
def command(run: str | None, out: Path | None, as_text: bool, project: Path, as_json: bool) -> None:
    """Write the report of RUN (the latest without one) as one HTML page, and print where it is.

    The page opens from disk and needs nothing beside it: what each step tried and why it was kept or not, who brought
    which line of the skill, results with intervals, costs and settings. With --json, the report itself is printed.
    A run that is not at its end is reported as far as it came.
    """
    if (as_text or as_json) and (out is not None or as_text == as_json):
        raise click.UsageError("--out, --text and --json are three forms of the report: choose one.")
    folder = find_folder(project, run)
    report, note = reported(folder)
    if note and (as_text or as_json):
        click.echo(note, err=True)
    if as_json:
        print_json(report)
    elif as_text:
        click.echo(report_text(report), nl=False)
    else:
        click.echo(str(write_page(folder, report, note, out or folder / PAGE)))


def write_page(folder: Path, report: Report, note: str, target: Path) -> Path:
    """Whole or not at all; gives `target`."""
    if target.is_dir() or not target.absolute().parent.is_dir():
        raise InputError(f"{target} cannot be written", hint="Name a file in a folder that there is.")
    replace_text(target, page_of(folder, report, note))
    return target


def reported(folder: Path) -> tuple[Report, str]:
    """The report of the run, or what can be said so far and a note that says so."""
    written = report_of(folder)
    with RunReader(folder / STORE_FILE) as reader:
        standing = read_standing(folder, reader, written)
        ended = standing.state in (State.FINISHED, State.STOPPED)
        whole = standing.state is State.RUNNING and written is not None and not written.stopped
        if written is not None and (ended or whole):
            return written, ""
        return report_so_far(folder, reader, standing), _note(standing)


def report_so_far(folder: Path, reader: RunReader, standing: Standing) -> Report:
    """From what has been decided; nothing is claimed about tasks that are played at the end."""
    config, settings = load_config(folder / CONFIG_COPY), settings_of(reader)
    records = reader.decisions("step", StepRecord)
    lineage = lineage_of(reader, records, None)
    best = skill_of(reader, lineage.best, records)
    return Report(
        run=folder.name,
        world=reader.meta("world") or "",
        target=str(settings.get("target model", config.target.model)),
        optimizer=config.optimizer.model,
        seed=config.train.seed,
        metric=config.gate.metric,
        rule=config.gate.rule,
        steps_planned=standing.planned or standing.steps,
        stopped=f"it is not at its end, but at {_done(standing)}",
        steps=tuple(records),
        start=lineage.start,
        best=lineage.best,
        last=lineage.current,
        selection=tuple(_baseline(reader, lineage.start, records, config)),
        test=(),
        comparison=None,
        calls=tuple(reader.answered()),
        skill=best.files if best is not None else {},
    )


def _baseline(reader: RunReader, start: str, records: list[StepRecord], config: Config) -> list[PolicyScore]:
    """Once something was ruled on, the starting policy has played all selection tasks."""
    if not any(record.ruling for record in records):
        return []
    tries = (stored.trajectory for stored in reader.rollouts(policy=start, split=Split.SELECTION))
    played = [one for one in tries if one.sample == 0]
    return [policy_score(start, played, config.gate)] if played else []


def _note(standing: Standing) -> str:
    if standing.state is State.RUNNING:
        return f"Not at its end: the run is being trained, and has done {_done(standing)}."
    return f"Not at its end: the run was interrupted after {_done(standing)}. `whet train` goes on with it."


def _done(standing: Standing) -> str:
    if standing.planned is None:
        return plural(standing.steps, "step")
    return f"{standing.steps} of {plural(standing.planned, 'step')}"
