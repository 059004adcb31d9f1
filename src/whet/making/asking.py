"""Asks the optimizer for one part of a world, tries the answer, and tells it what is wrong, a few times.

Both are rows of the folder's store: what was answered, and what came of trying it. So a making that was ended goes on
with the same prompts, letter for letter, and tries nothing twice.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import Generic, TypeVar

import msgspec

from whet.core import (
    Clock,
    Finish,
    Model,
    ModelReply,
    ModelRequest,
    Purpose,
    Sampling,
    Solution,
    assistant,
    content_key,
    seed_from,
    user,
)
from whet.core.prompts import fill, load_prompt
from whet.making.answers import FORMS, read_answer
from whet.store import DecisionRow, RunStore

A = TypeVar("A", bound=msgspec.Struct)

PROMPTS = "whet.making.prompts"
TRIALS = "1"
"""Of how answers are tried: what an older way found is not taken for what this one finds."""
_LONGEST = 4000
_SHOWN_EARLIER = 300


class Stage(msgspec.Struct, Generic[A], frozen=True):
    """One part of a world: its prompt, and what is answered."""

    name: str
    """Also the prompt's."""
    kind: type[A]


class Trial(msgspec.Struct, frozen=True):
    """What came of trying an answer."""

    problem: str = ""
    """In words for the model; empty where nothing is wrong."""
    found: str = ""
    """What was seen that later stages are told."""
    damaged: tuple[Solution, ...] = ()
    """Of a verifier: the damaged solutions that it was tried on."""

    @classmethod
    def of(cls, problems: list[str], found: str = "") -> Trial:
        return cls("\n".join(f"- {problem}" for problem in problems)[:_LONGEST], found)


class Answered(msgspec.Struct, Generic[A], frozen=True):
    answer: A
    trial: Trial
    asked: int
    """How often, the last time included."""


class GivenUp(Exception):
    """A part that the model could not write in as many tries as it had."""


Try = Callable[[A], Awaitable[Trial]]


class Asker:
    """The optimizer, as a whole making speaks to it."""

    def __init__(self, model: Model, sampling: Sampling, store: RunStore, clock: Clock, corrections: int) -> None:
        self._model = model
        self._sampling = sampling
        self._store = store
        self._clock = clock
        self._corrections = corrections

    async def ask(
        self,
        stage: Stage[A],
        place: str,
        inputs: Mapping[str, str],
        trying: Try[A],
        *,
        given: str = "",
        again: Callable[[str], None] = lambda problem: None,
    ) -> Answered[A]:
        """The first answer that stands its trial. `place` tells apart questions of one stage; `given` is the content of
        what the trial depends on beside the answer; `again` hears why another answer is asked for.
        """
        salt = content_key("make", stage.name, place)
        question = user(fill(load_prompt(PROMPTS, stage.name), inputs))
        messages, problems = (question,), list[str]()
        for tries in range(self._corrections + 1):
            request = ModelRequest(
                messages, sampling=self._sampling, seed=seed_from(salt, tries), schema=FORMS.get(stage.kind)
            )
            reply = await self._model.complete(request, purpose=Purpose.MAKE, salt=salt)
            try:
                answer = read_answer(reply.text, stage.kind)
                trial = await self._tried(stage, place, given, answer, trying)
                if not trial.problem:
                    return Answered(answer, trial, tries + 1)
                problems.append(trial.problem)
            except ValueError as error:
                problems.append(self._unreadable(reply, error))
            if tries < self._corrections:
                again(problems[-1])
            # Only the last answer is shown: one that holds a whole program is long.
            messages = (question, assistant(reply.text), user(_correction(problems)))
        raise GivenUp(f"{stage.name}: {len(problems)} answers, none of them sound; of the last: {_line(problems[-1])}")

    async def _tried(self, stage: Stage[A], place: str, given: str, answer: A, trying: Try[A]) -> Trial:
        key = content_key("make trial", TRIALS, stage.name, given, msgspec.to_builtins(answer))
        known = self._store.decision(key, Trial)
        if known is not None:
            return known
        trial = await trying(answer)
        await self._store.write(DecisionRow(key, "make_trial", f"{stage.name} {place}", self._clock.wall(), trial))
        return trial

    def _unreadable(self, reply: ModelReply, error: ValueError) -> str:
        if reply.finish is Finish.LENGTH:
            return f"- it was cut off after {self._sampling.max_tokens} tokens (optimizer.max_tokens): write less"
        return f"- {error}"


def _correction(problems: list[str]) -> str:
    earlier = "\n".join(f"- {_line(problem)[:_SHOWN_EARLIER]}" for problem in problems[:-1])
    told = f"\n\nWhat was wrong with answers before it, and must not come back:\n{earlier}" if earlier else ""
    return fill(load_prompt(PROMPTS, "correct"), {"problem": problems[-1], "earlier": told})


def _line(problem: str) -> str:
    """In one line, for reports."""
    return "; ".join(line.removeprefix("- ") for line in problem.splitlines())[:400]
