"""Where agents act, and how their work is checked.

This room turns files, games and authors' objects into Worlds and their Sessions. It knows nothing of who acts, of
training, or of what a verdict is used for; a model reaches it only as the judge of an `llm_judge` scorer.
"""

from whet.worlds.authoring import AuthoredWorld, SessionOver
from whet.worlds.calling import ToolRefusal
from whet.worlds.check import Problem, Severity, WorldReport, check_world
from whet.worlds.holding import held
from whet.worlds.marking import world
from whet.worlds.registry import WorldInfo, known_worlds, load_world
from whet.worlds.splits import SplitSettings, require_tasks
from whet.worlds.tools import tool

__all__ = [
    "AuthoredWorld",
    "Problem",
    "SessionOver",
    "Severity",
    "SplitSettings",
    "ToolRefusal",
    "WorldInfo",
    "WorldReport",
    "check_world",
    "held",
    "known_worlds",
    "load_world",
    "require_tasks",
    "tool",
    "world",
]
