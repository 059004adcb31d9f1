"""The loop that joins worlds, rollouts, learners and gates into a training, and what a run leaves behind.

This room knows nothing of terminals and pages; it tells a `Monitor` what happens.
"""

from whet.training.config import Config, GateSettings, TargetSettings, TrainSettings, changed_keys, what_matters
from whet.training.folder import choose_run, find_run, run_folders
from whet.training.loading import CONFIG_FILE, config_from, dump_toml, load_config
from whet.training.monitor import Monitor, Silent, Stage
from whet.training.records import Comparison, PolicyScore, Report, StepRecord
from whet.training.reporting import read_report, report_text, verdict_line
from whet.training.schedule import PlannedStep, plan
from whet.training.skills import read_skill, write_skill
from whet.training.starting import train
from whet.training.workshop import Project, Workshop, open_workshop, prepare

__all__ = [
    "CONFIG_FILE",
    "Comparison",
    "Config",
    "GateSettings",
    "Monitor",
    "PlannedStep",
    "PolicyScore",
    "Project",
    "Report",
    "Silent",
    "Stage",
    "StepRecord",
    "TargetSettings",
    "TrainSettings",
    "Workshop",
    "changed_keys",
    "choose_run",
    "config_from",
    "dump_toml",
    "find_run",
    "load_config",
    "open_workshop",
    "plan",
    "prepare",
    "read_report",
    "read_skill",
    "report_text",
    "run_folders",
    "train",
    "verdict_line",
    "what_matters",
    "write_skill",
]
