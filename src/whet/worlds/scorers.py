"""How an answer is compared with the right one: settings of each scorer, and the scorers that are plain text functions.

A scorer is strict: what it cannot read for certain is wrong, with feedback that says why. Feedback is "reason: detail".
"""

from __future__ import annotations

import math
import re
from collections import Counter
from decimal import Decimal
from typing import Protocol, runtime_checkable

import msgspec

from whet.core import Json, Task, Verdict
from whet.worlds.quantities import Quantity, last_quantity, only_quantity
from whet.worlds.text import answer_line, as_text, final_answer, has_words, normalised, shorten, tokens, unified


class Question(msgspec.Struct, frozen=True):
    """What a scorer is given beside the answer."""

    task: Task
    text: str
    """The brief as the agent saw it; empty while tasks are listed."""
    references: tuple[Json, ...] = ()
    """Acceptable answers; any one will do."""
    choices: tuple[str, ...] = ()
    row: dict[str, Json] = {}
    """The rest of the task's line."""


class Scorer(Protocol):
    @property
    def wants_row(self) -> bool:
        """Whether it needs the rest of the task's line."""
        ...

    @property
    def content(self) -> Json:
        """What decides a verdict, for the world's fingerprint."""
        ...

    def references(self, answer: Json) -> tuple[Json, ...]:
        """The acceptable answers that the answer field of a task gives."""
        ...

    def problem(self, references: tuple[Json, ...], choices: tuple[str, ...]) -> str:
        """What is wrong with a task for this scorer, or nothing."""
        ...

    async def score(self, question: Question, answer: str) -> Verdict: ...

    def known_good(self, question: Question) -> str | None:
        """An answer that must pass."""
        ...


@runtime_checkable
class HoldingScorer(Scorer, Protocol):
    """A scorer that holds processes while it is used. They are started when first needed, and again after `aclose`."""

    async def aclose(self) -> None: ...


class Exact(msgspec.Struct, frozen=True, tag_field="use", tag="exact", forbid_unknown_fields=True):
    """The whole reply is the right answer, letter for letter; only space around it is free."""


class Normalised(msgspec.Struct, frozen=True, tag_field="use", tag="normalised", forbid_unknown_fields=True):
    """Equal without case, punctuation and articles. A last line "Answer: …" is taken for the answer."""


class F1(msgspec.Struct, frozen=True, tag_field="use", tag="f1", forbid_unknown_fields=True):
    """Overlap of words, as `soft`; passed at the threshold."""

    threshold: float = 1.0
    """Passed at this F1 or more. At 1.0 the words are the same in any order."""

    def __post_init__(self) -> None:
        if not 0 < self.threshold <= 1:
            raise ValueError("the threshold is above 0 and at most 1")


class Numeric(msgspec.Struct, frozen=True, tag_field="use", tag="numeric", forbid_unknown_fields=True):
    """The number of the reply: of its last line "Answer: …", else the only one in it. Scales and units count."""

    absolute: float = 0.0
    """How far off the answer may be."""
    relative: float = 0.0
    """The same as a share of the right answer: 0.01 is one percent. The larger of the two holds."""

    def __post_init__(self) -> None:
        if not (0 <= self.absolute < math.inf and 0 <= self.relative < math.inf):
            raise ValueError("tolerances are finite and at least 0")


class Regex(msgspec.Struct, frozen=True, tag_field="use", tag="regex", forbid_unknown_fields=True):
    """A regular expression: the task's answer, or one for all tasks."""

    pattern: str = ""
    """Left out: each task's answer is the pattern. Set: its last match, or that match's first group, is the answer."""
    full: bool = True
    """The whole reply must match, not a part of it. Only for patterns that are the task's answer."""
    ignore_case: bool = False
    """Upper and lower case are the same."""

    def __post_init__(self) -> None:
        try:
            re.compile(self.pattern)
        except re.error as error:
            raise ValueError(f"the pattern is not a regular expression: {error}") from error


class TextScorer:
    """What scorers share that compare the reply with each acceptable answer as text."""

    wants_row = False

    def references(self, answer: Json) -> tuple[Json, ...]:
        if answer is None:
            return ()
        return tuple(answer) if isinstance(answer, list) else (answer,)

    def problem(self, references: tuple[Json, ...], choices: tuple[str, ...]) -> str:
        if not references:
            return "the answer is missing"
        blank = any(isinstance(one, dict | list) or one is None or not as_text(one).strip() for one in references)
        return "the answer must be text or a number, or a list of them" if blank else ""

    async def score(self, question: Question, answer: str) -> Verdict:
        raise NotImplementedError

    def known_good(self, question: Question) -> str | None:
        return as_text(question.references[0]) if question.references else None


class ExactScorer(TextScorer):
    def __init__(self, settings: Exact) -> None:
        self.content: Json = "exact 1"

    async def score(self, question: Question, answer: str) -> Verdict:
        given = unified(answer)
        if any(given == unified(as_text(right)) for right in question.references):
            return right_answer()
        return wrong(f"the reply is {shorten(answer)!r}")


