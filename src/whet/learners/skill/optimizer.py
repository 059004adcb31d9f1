"""Asks the optimizer model, and does not give up at the first unusable answer."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TypeVar

import msgspec

from whet.core import Model, ModelRequest, Purpose, Sampling, assistant, content_key, seed_from, user
from whet.core.prompts import fill, load_prompt, strip_header
from whet.learners.skill.answers import read_answer
from whet.learners.skill.schemas import answer_schema
from whet.learners.skill.settings import UpdateMode

A = TypeVar("A", bound=msgspec.Struct)

_PROMPTS = "whet.learners.skill.prompts"


class Prompts:
    """The prompts by name: the user's own where there is one, else whet's."""

    def __init__(self, folder: Path | None = None) -> None:
        self.own = (
            {path.stem: path.read_text(encoding="utf-8") for path in sorted(folder.glob("*.md"))} if folder else {}
        )

    def get(self, name: str) -> str:
        own = self.own.get(name)
        return load_prompt(_PROMPTS, name) if own is None else strip_header(own)


class Advisor(msgspec.Struct, frozen=True):
    """The optimizer model and how it is spoken to, for a whole training."""

    model: Model
    sampling: Sampling
    prompts: Prompts
    mode: UpdateMode
    notes: bool = False

    def at(self, key: bytes, memory: str = "") -> Optimizer:
        return Optimizer(self, key, memory)


class Optimizer:
    """The optimizer for one step. `fallbacks` gathers what could not be used."""

    def __init__(self, advisor: Advisor, step: bytes, memory: str = "") -> None:
        self._advisor = advisor
        self._step = step
        self._memory = memory
        self._unusable: dict[str, str] = {}

    @property
    def mode(self) -> UpdateMode:
        return self._advisor.mode

    @property
    def fallbacks(self) -> tuple[str, ...]:
        """In the order of what was asked, not of when it failed."""
        return tuple(self._unusable[name] for name in sorted(self._unusable))

    def prompt(self, name: str) -> str:
        return self._advisor.prompts.get(name)

    async def ask(
        self, purpose: Purpose, inputs: Mapping[str, str], kind: type[A], *, place: str, instead: str
    ) -> A | None:
        """The answer, asked for once more if it cannot be used; then None, and `instead` says what is done.

        `place` tells apart calls of one purpose within the step.
        """
        advisor = self._advisor
        salt = content_key("optimizer", self._step, purpose, place)
        told = fill(self.prompt(purpose), {"memory": section("What earlier epochs taught", self._memory), **inputs})
        messages = (user(told),)
        schema = answer_schema(kind, advisor.mode, notes=advisor.notes)
        problem = ""
        for again in range(2):
            request = ModelRequest(messages, sampling=advisor.sampling, seed=seed_from(salt, again), schema=schema)
            reply = await advisor.model.complete(request, purpose=purpose, salt=salt)
            try:
                return read_answer(reply.text, kind, advisor.mode)
            except ValueError as error:
                problem = str(error)
            complaint = fill(self.prompt("ask_again"), {"problem": problem})
            messages = (*messages, assistant(reply.text), user(complaint))
        self.fell_back(purpose, place, f"unusable twice ({problem}); {instead}")
        return None

    def fell_back(self, purpose: Purpose, place: str, why: str) -> None:
        """Note an answer that could not be used, and what was done instead."""
        named = f"{purpose} {place}".strip()
        self._unusable[named] = f"{named}: {why}"


def section(title: str, text: str) -> str:
    """An optional part of a prompt; what is empty leaves no trace."""
    return f"\n\n## {title}\n\n{text}" if text else ""
