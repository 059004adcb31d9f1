"""`whet demo`: the whole job, end to end, in a folder of its own."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path

import click
import msgspec

from whet.cli.asking_gateway import gateway_for, play_through
from whet.cli.certify import certified
from whet.cli.demonstrating import TIMED, StageLine, print_stages, stage_line, stages_of, write_demo
from whet.cli.demonstrating_game import play_generations
from whet.cli.embedded import fetched
from whet.cli.init import write_project
from whet.cli.loading import load_for_training
from whet.cli.options import CONFIG, examples, json_option, plain_option
from whet.cli.output import paragraph, print_json, title
from whet.cli.registry import opened
from whet.cli.report import PAGE, write_page
from whet.cli.showing_run import facts_of, print_run
from whet.cli.train import train_at
from whet.core import InputError, Split
from whet.gate import read_certificate
from whet.models.embedded import pulled
from whet.project import data_folder
from whet.training import Project, Report, choose_run, verdict_line
from whet.training.published import ACTIVE
from whet.training.publishing import draft_of, proofs_in, stored_policies

MODEL = "smollm2-135m"
_QUICK = ('train.levers=["skill"]', "world.train=48", "world.confirm=0")


class Demonstrated(msgspec.Struct, frozen=True):
    """What came of it, for machines."""

    folder: Path
    run: str
    stages: tuple[StageLine, ...]
    certificate: str
    """Empty if no gain was proven."""
    record: str
    """What was published; empty if nothing was."""


@click.command(
    "demo", epilog=examples("whet demo", "whet demo --quick", "whet demo --scripted --dir /tmp/try-whet --json")
)
@click.option(
    "--dir",
    "folder",
    type=click.Path(path_type=Path),
    help="Where the demonstration's project is; made if it is not there.  [default: whet-demo]",
)
@click.option("--quick", is_flag=True, help="The skill lever only: nothing is trained, published or served.")
@click.option("--grid-ctf", "grid_ctf", is_flag=True, help="Three self-taught generations at a game, beside searches.")
@click.option("--scripted", is_flag=True, help="On scripted models, in a second or two: what a run looks like.")
@plain_option
@json_option
def command(folder: Path | None, quick: bool, grid_ctf: bool, scripted: bool, plain: bool, as_json: bool) -> None:
    """Take a small language model from useless to good at a job, on this machine, without a key.

    A model of 135 million parameters learns the commands of a house: verified examples go into its skill, what it then
    does becomes weights, a certificate proves the gain, and the gateway serves the result, measured again through the
    official client. The model is fetched once, with pip. Ctrl-C at any point; the same command goes on.
    """
    if scripted:
        _scripted(folder or Path("whet-demo-scripted"), plain=plain, as_json=as_json)
        return
    if pulled(MODEL, data_folder(os.environ)) is None:
        fetched(MODEL, as_json=as_json)
    if grid_ctf:
        play_generations(folder or Path("whet-demo-grid-ctf"), plain=plain, as_json=as_json)
        return
    folder = folder or Path("whet-demo")
    write_demo(folder, "house.toml", as_json=as_json)
    project = load_for_training(folder / CONFIG, _QUICK if quick else ())
    done = _demonstrate(project, quick=quick, plain=plain, as_json=as_json)
    if as_json:
        print_json(done)
        return
    title("On test tasks that nothing was chosen by")
    print_stages(done.stages)
    _print_next(folder, done)


def _demonstrate(project: Project, *, quick: bool, plain: bool, as_json: bool) -> Demonstrated:
    chosen = choose_run(project.base_dir, project.settings(), None)
    click.echo(f"{chosen.note}\n", err=as_json)
    report, _ = train_at(project, chosen.path, plain=plain, log=as_json)
    write_page(chosen.path, report, "", chosen.path / PAGE)
    stages = asyncio.run(stages_of(project, chosen.path, report))
    if not as_json:
        paragraph(verdict_line(report))
    if quick or report.best == report.start:
        return Demonstrated(project.base_dir, report.run, tuple(stages), "", "")
    proof = _proven(project, chosen.path, report, plain=plain, log=as_json)
    record = _published(project, chosen.path, err=as_json)
    click.echo("asking `whet serve` the same test tasks, by the official client", err=as_json)
    stages.append(asyncio.run(_served(project, chosen.path, record)))
    _compare(stages[-2], stages[-1], err=as_json)
    return Demonstrated(project.base_dir, report.run, tuple(stages), proof, record)


def _incumbent(project: Project, report: Report) -> str:
    """Whatever is active is what must be beaten; where nothing is, or this policy itself, the bare model."""
    with opened() as registry:
        active = registry.resolve(project.world.name, project.models.base("target", project.config.target))
        return "start" if active is None or active.policy == report.best else ACTIVE


def _proven(project: Project, run: Path, report: Report, *, plain: bool, log: bool) -> str:
    """What a certificate says of the gain; empty if there is none. Going on with a demonstration is no new attempt."""
    best = stored_policies(run)[report.best]
    if before := proofs_in(run, best):
        found = read_certificate(before[0].body)
        return _told(f"certified before: {100 * found.gain:+.1f} points on {found.played} tasks", err=log)
    over = _incumbent(project, report)
    _told(f"proving the gain over {over}, on tasks that nobody selected on", err=log)
    try:
        finding = certified(project.base_dir, run, samples=1, over=over, plain=plain, log=log)
    except InputError as made_before:
        _told(made_before.message, err=log)
        return ""
    _told(finding.reason, err=log)
    return finding.reason if finding.certificate else ""


def _told(line: str, *, err: bool) -> str:
    click.echo(line, err=err)
    return line


def _published(project: Project, run: Path, *, err: bool) -> str:
    """By force only where nothing was proven, or where something else is active that it was not compared with."""
    with opened() as registry:
        record = registry.publish(draft_of(project, run, registry, note="whet demo"))
        try:
            done = registry.activate(record.id)
        except InputError as unproven:
            click.echo(f"{unproven.message}; it is activated by force for this demonstration", err=err)
            done = registry.activate(record.id, force=True)
        click.echo(f"published and active: {record.id} for {done.world} on {record.base.name}", err=err)
        return record.id


def _compare(measured: StageLine, served: StageLine, *, err: bool) -> None:
    """What users get must be what was measured, but for chance."""
    apart = measured.interval.low > served.interval.high or served.interval.low > measured.interval.high
    if apart:
        said = f"FAULT: {measured.rate:.3f} was measured and {served.rate:.3f} is served; that is not chance"
        click.secho(said, fg="red", err=err)


async def _served(project: Project, folder: Path, record: str) -> StageLine:
    tasks = project.tasks(Split.TEST)
    async with gateway_for(project.config.target.model, folder / "gateway.log") as address:
        played = await play_through(address, project.world, tasks)
        timed = await play_through(address, project.world, tasks[:TIMED], at_once=1)
    seconds = sum(each for _, each in timed) / len(timed)
    return stage_line("through gateway", [one for one, _ in played], seconds, record)


def _print_next(folder: Path, done: Demonstrated) -> None:
    click.secho("\nTry next", bold=True)
    if done.record:
        click.echo("  whet serve                          an OpenAI-compatible server: model = 'house_commands'")
    else:
        click.echo("  whet demo                           the rest: weights, a certificate, a server")
    click.echo(f"  whet show -C {folder}              what was tried, kept, and what it cost")
    click.echo("  whet init my-project                a project of your own to start from")
    click.echo(f"\nThe report is {folder / 'runs' / done.run / PAGE}.")


def _scripted(folder: Path, *, plain: bool, as_json: bool) -> None:
    """The agent and its coach are functions (models.py says how), the rest is as with real models."""
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
    click.secho("\nTry next", bold=True)
    click.echo(f"  cd {folder}")
    click.echo("  whet show --step 1                  one step in full: reasons, edits, ruling")
    click.echo("  whet eval --compare start best      the gain, measured task by task")
    click.echo("  whet train --set train.seed=2       another run, by another chance")
