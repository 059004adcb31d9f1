"""The skill lever: a document is sharpened by reading what happened when an agent worked by it.

This room proposes; what it wants played it asks for, and it never judges. It knows nothing of worlds, gates or stores.
"""

from whet.learners.skill.answers import MergeAnswer, RankAnswer, ReflectAnswer, read_answer
from whet.learners.skill.appendix import add_notes, notes_in
from whet.learners.skill.budget import edit_budget
from whet.learners.skill.buffer import BufferEntry, group_failures, make_entry, show_buffer
from whet.learners.skill.demonstrations import Demonstrator
from whet.learners.skill.epoch import EpochEnd, Play
from whet.learners.skill.learner import SkillLearner
from whet.learners.skill.minibatch import Minibatch, minibatches
from whet.learners.skill.optimizer import Advisor, Prompts
from whet.learners.skill.package import front_matter, package_problems, with_description
from whet.learners.skill.pairs import Change, Pair, kept
from whet.learners.skill.patcher import apply_edits, rough_tokens
from whet.learners.skill.regions import (
    APPENDIX,
    SLOW_UPDATE,
    append_position,
    protected_spans,
    region,
    with_body,
    with_region,
    without_markers,
)
from whet.learners.skill.settings import (
    AppendixSource,
    PairPolicy,
    Schedule,
    Search,
    SkillSettings,
    Teacher,
    UpdateMode,
)

__all__ = [
    "APPENDIX",
    "SLOW_UPDATE",
    "Advisor",
    "AppendixSource",
    "BufferEntry",
    "Change",
    "Demonstrator",
    "EpochEnd",
    "MergeAnswer",
    "Minibatch",
    "Pair",
    "PairPolicy",
    "Play",
    "Prompts",
    "RankAnswer",
    "ReflectAnswer",
    "Schedule",
    "Search",
    "SkillLearner",
    "SkillSettings",
    "Teacher",
    "UpdateMode",
    "add_notes",
    "append_position",
    "apply_edits",
    "edit_budget",
    "front_matter",
    "group_failures",
    "kept",
    "make_entry",
    "minibatches",
    "notes_in",
    "package_problems",
    "protected_spans",
    "read_answer",
    "region",
    "rough_tokens",
    "show_buffer",
    "with_body",
    "with_description",
    "with_region",
    "without_markers",
]
