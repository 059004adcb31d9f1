"""`whet demo --grid-ctf`: an agent teaches itself a game, beside searches without a model that play as often."""

from __future__ import annotations

from pathlib import Path
from random import Random

import click
import msgspec

from whet.cli.demonstrating import write_demo
from whet.cli.loading import load_for_training
from whet.cli.numbers import interval, share
from whet.cli.options import CONFIG
from whet.cli.output import number, paragraph, print_json, print_table, text, title
from whet.cli.train import train_at
from whet.core import Split
from whet.gate import Interval
from whet.store import RunReader
from whet.training import Project, Report, choose_run, verdict_line
from whet.training.folder import STORE_FILE
from whet.worlds.games.searching import SEARCHES, mean_score
from whet.worlds.games.strategies import seed_of

_SEARCHERS = 20
"""Searches of each kind, by seeds of their own; their mean is told."""


class GenerationLine(msgspec.Struct, frozen=True):
    """What a generation began from: the play that it learned from."""

    generation: int
    mean: float
    """Of all tries; what is not valid counts 0."""
    interval: Interval
    best: float
    valid: float
    diversity: float
    accepted: bool


class SearchLine(msgspec.Struct, frozen=True):
    search: str
    calls: int
    score: float
    """Mean on the test seeds, over searches by several seeds."""


class Generations(msgspec.Struct, frozen=True):
    run: str
    generations: tuple[GenerationLine, ...]
    start: float | None
    """Mean score of the starting policy on the test seeds."""
    best: float | None
    searches: tuple[SearchLine, ...]


def play_generations(folder: Path, *, plain: bool, as_json: bool) -> None:
    write_demo(folder, "grid_ctf.toml", as_json=as_json)
    project = load_for_training(folder / CONFIG)
    chosen = choose_run(project.base_dir, project.settings(), None)
    click.echo(f"{chosen.note}\n", err=as_json)
    report, _ = train_at(project, chosen.path, plain=plain, log=as_json)
    done = generations_of(project, chosen.path, report)
    print_json(done) if as_json else _print(done, report, folder)


def generations_of(project: Project, folder: Path, report: Report) -> Generations:
    scores = {score.policy: score.soft for score in report.test}
    lines = [
        GenerationLine(
            record.training.generation,
            record.training.mean,
            record.training.interval,
            record.training.best,
            record.training.valid,
            record.training.diversity,
            record.ruling is not None and record.ruling.accepted,
        )
        for record in report.steps
        if record.training is not None
    ]
    calls = _verifier_calls(folder)
    return Generations(
        report.run, tuple(lines), scores.get(report.start), scores.get(report.best), tuple(_searched(project, calls))
    )


def _verifier_calls(folder: Path) -> int:
    """Every play whose verdict the training saw; those of the test tasks it did not."""
    with RunReader(folder / STORE_FILE) as reader:
        return sum(one.trajectory.split is not Split.TEST for one in reader.rollouts())


def _searched(project: Project, calls: int) -> list[SearchLine]:
    train, test = ([seed_of(task) for task in project.tasks(split)] for split in (Split.TRAIN, Split.TEST))
    lines: list[SearchLine] = []
    for name, search in SEARCHES.items():
        found = [search(train, calls, Random(seed)) for seed in range(_SEARCHERS)]
        mean = sum(mean_score(one.strategy, test) for one in found) / len(found)
        lines.append(SearchLine(name, found[0].calls, mean))
    return lines


def _print(done: Generations, report: Report, folder: Path) -> None:
    click.echo("")
    paragraph(verdict_line(report))
    title("What each generation learned from")
    columns = (
        number("generation"),
        number("mean"),
        text("95% interval"),
        number("best"),
        number("valid"),
        number("distinct"),
        text("kept"),
    )
    print_table(
        columns,
        [
            (
                str(line.generation),
                share(line.mean),
                interval(line.interval),
                share(line.best),
                share(line.valid),
                share(line.diversity),
                "yes" if line.accepted else "no",
            )
            for line in done.generations
        ],
    )
    title("On test seeds")
    rows = [("bare model", "-", share(done.start)), ("after the generations", "-", share(done.best))]
    rows += [(line.search, str(line.calls), share(line.score)) for line in done.searches]
    print_table((text("who"), number("verifier calls"), number("mean score")), rows)
    click.secho("\nTry next", bold=True)
    click.echo(f"  whet show -C {folder}                 what was tried, kept, and what it cost")
    click.echo(f"  whet report -C {folder}               the same as a page")
    click.echo("  whet demo                             a job in words, with a skill, a certificate and a server")
