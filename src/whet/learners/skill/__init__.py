"""The skill lever: a document is sharpened by reading what happened when an agent worked by it.

This room proposes; it never plays a task and never judges. It knows nothing of worlds, gates or stores.
"""

from whet.learners.skill.answers import MergeAnswer, RankAnswer, ReflectAnswer, read_answer
from whet.learners.skill.budget import edit_budget
from whet.learners.skill.learner import SkillLearner
from whet.learners.skill.minibatch import Minibatch, minibatches
from whet.learners.skill.patcher import apply_edits
from whet.learners.skill.regions import append_position, protected_spans, without_markers
from whet.learners.skill.settings import Schedule, SkillSettings

__all__ = [
    "MergeAnswer",
    "Minibatch",
    "RankAnswer",
    "ReflectAnswer",
    "Schedule",
    "SkillLearner",
    "SkillSettings",
    "append_position",
    "apply_edits",
    "edit_budget",
    "minibatches",
    "protected_spans",
    "read_answer",
    "without_markers",
]
