"""Worlds of generated programs over SQLite: folders in the format of Snowflake's AgentWorldModel.

The format is read here, admitted scenario by scenario, and played in the sandbox: a scenario's program is loaded once
and forked for each session, on a copy of its database. This room runs no line of a folder in whet's own process.
"""

from whet.worlds.awm.admission import ADMISSION_FILE, Admission, ScenarioReport, TaskReport, admit
from whet.worlds.awm.layout import Layout, Scenario, Verifier, normal_name, read_layout
from whet.worlds.awm.world import AwmSession, AwmSettings, AwmWorld

__all__ = [
    "ADMISSION_FILE",
    "Admission",
    "AwmSession",
    "AwmSettings",
    "AwmWorld",
    "Layout",
    "Scenario",
    "ScenarioReport",
    "TaskReport",
    "Verifier",
    "admit",
    "normal_name",
    "read_layout",
]
