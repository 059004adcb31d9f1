"""A scorer that is the user's own Python function. It runs in this process, as trusted as whet itself."""

from __future__ import annotations

from pathlib import Path

import msgspec

from whet.core import ConfigError, Json, Verdict
from whet.project import find, is_reference
from whet.worlds.calling import Hook
from whet.worlds.scorers import Question
from whet.worlds.verdicts import as_verdict, source_of

OFFERED = ("answer", "reference", "task", "row")


class PythonFunction(msgspec.Struct, frozen=True, tag_field="use", tag="python", forbid_unknown_fields=True):
    """A function of yours: `def score(answer, reference)` gives True or False, a score from 0 to 1, or a Verdict."""

    function: str
    """Where it is: "file.py:function" or "package.module:function". It can ask for answer, reference, task and row."""
    pass_mark: float = 1.0
    """Passed at this score or more."""
    trusted: bool = True
    """Whether it may run in whet's own process. false: in the sandbox; then its file may import Python's library,
    what is installed beside whet, and nothing of the project."""

    def __post_init__(self) -> None:
        if not 0 < self.pass_mark <= 1:
            raise ValueError("pass_mark is above 0 and at most 1")


class FunctionScorer:
    wants_row = True

    def __init__(self, settings: PythonFunction, base_dir: Path) -> None:
        where = "world.scorer.function"
        if not is_reference(settings.function):
            raise ConfigError(f"{where}: {settings.function!r} is no place", hint='Write it as "file.py:function"')
        module, function = find(settings.function, base_dir, where=where)
        if not callable(function):
            raise ConfigError(f"{where}: {settings.function} names no function", hint='Write it as "file.py:function"')
        self._hook = Hook(function, OFFERED, settings.function)
        self._pass_mark = settings.pass_mark
        self.content: Json = [
            "python 1",
            source_of(module.__file__),
            settings.function.rpartition(":")[2],
            settings.pass_mark,
        ]

    def references(self, answer: Json) -> tuple[Json, ...]:
        return () if answer is None else (answer,)

    def problem(self, references: tuple[Json, ...], choices: tuple[str, ...]) -> str:
        return "the answer is missing" if "reference" in self._hook.wants and not references else ""

    async def score(self, question: Question, answer: str) -> Verdict:
        reference = question.references[0] if question.references else None
        judged = await self._hook(answer=answer, reference=reference, task=question.task, row=question.row)
        return as_verdict(judged, self._pass_mark)

    def known_good(self, question: Question) -> str | None:
        return None
