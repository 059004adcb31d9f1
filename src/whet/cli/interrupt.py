"""Ctrl-C: once ends a training cleanly, twice ends it at once."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
import threading
from collections.abc import Callable, Generator
from contextlib import contextmanager
from types import FrameType
from typing import Any, NoReturn

import click

from whet.cli.boundary import NO
from whet.cli.numbers import plural
from whet.core import RunStopped
from whet.models import Ledger


class Interrupts:
    """The first Ctrl-C lets the calls in flight end and grants no more; from then on Ctrl-C is Python's own again.

    The handler is the interpreter's and not the loop's: the loop's would wait for code that holds up the loop, such as
    a world that never returns, and the second Ctrl-C would then not be at once.
    """

    def __init__(self, tell: Callable[[str], None]) -> None:
        self._tell = tell
        self._reason = RunStopped("interrupted by Ctrl-C", hint="Nothing is lost: the same command goes on.")
        self._ledger: Ledger | None = None
        self._loop: asyncio.AbstractEventLoop | None = None

    def arm(self, ledger: Ledger) -> None:
        """From now on there is something to end cleanly. Called on the loop."""
        self._ledger = ledger
        self._loop = asyncio.get_running_loop()
        self._loop.set_exception_handler(_without_ctrl_c)
        if threading.current_thread() is threading.main_thread():
            signal.signal(signal.SIGINT, self._first)

    @contextmanager
    def restored(self) -> Generator[None]:
        """Around the loop: whoever handled Ctrl-C before does so again after it."""
        before = signal.getsignal(signal.SIGINT)
        try:
            yield
        finally:
            if threading.current_thread() is threading.main_thread():
                signal.signal(signal.SIGINT, before)

    def _first(self, number: int, frame: FrameType | None) -> None:
        signal.signal(signal.SIGINT, signal.default_int_handler)
        if self._loop is not None:
            self._loop.call_soon_threadsafe(self._stop)

    def _stop(self) -> None:
        if self._ledger is not None:
            waiting = plural(self._ledger.in_flight, "call")
            self._tell(f"stopping: waiting for {waiting} in flight; Ctrl-C again stops at once")
            self._ledger.stop(self._reason)


def leave_at_once() -> NoReturn:
    """End the process after a second Ctrl-C.

    The interpreter's own end would let what Ctrl-C struck in the middle complain; the store needs no goodbye.
    """
    click.echo("whet: stopped at once. The same command goes on; only calls in flight are lost.", err=True)
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(NO)


def _without_ctrl_c(loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
    """A second Ctrl-C that strikes inside a task is told once, by us, and not again as that task's own error."""
    if not isinstance(context.get("exception"), KeyboardInterrupt):
        loop.default_exception_handler(context)


async def asked_to_end() -> None:
    """Until Ctrl-C, or being asked to end. From then on Ctrl-C is Python's own again, and ends at once."""
    loop = asyncio.get_running_loop()
    asked = asyncio.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, asked.set)
    try:
        await asked.wait()
    finally:
        for number in (signal.SIGINT, signal.SIGTERM):
            loop.remove_signal_handler(number)
