"""`whet certify`: is a run's best policy better than the one it started from, on tasks nobody selected on?"""

from __future__ import annotations

from pathlib import Path

import click

from whet.cli.boundary import NO
from whet.cli.loading import find_folder
from whet.cli.numbers import signed_interval
from whet.cli.options import examples, json_option, plain_option, project_option, run_argument
from whet.cli.output import pairs, paragraph, print_json
from whet.cli.policies import policy_for
from whet.cli.working import work_on
from whet.core import InputError, Split
from whet.gate import Finding
from whet.training import Monitor, load_config, open_workshop, prepare
from whet.training.certifying import certify, file_for, split_for
from whet.training.folder import CONFIG_COPY


@click.command(
    "certify",
    epilog=examples("whet certify", "whet certify run-1 --split confirm --samples 8", "whet certify --over active"),
)
@run_argument
@click.option(
    "--split", type=click.Choice([Split.CONFIRM.value, Split.TEST.value]), help="Default: confirm, else test."
)
@click.option("--samples", type=click.IntRange(1, 32), default=4, show_default=True, help="Plays of each task.")
@click.option("--over", default="start", show_default=True, help="Over whom: start, active, or a record's id.")
@project_option
@plain_option
@json_option
def command(
    run: str | None, split: str | None, samples: int, over: str, project: Path, plain: bool, as_json: bool
) -> None:
    """Prove the gain of RUN's best policy over its start, by fresh plays on tasks that nothing was chosen by.

    To be activated where something is active already, it must be proven `--over active`.

    It stops as soon as the gain is proven, or cannot be any more. Every attempt on the same world spends from one
    chance of 5%, kept in runs/alpha.json, so that asking again and again cannot buy a certificate. Exit code 1: no
    gain is shown.
    """
    folder = find_folder(project, run)
    finding = certified(project, folder, split=split, samples=samples, over=over, plain=plain, log=as_json)
    print_json(finding) if as_json else _print(finding, folder, over)
    if finding.certificate is None:
        click.get_current_context().exit(NO)


def certified(
    project: Path,
    folder: Path,
    *,
    split: str | None = None,
    samples: int = 4,
    over: str = "start",
    plain: bool,
    log: bool = False,
) -> Finding:
    """Try to prove the gain of the run at `folder` over the policy that is named."""
    made = prepare(load_config(folder / CONFIG_COPY), project)
    best = policy_for(made, folder, "best")
    incumbent = policy_for(made, folder, over)
    if best.fingerprint == incumbent.fingerprint:
        same = "the one it started from" if over == "start" else f"the same as {over}"
        raise InputError(f"the best policy of {folder.name} is {same}", hint="There is nothing to show.")
    on = Split(split) if split else split_for(made)

    async def work(monitor: Monitor) -> Finding:
        async with open_workshop(made, folder) as workshop:
            monitor.started(folder.name, 0, workshop.ledger)
            return await certify(workshop, best, on, samples, monitor, incumbent)

    finding, _ = work_on(work, made.clock, plain=plain, log=log)
    return finding


def _print(finding: Finding, folder: Path, over: str) -> None:
    click.echo("")
    paragraph(finding.reason[:1].upper() + finding.reason[1:] + ".")
    click.echo("")
    certificate = finding.certificate
    pairs(
        [
            ("tasks", f"{finding.played} that nothing was chosen by, {finding.rollouts} rollouts"),
            ("gain", f"{finding.gain:+.3f} ({signed_interval(finding.interval)})"),
            ("evidence", f"{finding.e_value:.3g} times over chance"),
            *(
                [("written", str(folder / file_for(certificate.claim.incumbent if over != "start" else "", "")))]
                if certificate
                else []
            ),
        ]
    )
