"""Multiple choice: which choice a reply means, if it means one for certain. Pure."""

from __future__ import annotations

import re

import msgspec

from whet.core import Json, Verdict
from whet.worlds.scorers import Question, TextScorer, right_answer, wrong
from whet.worlds.text import answer_line, as_text, normalised, unified

LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"

_LETTER_ALONE = re.compile(r"^[\W_]*(?:option\s+|choice\s+)?[\W_]*([A-Za-z])[\W_]*$", re.IGNORECASE)
_LETTER_FIRST = re.compile(r"^[\W_]*([A-Za-z])[\W_]*[).:\]][\W_]*(?P<rest>\S.*)$", re.DOTALL)


class MultipleChoice(msgspec.Struct, frozen=True, tag_field="use", tag="multiple_choice", forbid_unknown_fields=True):
    """The letter or the text of one choice, alone or in a last line "Answer: …". Two that disagree are wrong."""


class ChoiceScorer(TextScorer):
    def __init__(self, settings: MultipleChoice) -> None:
        self.content: Json = "multiple_choice 1"

    def problem(self, references: tuple[Json, ...], choices: tuple[str, ...]) -> str:
        if not choices:
            return "multiple_choice needs choices"
        texts = [normalised(choice) for choice in choices]
        if len(set(texts)) < len(texts):
            return "two choices are the same"
        letters = LETTERS[: len(texts)]
        if any(len(text) == 1 and letters.find(text.upper()) not in (-1, place) for place, text in enumerate(texts)):
            return "a choice reads like the letter of another"
        if any(isinstance(right, int) and as_text(right) not in choices for right in references):
            return "the answer must be the letter or the text of a choice, not its number"
        found = super().problem(references, choices)
        unknown = [right for right in references if not isinstance(meant(as_text(right), choices), int)]
        return found or (f"the answer {as_text(unknown[0])!r} is no choice" if unknown else "")

    async def score(self, question: Question, answer: str) -> Verdict:
        line = answer_line(answer)
        given = meant(answer if line is None else line, question.choices)
        if isinstance(given, str):
            return Verdict(False, 0.0, given)
        if any(given == meant(as_text(right), question.choices) for right in question.references):
            return right_answer()
        return wrong(f"the reply means {LETTERS[given]}) {question.choices[given]}")

    def known_good(self, question: Question) -> str | None:
        given = meant(as_text(question.references[0]), question.choices) if question.references else ""
        return LETTERS[given] if isinstance(given, int) else None


def meant(text: str, choices: tuple[str, ...]) -> int | str:
    """The place of the choice that a text means, or why it means none."""
    for place, choice in enumerate(choices):
        if unified(choice) == unified(text):
            return place
    alone = _LETTER_ALONE.match(text)
    if alone:
        return _place(alone[1], choices)
    first = _LETTER_FIRST.match(text)
    if first is None:
        by_text = _by_text(text, choices)
        unclear = "unclear: the reply is neither a letter nor a choice; end with a line 'Answer: <letter>'"
        return unclear if by_text is None else by_text
    letter, stated = _place(first[1], choices), _by_text(first["rest"], choices)
    if isinstance(letter, int) and stated is not None and stated != letter:
        return f"ambiguous: {first[1].upper()} is not '{choices[stated]}'"
    if isinstance(letter, int) and stated is None:
        return "unclear: more than a letter and its choice; end with a line 'Answer: <letter>'"
    return letter


def _by_text(text: str, choices: tuple[str, ...]) -> int | None:
    wanted = normalised(text)
    found = [place for place, choice in enumerate(choices) if normalised(choice) == wanted]
    return found[0] if len(found) == 1 else None


def _place(letter: str, choices: tuple[str, ...]) -> int | str:
    place = LETTERS.index(letter.upper())
    return place if place < len(choices) else f"no choice: there is no {letter.upper()}"
