"""`whet show`: what a run tried, kept and spent."""

from __future__ import annotations

from pathlib import Path

import click

from whet.cli.ablating import ablated, print_worths
from whet.cli.loading import find_folder
from whet.cli.options import examples, json_option, project_option, run_argument
from whet.cli.output import print_json
from whet.cli.showing_run import facts_of, print_run
from whet.cli.showing_step import print_records, records_of
from whet.cli.showing_task import print_task, tries_of
from whet.cli.standing import lineage_of, report_of
from whet.store import RunReader
from whet.training import StepRecord
from whet.training.folder import STORE_FILE


@click.command(
    "show",
    epilog=examples(
        "whet show", "whet show run-1", "whet show run-1 --step 3", "whet show --task test-007", "whet show --ablate"
    ),
)
@run_argument
@click.option("--step", metavar="N", type=int, help="One step in full: reasons, failure patterns, every edit.")
@click.option("--task", metavar="ID", help="Every try at one task.")
@click.option("--ablate", is_flag=True, help="Replay without each part of the best skill: what is it worth?")
@project_option
@json_option
def command(run: str | None, step: int | None, task: str | None, ablate: bool, project: Path, as_json: bool) -> None:
    """What RUN (by name or path; the latest without one) tried, kept and spent.

    Scores with 95% intervals, the steps with their rulings, spending by role and purpose with what retries and lost
    calls cost, and how the best skill differs from the one at the start. Works while the run is being trained.
    """
    if (step is not None) + (task is not None) + ablate > 1:
        raise click.UsageError("--step, --task and --ablate show different things: give one of them.")
    folder = find_folder(project, run)
    if ablate:
        worths = ablated(project, folder, log=as_json)
        print_json(worths) if as_json else print_worths(worths)
    elif step is not None:
        found = records_of(folder, step)
        print_json(found) if as_json else print_records(found)
    elif task is not None:
        with RunReader(folder / STORE_FILE) as reader:
            tries = tries_of(reader, folder.name, task)
            lineage = lineage_of(reader, reader.decisions("step", StepRecord), report_of(folder))
        print_json(tries) if as_json else print_task(tries, lineage)
    else:
        facts = facts_of(folder)
        print_json(facts) if as_json else print_run(facts)
