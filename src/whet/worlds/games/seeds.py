"""Tasks that are seeds: each split has a range of its own, so growing one never reaches into another."""

from __future__ import annotations

from typing import Annotated

import msgspec

from whet.core import Split

RANGE = 1_000_000
"""Seeds of a split: train has 0 to 999,999, selection the next million, and so on."""

Size = Annotated[int, msgspec.Meta(ge=0, le=RANGE)]


class SeedSettings(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """How many tasks of each split, and from which place in the split's range."""

    train: Size = 40
    """Tasks to learn from."""
    selection: Size = 40
    """Tasks for the gate."""
    test: Size = 100
    """Tasks for the final report."""
    confirm: Size = 0
    """Tasks to confirm a certificate with."""
    first: Size = 0
    """Where in each split's range of a million seeds to begin: another place is another draw of all the tasks."""

    def __post_init__(self) -> None:
        if self.first + max(self.train, self.selection, self.test, self.confirm) > RANGE:
            raise ValueError(f"first and the size of a split together are at most {RANGE}")


def seeds(settings: SeedSettings, split: Split) -> range:
    sizes = dict(zip(Split, (settings.train, settings.selection, settings.test, settings.confirm), strict=True))
    begin = list(Split).index(split) * RANGE + settings.first
    return range(begin, begin + sizes[split])


def split_of(seed: int) -> Split:
    return list(Split)[seed // RANGE]
