"""What somebody sees while a training works: plain lines in a log, bars on a terminal."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from typing import Protocol

import click

from whet.cli.numbers import money, plural, share, short_count
from whet.core import Clock
from whet.models import Ledger
from whet.training import Monitor, Stage
from whet.training.telling import duration

_STEP = re.compile(r"step (\d+):")


class Progress:
    """Everything there is to show; it is counted here and drawn elsewhere."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self.run = ""
        self.steps = 0
        self.step = 0
        """The step under way, counted from 1; 0 before the first."""
        self.stages: list[Stage] = []
        self.current: float | None = None
        self.best: float | None = None
        self.ledger: Ledger | None = None
        self._began: list[float] = []
        self._was: tuple[int, int] = (0, 0)

    def started(self, run: str, steps: int, ledger: Ledger) -> None:
        self.run, self.steps, self.ledger = run, steps, ledger

    def stage(self, name: str, total: int) -> Stage:
        found = _STEP.match(name)
        if found is not None and int(found[1]) > self.step:
            self.step = int(found[1])
            self._began.append(self._clock.now())
        stage = Stage(name, total)
        self.stages.append(stage)
        return stage

    def ended(self, stage: Stage) -> None:
        # By identity: two stages of the same name and numbers are equal to each other.
        self.stages = [other for other in self.stages if other is not stage]

    def score(self, current: float, best: float) -> None:
        self.current, self.best = current, best

    def seconds_left(self) -> float | None:
        """From the time that the last few steps took: those before them may have come from the store at once."""
        recent = self._began[-6:]
        if len(recent) < 2 or not self.steps:
            return None
        per_step = (recent[-1] - recent[0]) / (len(recent) - 1)
        in_this_step = self._clock.now() - recent[-1]
        return max(0.0, per_step * (self.steps - self.step + 1) - in_this_step)

    def headline(self) -> str:
        parts = [self.run]
        if self.step:
            parts.append(f"step {self.step}/{self.steps}")
        left = self.seconds_left()
        if left is not None:
            parts.append(f"about {duration(left)} left")
        return ", ".join(part for part in parts if part)

    def scores(self) -> str:
        if self.current is None:
            return ""
        return f"score {share(self.current)}, best {share(self.best)}"

    def spending(self) -> str:
        ledger = self.ledger
        if ledger is None:
            return ""
        cap = "" if ledger.caps.usd is None else f" of ${ledger.caps.usd:g}"
        parts = [f"{money(ledger.nanodollars)}{cap}", f"{short_count(ledger.calls)} calls"]
        return ", ".join([*parts, f"{short_count(ledger.tokens)} tokens", f"{ledger.in_flight} in flight"])


class Plain(Progress):
    """Lines that hold no time and no colour, so that two logs can be compared."""

    def __init__(self, clock: Clock, *, log: bool = False) -> None:
        super().__init__(clock)
        self._log = log

    def line(self, text: str) -> None:
        click.echo(text, err=self._log)


class Shown(Monitor, Protocol):
    """A monitor that also tells what was spent."""

    @property
    def ledger(self) -> Ledger | None: ...


def is_live(environ: Mapping[str, str], *, plain: bool) -> bool:
    return not plain and sys.stdout.isatty() and environ.get("TERM", "") not in ("", "dumb")


@contextmanager
def monitor(clock: Clock, *, plain: bool, log: bool = False) -> Generator[Shown]:
    """Draws from here to the end of the block, on whatever stdout is; a log goes to stderr."""
    if log or not is_live(os.environ, plain=plain):
        yield Plain(clock, log=log)
        return
    # Only a terminal needs it, and it is not small.
    from whet.cli.live import Live

    with Live(clock) as live:
        yield live


def spent_line(ledger: Ledger) -> str:
    return f"{money(ledger.nanodollars)}, {plural(ledger.calls, 'call')}, {plural(ledger.tokens, 'token')}"
