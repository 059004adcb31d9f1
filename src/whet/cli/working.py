"""Runs something long: shows how far it is, and ends it cleanly at Ctrl-C."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any, TypeVar

from whet.cli.interrupt import Interrupts, leave_at_once
from whet.cli.progress import Shown, monitor
from whet.core import Clock
from whet.models import Ledger
from whet.training import Monitor, Stage

T = TypeVar("T")

Work = Callable[[Monitor], Coroutine[Any, Any, T]]


class _Armed:
    """Passes everything on, and arms Ctrl-C as soon as there is a ledger that can refuse calls."""

    def __init__(self, shown: Shown, interrupts: Interrupts) -> None:
        self._shown = shown
        self._interrupts = interrupts

    def started(self, run: str, steps: int, ledger: Ledger) -> None:
        self._shown.started(run, steps, ledger)
        self._interrupts.arm(ledger)

    def stage(self, name: str, total: int) -> Stage:
        return self._shown.stage(name, total)

    def ended(self, stage: Stage) -> None:
        self._shown.ended(stage)

    def score(self, current: float, best: float) -> None:
        self._shown.score(current, best)

    def line(self, text: str) -> None:
        self._shown.line(text)


def work_on(work: Work[T], clock: Clock, *, plain: bool, log: bool = False) -> tuple[T, Ledger | None]:
    """What `work` returned, and the ledger that it spent from. `log` keeps stdout free for what is asked for."""
    try:
        with monitor(clock, plain=plain, log=log) as shown:
            interrupts = Interrupts(shown.line)
            with interrupts.restored():
                done = asyncio.run(work(_Armed(shown, interrupts)))
            return done, shown.ledger
    except KeyboardInterrupt:
        leave_at_once()