class WordScorer(TextScorer):
    """What scorers share that compare words."""

    def problem(self, references: tuple[Json, ...], choices: tuple[str, ...]) -> str:
        found = super().problem(references, choices)
        wordless = [right for right in references if not has_words(as_text(right))]
        return found or (f"the answer {as_text(wordless[0])!r} has no words; use exact" if wordless else "")


class NormalisedScorer(WordScorer):
    def __init__(self, settings: Normalised) -> None:
        self.content: Json = "normalised 1"

    async def score(self, question: Question, answer: str) -> Verdict:
        rights = {normalised(as_text(right)) for right in question.references}
        if normalised(answer) in rights or normalised(final_answer(answer)) in rights:
            return right_answer()
        return wrong(f"the answer is {shorten(final_answer(answer))!r}")


class F1Scorer(WordScorer):
    def __init__(self, settings: F1) -> None:
        self._threshold = settings.threshold
        self.content: Json = ["f1 1", settings.threshold]

    async def score(self, question: Question, answer: str) -> Verdict:
        given = tokens(final_answer(answer))
        whole = tokens(answer)
        rights = [tokens(as_text(right)) for right in question.references]
        best = max(max(overlap(given, right), overlap(whole, right)) for right in rights)
        if best >= self._threshold:
            return Verdict(True, best, facts={"f1": best})
        feedback = f"wrong answer: F1 {best:.2f} of {shorten(final_answer(answer))!r}"
        return Verdict(False, best, feedback, facts={"f1": best})


class NumericScorer(TextScorer):
    def __init__(self, settings: Numeric) -> None:
        self._absolute = Decimal(repr(settings.absolute))
        self._relative = Decimal(repr(settings.relative))
        self.content: Json = ["numeric 1", settings.absolute, settings.relative]

    def problem(self, references: tuple[Json, ...], choices: tuple[str, ...]) -> str:
        found = super().problem(references, choices)
        unread = [right for right in references if isinstance(_number(right), str)]
        return found or (f"the answer {shorten(as_text(unread[0]))!r} is not one number" if unread else "")

    async def score(self, question: Question, answer: str) -> Verdict:
        line = answer_line(answer)
        given = only_quantity(answer) if line is None else last_quantity(line)
        if isinstance(given, str):
            return Verdict(False, 0.0, given)
        rights = [right for right in map(_number, question.references) if isinstance(right, Quantity)]
        near = [right for right in rights if self._near(given.value, right.value)]
        if any(given.agrees(right) for right in near):
            return right_answer()
        if near:
            return Verdict(False, 0.0, f"wrong unit: the answer is in {given.unit}")
        return wrong(f"the answer is read as {given.value:f}{given.unit}")

    def _near(self, given: Decimal, right: Decimal) -> bool:
        return abs(given - right) <= max(self._absolute, self._relative * abs(right))


class RegexScorer(TextScorer):
    def __init__(self, settings: Regex) -> None:
        self._settings = settings
        self._flags = re.IGNORECASE if settings.ignore_case else re.NOFLAG
        self._finder = re.compile(settings.pattern, self._flags) if settings.pattern else None
        self.content: Json = ["regex 1", settings.pattern, settings.full, settings.ignore_case]

    def problem(self, references: tuple[Json, ...], choices: tuple[str, ...]) -> str:
        found = super().problem(references, choices)
        if found or self._finder is not None:
            return found
        for pattern in references:
            try:
                re.compile(as_text(pattern))
            except re.error as error:
                return f"the answer is not a regular expression: {error}"
        return ""

    async def score(self, question: Question, answer: str) -> Verdict:
        given = unified(answer)
        if self._finder is None:
            fits = any(self._matches(as_text(pattern), given) for pattern in question.references)
            return right_answer() if fits else Verdict(False, 0.0, f"no match: {shorten(answer)!r}")
        found = list(self._finder.finditer(given))
        if not found:
            return Verdict(False, 0.0, f"no match: nothing in the reply matches {self._settings.pattern}")
        taken = unified((found[-1][1] or "") if self._finder.groups else found[-1][0])
        if any(taken == unified(as_text(right)) for right in question.references):
            return right_answer()
        return wrong(f"the answer is {shorten(taken)!r}")

    def known_good(self, question: Question) -> str | None:
        return None

    def _matches(self, pattern: str, given: str) -> bool:
        match = re.fullmatch if self._settings.full else re.search
        return match(pattern, given, self._flags) is not None


def overlap(given: list[str], right: list[str]) -> float:
    """F1 of two bags of words."""
    common = (Counter(given) & Counter(right)).total()
    return 2 * common / (len(given) + len(right)) if common else 0.0


def right_answer() -> Verdict:
    return Verdict(True, 1.0)


def wrong(detail: str) -> Verdict:
    return Verdict(False, 0.0, f"wrong answer: {detail}")


def _number(right: Json) -> Quantity | str:
    if isinstance(right, int) and not isinstance(right, bool):
        return Quantity(Decimal(right))
    if isinstance(right, bool) or right is None or isinstance(right, list | dict):
        return "not a number"
    return only_quantity(as_text(right))
