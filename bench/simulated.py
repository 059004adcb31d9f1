"""The simulated student and coach behind the mock server, and trainings of them. Needs whet's own environment."""

from __future__ import annotations

from typing import Any

from whet.testing.project import asked_of
from whet.testing.simulation import play_both


def answer(messages: list[dict[str, Any]], seed: int | None) -> str:
    return play_both(asked_of({"messages": messages, "seed": seed}))
