"""Bars on a terminal. It draws what `Progress` counts, and decides nothing."""

from __future__ import annotations

from types import TracebackType

from rich.console import Console, Group, RenderableType
from rich.live import Live as RichLive
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from whet.cli.progress import Progress
from whet.core import Clock
from whet.training import Stage

_REDRAWS_A_SECOND = 6
_MOST_STAGES = 4
_WIDEST_NAME = 22


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
        lines: list[RenderableType] = [_one_line(self.headline(), "bold")]
        if self.steps:
            lines.append(_bar_row("steps", max(0, self.step - 1), self.steps))
        lines += [_stage_row(stage) for stage in self.stages[:_MOST_STAGES]]
        if len(self.stages) > _MOST_STAGES:
            lines.append(_one_line(f"and {len(self.stages) - _MOST_STAGES} more", "dim"))
        lines += [_one_line(text, "") for text in (self.scores(), self.spending()) if text]
        return Group(*lines)


def _stage_row(stage: Stage) -> RenderableType:
    return _bar_row(stage.name, stage.done, stage.total)


def _bar_row(name: str, done: int, total: int) -> RenderableType:
    row = Table.grid(padding=(0, 1), expand=True)
    row.add_column(width=_WIDEST_NAME, no_wrap=True, overflow="ellipsis")
    row.add_column(ratio=1, min_width=4)
    row.add_column(justify="right", no_wrap=True, width=9)
    row.add_row(name, ProgressBar(total=max(1, total), completed=min(done, total)), f"{done}/{total}")
    return row


def _one_line(text: str, style: str) -> Text:
    return Text(text, style, no_wrap=True, overflow="ellipsis")
