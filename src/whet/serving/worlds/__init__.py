"""The world server: any World over the OpenEnv wire, and its tools over MCP.

It knows nothing of training and of who acts. What a trainer may do (reset, step, state, verdicts, lists of tasks) and
what an agent may do (its tools) are two planes on two listeners.
"""

from whet.serving.worlds.hub import Hub
from whet.serving.worlds.seat import Limits, Seat
from whet.serving.worlds.server import Place, Running, serving

__all__ = ["Hub", "Limits", "Place", "Running", "Seat", "serving"]
