"""What an agent wrote, made comparable. Pure."""

from __future__ import annotations

import re
import unicodedata

import msgspec

from whet.core import Json

_ANSWER_LINE = re.compile(
    r"^[ \t>*_#`-]*(?:the[ \t])?(?:(?:final|correct)[ \t])?"
    r"answer(?:[*_`]*[ \t]?[:=]|[ \t]is(?:[ \t]?:|[ \t]))(?P<rest>.*)$",
    re.IGNORECASE | re.MULTILINE,
)
_SUPERSCRIPT = re.compile("[⁺⁻]?[⁰¹²³⁴-⁹]+")
_FRACTION = re.compile("[¼-¾⅐-⅞↉]")
_ARTICLES = frozenset({"a", "an", "the"})
_DASHES = dict.fromkeys(map(ord, "‐‑‒–—−"), "-")
_QUOTES = dict.fromkeys(map(ord, "'\"`´‘’‚“”„«»"), "")
_MARKS = _DASHES | _QUOTES
_GROUPING = re.compile(r"(?<![\d.,])(\d{1,3})((?:,\d{3})+)(?![\d,])")
_INITIALS = re.compile(r"\b(?:[^\W\d_]\.){2,}")
# Marks that carry meaning where they stand: -5, 3.5, 1/2, 10:30, 1990-1995, C#, C++, 5%.
_MEANT = re.compile(r"(?<![^\W_])-(?=\.?\d)|(?<=\d)[-./:](?=\d)|(?<!\w)\.(?=\d)|(?<=[^\W_])[#+]+|(?<=\d)\s*%")


def as_text(value: Json) -> str:
    """A field of a task as people write it: text as it is, other values as JSON."""
    return value if isinstance(value, str) else msgspec.json.encode(value).decode()


def unified(text: str) -> str:
    """One form of each character, and no space around."""
    return unicodedata.normalize("NFC", text).strip()


def compatible(text: str) -> str:
    """Characters that mean the same as one. Powers and fractions stay what they are: 10² is 10^2, 5½ is 5 1/2."""
    text = _SUPERSCRIPT.sub(lambda match: f"^{match[0]}", text)
    text = _FRACTION.sub(lambda match: f" {match[0]}", text)
    return unicodedata.normalize("NFKC", text).replace("⁄", "/")


def answer_line(text: str) -> str | None:
    """What stands after the last "Answer:" of a reply; None if it has no such line."""
    found = [match["rest"].strip(" \t\r*_`") for match in _ANSWER_LINE.finditer(text)]
    return found[-1] if found else None


def final_answer(text: str) -> str:
    """The answer line's text, or all of it."""
    line = answer_line(text)
    return text if line is None else line


def normalised(text: str) -> str:
    """Lower case, no punctuation, no articles, single spaces; signs, points and marks that carry meaning are kept."""
    return " ".join(tokens(text))


def has_words(text: str) -> bool:
    """Whether anything is left of a text once it is normalised."""
    return any(map(str.isalnum, text)) or bool(normalised(text))


def tokens(text: str) -> list[str]:
    plain = compatible(text).translate(_MARKS).casefold()
    plain = unicodedata.normalize("NFKC", plain)
    plain = _GROUPING.sub(lambda match: match[1] + match[2].replace(",", ""), plain)
    plain = _INITIALS.sub(lambda match: match[0].replace(".", ""), plain)
    words = _without_punctuation(plain).split()
    return [word for word in words if word not in _ARTICLES] or words


def _without_punctuation(text: str) -> str:
    kept: list[str] = []
    position = 0
    for meant in _MEANT.finditer(text):
        kept += [_blanked(text[position : meant.start()]), meant[0].strip()]
        position = meant.end()
    return "".join([*kept, _blanked(text[position:])])


def _blanked(text: str) -> str:
    return "".join(" " if unicodedata.category(mark).startswith("P") else mark for mark in text)


def shorten(text: str, limit: int = 120) -> str:
    """One line of an agent's reply for feedback."""
    line = " ".join(text.split())
    return line if len(line) <= limit else f"{line[: limit - 1]}…"
