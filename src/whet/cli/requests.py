"""What somebody sees of a server's requests: one line that counts on a terminal, plain lines in a log."""

from __future__ import annotations

from collections.abc import Mapping
from types import TracebackType
from typing import TYPE_CHECKING

import click
from rich.console import Console
from rich.live import Live
from rich.text import Text

from whet.cli.numbers import plural
from whet.cli.progress import is_live
from whet.core import Clock
from whet.serving.gateway import Done

if TYPE_CHECKING:
    from whet.serving.gateway.turnstile import Turnstile

_OURS = 500
"""From this status on it was not the caller's fault."""


class Log:
    """Plain lines: what failed at once, and how many there were once in a while."""

    every = 10.0
    """Seconds between two ticks."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._turnstile: Turnstile | None = None
        self._told = 0
        self.requests = 0
        self.failed = 0
        self.last = 0.0

    def __enter__(self) -> Log:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        pass

    def show(self, turnstile: Turnstile) -> None:
        self._turnstile = turnstile

    def done(self, done: Done) -> None:
        self.requests += 1
        self.last = done.seconds
        if done.status >= _OURS:
            self.failed += 1
            self.line(f"{done.labels.model or done.endpoint}: {done.status} after {done.seconds:.2f} s")

    def tick(self) -> None:
        if self.requests != self._told:
            self._told = self.requests
            self.line(self.counted())

    def line(self, text: str) -> None:
        click.echo(text, err=True)

    def counted(self) -> str:
        parts = [plural(self.requests, "request"), *([f"{self.failed} failed"] if self.failed else [])]
        if self._turnstile is not None:
            parts += [f"{self._turnstile.inside} under way", f"{self._turnstile.waiting} waiting"]
        return ", ".join([*parts, *([f"the last in {self.last:.2f} s"] if self.requests else [])])


class Screen(Log):
    """One line that changes, below those that stay."""

    every = 0.25

    def __init__(self, clock: Clock, console: Console | None = None) -> None:
        super().__init__(clock)
        self._console = console or Console(highlight=False)
        self._live = Live(Text(""), console=self._console, auto_refresh=False, transient=True)

    def show(self, turnstile: Turnstile) -> None:
        super().show(turnstile)
        self._live.start()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._live.stop()

    def tick(self) -> None:
        self._live.update(Text(self.counted(), "bold", overflow="ellipsis", no_wrap=True), refresh=True)

    def line(self, text: str) -> None:
        self._console.print(Text(text))


class Lines(Log):
    """Each request as a line of JSON."""

    def done(self, done: Done) -> None:
        super().done(done)
        click.echo(_json(done))

    def tick(self) -> None:
        pass


def _json(done: Done) -> str:
    import msgspec

    return msgspec.json.encode(done).decode()


def log_for(environ: Mapping[str, str], clock: Clock, *, plain: bool, as_json: bool) -> Log:
    if as_json:
        return Lines(clock)
    return Screen(clock) if is_live(environ, plain=plain) else Log(clock)
