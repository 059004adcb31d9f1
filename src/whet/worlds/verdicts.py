"""What an author's judge returns, as a Verdict; and an author's source, as what decides it."""

from __future__ import annotations

import ast
import math
from pathlib import Path

from whet.core import Verdict


def as_verdict(judged: object, pass_mark: float) -> Verdict:
    """True or False, a score from 0 to 1, or a Verdict as it is."""
    if isinstance(judged, Verdict):
        return judged
    if isinstance(judged, bool):
        return Verdict(judged, 1.0 if judged else 0.0)
    if not isinstance(judged, int | float):
        raise TypeError(f"judge must return a bool, a number from 0 to 1 or a Verdict, not {type(judged).__name__}")
    if not (math.isfinite(judged) and 0 <= judged <= 1):
        raise ValueError(f"judge must return a score from 0 to 1, not {judged}")
    return Verdict(judged >= pass_mark, float(judged))


def source_of(file: str | None) -> str:
    """A module without comments and layout, so that tidying it up does not make another world of it."""
    if file is None or not Path(file).is_file():
        return ""
    return ast.unparse(ast.parse(Path(file).read_text("utf-8")))
