"""The scorers that a configuration can name, and how its setting becomes one."""

from __future__ import annotations

from pathlib import Path
from typing import TypeAlias

import msgspec

from whet.core import Model
from whet.project import decode_settings
from whet.worlds.choices import ChoiceScorer, MultipleChoice
from whet.worlds.confined import ConfinedScorer
from whet.worlds.functions import FunctionScorer, PythonFunction
from whet.worlds.judge import JudgeScorer, LlmJudge
from whet.worlds.scorers import (
    F1,
    Exact,
    ExactScorer,
    F1Scorer,
    Normalised,
    NormalisedScorer,
    Numeric,
    NumericScorer,
    Regex,
    RegexScorer,
    Scorer,
)
from whet.worlds.structured import JsonSchema, JsonScorer
from whet.worlds.unit_tests import UnitTests, UnitTestScorer

AnyScorer: TypeAlias = (
    Exact | Normalised | F1 | Numeric | Regex | MultipleChoice | JsonSchema | UnitTests | PythonFunction | LlmJudge
)


class _Named(msgspec.Struct, frozen=True):
    scorer: AnyScorer


def build_scorer(setting: str | AnyScorer, *, has_choices: bool, base_dir: Path, judge: Model | None) -> Scorer:
    """The scorer that a setting names: its name alone, or its table."""
    usual = "multiple_choice" if has_choices else "normalised"
    if isinstance(setting, str):
        setting = decode_settings(_Named, {"scorer": {"use": setting or usual}}, where="world").scorer
    match setting:
        case Exact():
            return ExactScorer(setting)
        case Normalised():
            return NormalisedScorer(setting)
        case F1():
            return F1Scorer(setting)
        case Numeric():
            return NumericScorer(setting)
        case Regex():
            return RegexScorer(setting)
        case MultipleChoice():
            return ChoiceScorer(setting)
        case JsonSchema():
            return JsonScorer(setting, base_dir)
        case UnitTests():
            return UnitTestScorer(setting)
        case PythonFunction():
            return FunctionScorer(setting, base_dir) if setting.trusted else ConfinedScorer(setting, base_dir)
        case LlmJudge():
            return JudgeScorer(setting, base_dir, judge)
