"""Asks the optimizer model, and does not give up at the first unusable answer."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeVar

import msgspec

from whet.core import Model, ModelRequest, Purpose, Sampling, assistant, content_key, seed_from, user
from whet.core.prompts import fill, load_prompt
from whet.learners.skill.answers import SCHEMAS, read_answer

A = TypeVar("A", bound=msgspec.Struct)

_PROMPTS = "whet.learners.skill.prompts"


class Optimizer:
    """The optimizer model for one step. `fallbacks` gathers what could not be used."""

    def __init__(self, model: Model, sampling: Sampling, step: bytes) -> None:
        self._model = model
        self._sampling = sampling
        self._step = step
        self._unusable: dict[str, str] = {}

    @property
    def fallbacks(self) -> tuple[str, ...]:
        """In the order of what was asked, not of when it failed."""
        return tuple(self._unusable[name] for name in sorted(self._unusable))

    async def ask(
        self, purpose: Purpose, inputs: Mapping[str, str], kind: type[A], *, place: str, instead: str
    ) -> A | None:
        """The answer, asked for once more if it cannot be used; then None, and `instead` says what is done.

        `place` tells apart calls of one purpose within the step.
        """
        salt = content_key("optimizer", self._step, purpose, place)
        messages = (user(fill(load_prompt(_PROMPTS, purpose), inputs)),)
        problem = ""
        for again in range(2):
            request = ModelRequest(messages, sampling=self._sampling, seed=seed_from(salt, again), schema=SCHEMAS[kind])
            reply = await self._model.complete(request, purpose=purpose, salt=salt)
            try:
                return read_answer(reply.text, kind)
            except ValueError as error:
                problem = str(error)
            complaint = fill(load_prompt(_PROMPTS, "ask_again"), {"problem": problem})
            messages = (*messages, assistant(reply.text), user(complaint))
        self._unusable[f"{purpose} {place}"] = f"{purpose} {place}: unusable twice ({problem}); {instead}"
        return None
