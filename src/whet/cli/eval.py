"""`whet eval`: play a split with a policy, or with two on the same tasks."""

from __future__ import annotations

from pathlib import Path

import click
import msgspec

from whet.cli.evaluating import Measured, Paired, measured, paired
from whet.cli.loading import load_project
from whet.cli.numbers import interval, share, signed_interval
from whet.cli.options import config_argument, examples, json_option, plain_option, run_option, set_option
from whet.cli.output import number, paragraph, print_json, print_table, text, title
from whet.cli.policies import policy_for
from whet.cli.working import work_on
from whet.core import Policy, Purpose, Split, Task, Trajectory
from whet.training import Monitor, Project, choose_run, open_workshop
from whet.training.judging import play_all


class Outcome(msgspec.Struct, frozen=True):
    run: str
    split: Split
    samples: int
    policies: tuple[Measured, ...]
    comparison: Paired | None


@click.command(
    "eval",
    epilog=examples(
        "whet eval --policy best",
        "whet eval --compare start best",
        "whet eval --policy active",
        "whet eval --policy draft/SKILL.md --split selection",
    ),
)
@config_argument
@click.option(
    "--policy",
    "name",
    metavar="NAME",
    default="start",
    show_default=True,
    help="start, best, last, active, the id of a published record, or a skill's path.",
)
@click.option(
    "--split", type=click.Choice([split.value for split in Split]), default=Split.TEST.value, show_default=True
)
@click.option("--compare", nargs=2, metavar="A B", help="Two policies on the same tasks, task by task.")
@click.option("--samples", type=click.IntRange(min=1), default=1, show_default=True, help="Tries at each task.")
@run_option
@set_option
@plain_option
@json_option
def command(
    config: Path,
    name: str,
    split: str,
    compare: tuple[str, str] | None,
    samples: int,
    run: str | None,
    overrides: tuple[str, ...],
    plain: bool,
    as_json: bool,
) -> None:
    """Play a split of CONFIG's world (whet.toml) with a policy: how many tasks pass, with 95% intervals, and by kind.

    What is played is kept in the run that goes with these settings, or in the run that --run names, so nothing is
    played twice, also not by a later training. Of --compare, the second is better only if the whole interval of the
    difference is above 0.
    """
    project = load_project(config, overrides)
    names = compare or (name,)
    chosen = choose_run(project.base_dir, project.settings(), run)
    policies = [policy_for(project, chosen.path, named) for named in names]
    tasks = project.tasks(Split(split))
    click.echo(chosen.note, err=as_json)
    played, _ = work_on(
        lambda monitor: _play(project, chosen.path, policies, names, tasks, samples, monitor),
        project.clock,
        plain=plain,
        log=as_json,
    )
    gate = project.config.gate
    outcome = Outcome(
        chosen.path.name,
        Split(split),
        samples,
        tuple(measured(named, found, gate) for named, found in zip(names, played, strict=True)),
        paired(played[0], played[1], gate) if compare else None,
    )
    print_json(outcome) if as_json else _print(outcome)


async def _play(
    project: Project,
    folder: Path,
    policies: list[Policy],
    names: tuple[str, ...],
    tasks: list[Task],
    samples: int,
    monitor: Monitor,
) -> list[list[list[Trajectory]]]:
    """By policy, then by try, in the order of the tasks."""
    async with open_workshop(project, folder) as workshop:
        monitor.started(folder.name, 0, workshop.ledger)
        played: list[list[list[Trajectory]]] = []
        for policy, name in zip(policies, names, strict=True):
            stage = monitor.stage(f"play, {name}", len(tasks) * samples)
            played.append(
                [
                    await play_all(workshop.engine, policy, tasks, stage, sample=sample, purpose=Purpose.ASSESS)
                    for sample in range(samples)
                ]
            )
            monitor.ended(stage)
        return played


def _print(outcome: Outcome) -> None:
    click.echo("")
    tries = f", {outcome.samples} tries at each task" if outcome.samples > 1 else ""
    click.secho(f"{outcome.split} tasks{tries}", bold=True)
    columns = (text("policy"), number("passed"), number("of"), number("rate"), text("95% interval"), number("credit"))
    print_table(
        columns,
        [
            (one.policy, str(one.passed), str(one.tries), share(one.rate), interval(one.interval), share(one.soft))
            for one in outcome.policies
        ],
    )
    _print_kinds(outcome)
    if outcome.comparison is not None:
        _print_comparison(outcome, outcome.comparison)


def _print_kinds(outcome: Outcome) -> None:
    kinds = outcome.policies[0].by_kind
    if len(kinds) < 2:
        return
    title("By kind")
    columns = (text("kind"), number("tries"), *(number(one.policy) for one in outcome.policies))
    print_table(
        columns,
        [
            (kind, str(score.count), *(share(one.by_kind[kind].hard) for one in outcome.policies))
            for kind, score in kinds.items()
        ],
    )


def _print_comparison(outcome: Outcome, found: Paired) -> None:
    before, after = (one.policy for one in outcome.policies)
    title(f"{after} against {before}, task by task")
    paragraph(
        f"difference {found.difference:+.3f} (95% interval {signed_interval(found.interval)}), "
        f"{len(found.fixed)} fixed, {len(found.broke)} broken, exact p {found.p:.2g}"
    )
    paragraph(found.said(before, after))
    if found.broke:
        paragraph(f"broken: {', '.join(found.broke[:10])}{' …' if len(found.broke) > 10 else ''}")
