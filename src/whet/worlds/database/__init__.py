"""Worlds of tools over an SQLite database: what is common to those that come with whet and to those from elsewhere.

The row difference of two states, copies for sessions, rewards, and a compact way to write scenarios as plain functions.
This room knows nothing of any one scenario, of files of other formats, or of who acts. It and the store are the only
rooms that speak SQL: the store's is the project's own, this one's is a world's.
"""

from whet.worlds.database.cloning import clone, clone_file, restore, snapshot
from whet.worlds.database.contents import Contents, read
from whet.worlds.database.difference import (
    Cell,
    Difference,
    RowChange,
    SchemaChange,
    TableDifference,
    compare,
    difference,
)
from whet.worlds.database.rewards import Rewards, RewardType, reward, reward_of, reward_type
from whet.worlds.database.scenario import (
    Answer,
    Change,
    Check,
    Draft,
    Rule,
    Scenario,
    a_number,
    act,
    any_of,
    delete,
    done,
    draw,
    insert,
    items,
    number,
    read_handbook,
    refused,
    text,
    update,
)
from whet.worlds.database.state import State
from whet.worlds.database.world import DatabaseSession, DatabaseWorld, ScenarioSettings, SplitBy

__all__ = [
    "Answer",
    "Cell",
    "Change",
    "Check",
    "Contents",
    "DatabaseSession",
    "DatabaseWorld",
    "Difference",
    "Draft",
    "RewardType",
    "Rewards",
    "RowChange",
    "Rule",
    "Scenario",
    "ScenarioSettings",
    "SchemaChange",
    "SplitBy",
    "State",
    "TableDifference",
    "a_number",
    "act",
    "any_of",
    "clone",
    "clone_file",
    "compare",
    "delete",
    "difference",
    "done",
    "draw",
    "insert",
    "items",
    "number",
    "read",
    "read_handbook",
    "refused",
    "restore",
    "reward",
    "reward_of",
    "reward_type",
    "snapshot",
    "text",
    "update",
]
