"""Judges a candidate against the incumbent on tasks that nobody learned from.

Pure: it asks for plays and rules on what they gave. It knows nothing of models, stores or skills.
"""

from whet.gate.evidence import Arm, Ask, Evidence, PlannedPlay, Rule
from whet.gate.metrics import Metric, mean_score, select_gate_score
from whet.gate.rules import RULES, make_rule
from whet.gate.statistics import Interval, paired_interval, sign_test, wilson

__all__ = [
    "RULES",
    "Arm",
    "Ask",
    "Evidence",
    "Interval",
    "Metric",
    "PlannedPlay",
    "Rule",
    "make_rule",
    "mean_score",
    "paired_interval",
    "select_gate_score",
    "sign_test",
    "wilson",
]
