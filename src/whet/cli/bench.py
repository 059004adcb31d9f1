"""`whet bench skill`: whet beside other trainers of skills, on your tasks, your models and one budget."""

from __future__ import annotations

from pathlib import Path

import click
import msgspec

from whet.cli.loading import config_file, load_for_training, load_project
from whet.cli.numbers import interval, share, signed_interval
from whet.cli.options import config_argument, examples, json_option, plain_option, set_option
from whet.cli.output import number, paragraph, print_json, print_table, text, title
from whet.cli.working import work_on
from whet.core import InputError
from whet.peers import PEERS, Compared, Comparison, compare_trainers, find_peers
from whet.peers.comparing import summarise
from whet.training import Monitor, Project
from whet.training.folder import RUNS


class Outcome(msgspec.Struct, frozen=True):
    budget: int
    trainers: tuple[Comparison, ...]
    trainings: tuple[Compared, ...]


@click.group("bench", epilog=examples("whet bench skill --peer gepa=/tmp/gepa/bin/python"))
def command() -> None:
    """Compare with other systems, on tasks of your own."""


@command.command(
    "skill",
    epilog=examples(
        "whet bench skill --budget 600 --seeds 3 --peer gepa=/tmp/gepa/bin/python",
        "whet bench skill --json",
    ),
)
@config_argument
@click.option(
    "--peer",
    "peers",
    metavar="NAME=PYTHON",
    multiple=True,
    help=f"A trainer ({', '.join(PEERS)}) and the Python that it is installed in. Default: what is beside whet.",
)
@click.option("--budget", type=click.IntRange(1), default=1000, show_default=True, help="Calls of each training.")
@click.option("--seeds", type=click.IntRange(1), default=3, show_default=True, help="Trainings by each trainer.")
@set_option
@plain_option
@json_option
def skill(
    config: Path,
    peers: tuple[str, ...],
    budget: int,
    seeds: int,
    overrides: tuple[str, ...],
    plain: bool,
    as_json: bool,
) -> None:
    """Train with whet and with its peers on CONFIG's tasks (whet.toml), and test what each ships.

    Plays and optimizer calls go through whet for all of them, so the models, the tasks and the budget in calls are the
    same, and what each spent is known. Everything is kept in runs/bench: the same command goes on. A peer lives in an
    environment of its own, such as: python -m venv /tmp/gepa && /tmp/gepa/bin/pip install gepa==0.1.4
    """
    found = find_peers(peers)
    if not found:
        wanted = ", ".join(PEERS.values())
        raise InputError(
            "no peer is installed beside whet", hint=f"Name one by --peer NAME=PYTHON; there are: {wanted}."
        )
    project = load_for_training(config, overrides)

    def prepared(seed: int, calls: int | None) -> Project:
        cap = () if calls is None else (f"budget.calls={calls}",)
        return load_project(config, (*overrides, f"train.seed={seed}", "train.test=false", *cap))

    folder = (config_file(config).parent / RUNS / "bench" / "skill").absolute()
    numbers = [project.config.train.seed + more for more in range(seeds)]

    async def work(monitor: Monitor) -> list[Compared]:
        return await compare_trainers(prepared, found, seeds=numbers, budget=budget, folder=folder, monitor=monitor)

    trainings, _ = work_on(work, project.clock, plain=plain, log=as_json)
    outcome = Outcome(budget, tuple(summarise(trainings)), tuple(trainings))
    print_json(outcome) if as_json else _print(outcome)


def _print(outcome: Outcome) -> None:
    title(f"Held-out test tasks, after at most {outcome.budget} calls of training")
    print_table(
        (
            text("trainer"),
            text("version"),
            number("seeds"),
            number("passed"),
            number("95% interval"),
            number("calls"),
            number("tokens"),
            number("usd"),
            number("seconds"),
        ),
        [
            (
                one.trainer,
                one.version,
                str(one.seeds),
                share(one.rate),
                interval(one.interval),
                f"{one.calls:,}",
                f"{one.tokens:,}",
                f"{one.usd:.4f}",
                f"{one.seconds:.1f}",
            )
            for one in outcome.trainers
        ],
    )
    for one in outcome.trainers:
        if one.behind_interval is not None:
            ahead = f"{one.behind:+.3f} (95% interval {signed_interval(one.behind_interval)})"
            paragraph(f"whet against {one.trainer}, seed by seed: {ahead}")
    if any(one.seeds < 2 for one in outcome.trainers):
        paragraph("One seed says little about a trainer: use --seeds 3 or more.")
