"""Judges a candidate against the incumbent on tasks that nobody learned from, and certifies what is to be published.

Pure: it asks for plays and rules on what they gave. It knows nothing of models, stores or skills.
"""

from whet.gate.alpha import CAMPAIGN_ALPHA, AlphaLedger, Attempt
from whet.gate.betting import Bets
from whet.gate.certificate import (
    Certificate,
    Certifier,
    Claim,
    Finding,
    fingerprint_of,
    read_certificate,
    write_certificate,
)
from whet.gate.evidence import Arm, Ask, Evidence, PlannedPlay, Rule
from whet.gate.metrics import Metric, mean_score, select_gate_score
from whet.gate.power import Simulated, sign_test_power, simulate, smallest_gain, tasks_needed
from whet.gate.rules import RULES, make_rule
from whet.gate.statistics import (
    Interval,
    Side,
    binomial_test,
    bootstrap_interval,
    clopper_pearson,
    holm,
    paired_interval,
    sign_flip_test,
    sign_test,
    wilson,
)

__all__ = [
    "CAMPAIGN_ALPHA",
    "RULES",
    "AlphaLedger",
    "Arm",
    "Ask",
    "Attempt",
    "Bets",
    "Certificate",
    "Certifier",
    "Claim",
    "Evidence",
    "Finding",
    "Interval",
    "Metric",
    "PlannedPlay",
    "Rule",
    "Side",
    "Simulated",
    "binomial_test",
    "bootstrap_interval",
    "clopper_pearson",
    "fingerprint_of",
    "holm",
    "make_rule",
    "mean_score",
    "paired_interval",
    "read_certificate",
    "select_gate_score",
    "sign_flip_test",
    "sign_test",
    "sign_test_power",
    "simulate",
    "smallest_gain",
    "tasks_needed",
    "wilson",
    "write_certificate",
]
