"""Bars on a terminal. It draws what `Progress` counts, and decides nothing."""

from __future__ import annotations

from collections.abc import Callable
from types import TracebackType

from rich.console import Console, Group, RenderableType
from rich.live import Live as RichLive
from rich.padding import Padding
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from whet.cli.progress import Progress
from whet.cli.standing import Standing
from whet.core import Clock

_REDRAWS_A_SECOND = 6
_MOST_STAGES = 4
_NAME, _NAME_IF_NARROW, _NARROW = 22, 15, 60
_SPARE = 3
"""Columns left free at the end of a line: the terminal's own "^C" would otherwise begin a new one, and shift all."""


class Live(Progress):
    """Lines are printed above the bars, and the bars vanish at the end."""

    def __init__(self, clock: Clock, console: Console | None = None) -> None:
        super().__init__(clock)
        self._console = console or Console(highlight=False)
        self._live = RichLive(
            console=self._console,
            get_renderable=self.drawn,
            refresh_per_second=_REDRAWS_A_SECOND,
            transient=True,
            redirect_stdout=False,
            redirect_stderr=False,
        )

    def __enter__(self) -> Live:
        self._live.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._live.stop()

    def line(self, text: str) -> None:
        self._console.print(Text(text))

    def drawn(self) -> RenderableType:
        narrow = self._console.width < _NARROW
        lines: list[RenderableType] = [_one_line(self.headline(), "bold")]
        if self.steps:
            lines.append(_bar_row("steps", max(0, self.step - 1), self.steps, narrow=narrow))
        shown = self.stages[:_MOST_STAGES]
        lines += [_bar_row(stage.name, stage.done, stage.total, narrow=narrow) for stage in shown]
        if len(self.stages) > _MOST_STAGES:
            lines.append(_one_line(f"and {len(self.stages) - _MOST_STAGES} more", "dim"))
        lines += [_one_line(text, "") for text in (self.scores(), self.spending()) if text]
        return Group(*lines)


class StandingScreen:
    """A run that another process trains: steps above, where it stands below."""

    def __init__(self, lines_of: Callable[[Standing], list[str]], console: Console | None = None) -> None:
        self._lines_of = lines_of
        self._console = console or Console(highlight=False)
        self._live = RichLive(console=self._console, auto_refresh=False, transient=True)

    def __enter__(self) -> StandingScreen:
        self._live.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._live.stop()

    def line(self, text: str) -> None:
        self._console.print(Text(text))

    def standing(self, standing: Standing) -> None:
        head, *others = self._lines_of(standing)
        lines = [_one_line(head, "bold"), *(_one_line(text, "") for text in others)]
        self._live.update(Group(*lines), refresh=True)


def _bar_row(name: str, done: int, total: int, *, narrow: bool) -> RenderableType:
    row = Table.grid(padding=(0, 1), expand=True)
    row.add_column(width=_NAME_IF_NARROW if narrow else _NAME, no_wrap=True, overflow="ellipsis")
    row.add_column(ratio=1, min_width=4)
    row.add_column(justify="right", no_wrap=True, width=9)
    row.add_row(name, ProgressBar(total=max(1, total), completed=min(done, total)), f"{done}/{total}")
    return row


def _one_line(text: str, style: str) -> RenderableType:
    return Padding(Text(text, style, no_wrap=True, overflow="ellipsis"), (0, _SPARE, 0, 0))
