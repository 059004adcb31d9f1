"""`whet world import`: folders of worlds in other systems' formats, tried and admitted."""

from __future__ import annotations

import asyncio
from pathlib import Path

import click

from whet.cli.boundary import NO
from whet.cli.numbers import plural
from whet.cli.options import examples, json_option
from whet.cli.output import number, paragraph, print_json, print_table, rest, text, title
from whet.worlds.awm import ADMISSION_FILE, Admission, ScenarioReport, admit


@click.group("import", epilog=examples("whet world import awm AgentWorldModel-1K"))
def command() -> None:
    """Admit what is sound of a folder of worlds."""


@command.command(
    "awm",
    epilog=examples(
        "whet world import awm AgentWorldModel-1K",
        "whet world import awm AgentWorldModel-1K --scenario e_commerce_33 --lenient",
    ),
)
@click.argument("folder", type=click.Path(path_type=Path))
@click.option("--scenario", "scenarios", metavar="NAME", multiple=True, help="Try this one; without, all of them.")
@click.option("--lenient", is_flag=True, help="Keep what can still be played, with its problems noted.")
@json_option
def awm(folder: Path, scenarios: tuple[str, ...], lenient: bool, as_json: bool) -> None:
    """Try each scenario of a folder in the format of AgentWorldModel, and write down which are sound.

    A scenario's statements must load and its promised operations be tools; a task's verifier must work, fail an agent
    that does nothing, and say the same twice and on another date. All of it runs in the sandbox. What is found is kept
    in the folder (whet_admission.json), which the world awm reads. Exit code 1: nothing is sound.
    """
    admission = asyncio.run(admit(folder, only=scenarios, lenient=lenient, done=_tell))
    print_json(admission) if as_json else _print(admission, folder)
    if not admission.admitted:
        click.get_current_context().exit(NO)


def _tell(report: ScenarioReport) -> None:
    click.echo(f"{report.name}: {'admitted' if report.admitted else 'left out'}", err=True)


def _print(admission: Admission, folder: Path) -> None:
    reports = list(admission.scenarios.values())
    print_table(
        (text("scenario"), text("admitted"), number("tools"), number("tasks"), number("repaired"), rest("problems")),
        [
            (
                report.name,
                "yes" if report.admitted else "no",
                str(report.tools),
                f"{sum(not task.problems for task in report.tasks)} of {len(report.tasks)}",
                str(report.repaired),
                "; ".join(report.problems),
            )
            for report in reports
        ],
    )
    broken = [(report.name, task) for report in reports for task in report.tasks if task.problems]
    if broken:
        title("Tasks that are not sound" + (", kept all the same" if admission.lenient else ""))
        for name, task in broken:
            paragraph(f"{name}/{task.index}: {'; '.join(task.problems)}", indent="  ")
    click.echo(
        f"\n{len(admission.admitted)} of {plural(len(reports), 'scenario')} admitted ({folder / ADMISSION_FILE})."
    )
    if admission.admitted:
        click.echo(f'Play them: [world] use = "awm", path = "{folder}"')
