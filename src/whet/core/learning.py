"""Where in a training something happens."""

from __future__ import annotations

import msgspec


class Step(msgspec.Struct, frozen=True):
    """Where in the training a proposal is made. `number` counts from 1 over the whole run."""

    number: int
    total: int
    epoch: int
    key: bytes
    """Names the step within its run: chance and calls that belong to it are derived from here."""
