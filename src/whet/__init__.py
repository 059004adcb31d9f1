"""whet sharpens LLM agents against worlds that can check their work, and keeps only the changes it can prove.

What authors of worlds need is here by its short name, loaded when it is asked for: importing whet costs nothing.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from whet.core import Brief, Split, Task, ToolResult, Verdict
    from whet.worlds import ToolRefusal, tool, world

__version__ = "0.1.0"

__all__ = ["Brief", "Split", "Task", "ToolRefusal", "ToolResult", "Verdict", "__version__", "tool", "world"]

_ROOMS = {"ToolRefusal": "whet.worlds", "tool": "whet.worlds", "world": "whet.worlds"}


def __getattr__(name: str) -> Any:
    if name in __all__:
        return getattr(import_module(_ROOMS.get(name, "whet.core")), name)
    raise AttributeError(f"whet has no {name!r}")
