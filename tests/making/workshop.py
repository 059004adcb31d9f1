"""A making in this process: an author that is told beforehand where it goes wrong, and all that it needs around it."""

from __future__ import annotations

import copy
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from scripted_optimizer import Known, stage_of

from whet.core import ModelRef, ModelReply, ModelRequest, Sampling
from whet.making import Made, Maker, Order, make_worlds
from whet.models import Caps, Ledger, Places, RecordedModel, RoleSettings, ScriptedSender
from whet.store import open_run
from whet.testing import FakeClock
from whet.training import Monitor
from whet.training.monitor import Silent

THEME = "a public library"


class Author:
    """Gives the wrong answers of a stage in their order, and then the good one. Of tasks, the first is answered so."""

    def __init__(self, known: Known, wrong: Mapping[str, Sequence[Any]] | None = None, *, always: str = "") -> None:
        self.known = known
        self.asked: list[ModelRequest] = []
        self._wrong = {stage: list(answers) for stage, answers in (wrong or {}).items()}
        self._always = always
        """The stage whose last wrong answer is repeated for ever."""

    def __call__(self, request: ModelRequest) -> ModelReply | str:
        self.asked.append(request)
        stage = stage_of(request)
        wrong = self._wrong.get(stage, [])
        answer: Any = None
        if wrong and self.known.task_of(request) == 0:
            answer = wrong[0] if stage == self._always and len(wrong) == 1 else wrong.pop(0)
        if answer is None:
            answer = self.known.answer(request)
        return answer if isinstance(answer, str | ModelReply) else json.dumps(answer)

    def of(self, stage: str) -> list[ModelRequest]:
        """What it was asked at a stage, of tasks the first."""
        return [one for one in self.asked if stage_of(one) == stage and self.known.task_of(one) == 0]

    def told(self, stage: str) -> list[str]:
        """What was said to each of its wrong answers."""
        return [request.messages[-1].text for request in self.of(stage)[1:]]


class TwoAuthors:
    """Two scenarios: the second is proposed where the first is there already."""

    def __init__(self, first: Known, second: Known) -> None:
        self.first, self.second = Author(first), Author(second)

    @property
    def asked(self) -> list[ModelRequest]:
        return [*self.first.asked, *self.second.asked]

    def __call__(self, request: ModelRequest) -> ModelReply | str:
        first, second = (f"{mark} {self.first.known.name}" for mark in ("-", "## The application:"))
        text = request.messages[0].text
        is_first = first not in text if stage_of(request) == "scenario" else second in text
        return (self.first if is_first else self.second)(request)


async def make(
    folder: Path, author: Any, order: Order, *, caps: Caps | None = None, monitor: Monitor | None = None
) -> Made:
    """One start of a making: a process's worth of it, with the folder's own store."""
    clock = FakeClock()
    (folder / ".making").mkdir(parents=True, exist_ok=True)
    store = open_run(folder / ".making" / "run.db", clock)
    try:
        model = RecordedModel(
            "optimizer",
            ModelRef("scripted", "author"),
            ScriptedSender(author),
            store=store,
            ledger=Ledger(caps or Caps(), store.spending(), clock),
            places=Places(8, clock),
            clock=clock,
            price=lambda usage: 0,
            settings=RoleSettings(retries=0),
        )
        return await make_worlds(order, folder, Maker(model, Sampling(16_000), store, clock, monitor or Silent()))
    finally:
        await store.aclose()


def files_in(folder: Path) -> dict[str, bytes]:
    """What whoever plays the worlds sees."""
    return {path.name: path.read_bytes() for path in sorted(folder.iterdir()) if path.is_file()}


def changed(value: Any, *place: Any, to: Any) -> Any:
    """A copy with another value at a place."""
    made = copy.deepcopy(value)
    above = made
    for key in place[:-1]:
        above = above[key]
    above[place[-1]] = to
    return made
