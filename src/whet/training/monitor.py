"""What a training tells whoever watches it. It decides nothing."""

from __future__ import annotations

from typing import Protocol

import msgspec

from whet.models import Ledger


class Stage(msgspec.Struct):
    """One stage of the work under way: how much of it is done."""

    name: str
    total: int
    done: int = 0


class Monitor(Protocol):
    def started(self, run: str, steps: int, ledger: Ledger) -> None: ...

    def stage(self, name: str, total: int) -> Stage:
        """A stage begins; the caller counts `done` up."""
        ...

    def ended(self, stage: Stage) -> None: ...

    def score(self, current: float, best: float) -> None:
        """The scores on the selection tasks, whenever they are known anew."""
        ...

    def line(self, text: str) -> None:
        """Something to tell."""
        ...


class Silent:
    def started(self, run: str, steps: int, ledger: Ledger) -> None:
        pass

    def stage(self, name: str, total: int) -> Stage:
        return Stage(name, total)

    def ended(self, stage: Stage) -> None:
        pass

    def score(self, current: float, best: float) -> None:
        pass

    def line(self, text: str) -> None:
        pass
