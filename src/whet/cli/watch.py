"""`whet watch`: follow a run from its store while another process trains it."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import Protocol

import click

from whet.cli.loading import find_folder
from whet.cli.numbers import money, plural, share, short_count
from whet.cli.options import examples, plain_option, project_option, run_argument
from whet.cli.output import print_json
from whet.cli.progress import is_live
from whet.cli.standing import Standing, State, read_standing, report_of
from whet.cli.steps import in_one_line
from whet.core import Clock, SystemClock
from whet.store import RunReader
from whet.training import StepRecord
from whet.training.folder import STORE_FILE
from whet.training.telling import duration

_PAUSE = 0.5


class Screen(Protocol):
    """Where a run is shown: a line once said stays, the standing is replaced by the next."""

    def line(self, text: str) -> None: ...

    def standing(self, standing: Standing) -> None: ...


class Log:
    """Lines only: a new step is worth one, a new call is not."""

    def line(self, text: str) -> None:
        click.echo(text)

    def standing(self, standing: Standing) -> None:
        pass


Look = Callable[[], tuple[Standing, list[StepRecord]]]


@click.command("watch", epilog=examples("whet watch", "whet watch run-1 --plain"))
@run_argument
@project_option
@plain_option
@click.option("--json", "as_json", is_flag=True, help="Print where the run stands at its end, as JSON.")
def command(run: str | None, project: Path, plain: bool, as_json: bool) -> None:
    """Follow RUN (the latest without one) until nobody trains it any more.

    It reads the run's store and disturbs nobody; Ctrl-C ends the watching and not the training.
    """
    folder = find_folder(project, run)

    def look() -> tuple[Standing, list[StepRecord]]:
        with RunReader(folder / STORE_FILE) as reader:
            return read_standing(folder, reader, report_of(folder)), reader.decisions("step", StepRecord)

    with _screen(plain=plain, quiet=as_json) as screen:
        last = asyncio.run(follow(look, screen, SystemClock()))
    if as_json:
        print_json(last)
    else:
        click.echo(_ended(last))


async def follow(look: Look, screen: Screen, clock: Clock) -> Standing:
    """Show every step once, and where the run stands, until its writer is gone."""
    told = 0
    while True:
        standing, records = look()
        for record in records[told:]:
            screen.line(in_one_line(record))
        told = len(records)
        screen.standing(standing)
        if standing.state is not State.RUNNING:
            return standing
        await clock.sleep(_PAUSE)


def standing_lines(standing: Standing) -> list[str]:
    """Where a run stands, for a small place."""
    lineage = standing.lineage
    scores = (
        f"score {share(lineage.current_score)}, best {share(lineage.best_score)}, start {share(lineage.start_score)}"
    )
    doing = f"step {standing.steps + 1} under way" if standing.state is State.RUNNING else standing.state
    return [
        f"{standing.run}, {doing}, {duration(standing.seconds)}",
        f"{scores}, {plural(standing.rollouts, 'rollout')}",
        f"{money(standing.nanodollars)}, {short_count(standing.sent)} calls, {short_count(standing.tokens)} tokens",
    ]


class _Quiet(Log):
    def line(self, text: str) -> None:
        pass


def _screen(*, plain: bool, quiet: bool) -> AbstractContextManager[Screen]:
    if quiet:
        return nullcontext(_Quiet())
    if not is_live(os.environ, plain=plain):
        return nullcontext(Log())
    # Only a terminal needs it, and it is not small.
    from whet.cli.live import StandingScreen

    return StandingScreen(standing_lines)


def _ended(standing: Standing) -> str:
    score = f", best score {share(standing.lineage.best_score)}" if standing.lineage.best_score is not None else ""
    return f"{standing.run}: {standing.state}, {plural(standing.steps, 'step')}{score}"
