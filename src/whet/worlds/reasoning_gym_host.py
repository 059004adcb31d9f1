"""What scores answers of reasoning_gym in the sandbox: imported by the sandbox's own processes only."""

from __future__ import annotations

import math
import os
from typing import Any

import msgspec


class Asked(msgspec.Struct, frozen=True):
    """An answer, and the task that it is for."""

    generator: str
    config: dict[str, Any]
    seed: int
    answer: str


class Scored(msgspec.Struct, frozen=True):
    score: float = 0.0
    unreadable: str = ""
    """Why the scorer could make nothing of the answer."""


class ScoringHost:
    """See `whet.sandbox`: the package is loaded once, in the template, and each answer has a fork of it."""

    def __init__(self, settings: object) -> None:
        self._create: Any = None

    def load(self) -> None:
        # One of the package's own imports wants a place for its settings.
        os.environ["MPLCONFIGDIR"] = os.getcwd()
        os.environ["MPLBACKEND"] = "agg"
        from reasoning_gym import create_dataset  # pyright: ignore[reportMissingTypeStubs, reportUnknownVariableType]

        self._create = create_dataset

    def start(self, scratch: str) -> None:
        pass

    def answer(self, request: bytes) -> bytes:
        asked = msgspec.json.decode(request, type=Asked)
        drawn = self._create(asked.generator, seed=asked.seed, size=1, **asked.config)
        entry = drawn[0]
        try:
            score = float(drawn.score_answer(asked.answer, entry))
        except Exception as error:  # noqa: BLE001 (scorers raise anything at what they cannot read)
            return msgspec.json.encode(Scored(unreadable=type(error).__name__))
        return msgspec.json.encode(Scored(score if math.isfinite(score) else 0.0))
