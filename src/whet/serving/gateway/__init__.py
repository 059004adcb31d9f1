"""The gateway: an OpenAI-compatible server in front of what is active in the registry.

It decides nothing of what is served, the registry does, and renders nothing itself, rollouts do. It knows nothing of
how a policy came to be, nor of the command line.
"""

from whet.serving.gateway.app import Gateway
from whet.serving.gateway.capture import Capture, Retention, redaction
from whet.serving.gateway.guarding import Guard, guard_for
from whet.serving.gateway.metrics import Done, Metrics
from whet.serving.gateway.passing import VLLM, Passing
from whet.serving.gateway.server import Listening, serving
from whet.serving.gateway.switchboard import Switchboard
from whet.serving.gateway.turnstile import Limits
from whet.serving.gateway.upstreams import Local, Upstream

__all__ = [
    "VLLM",
    "Capture",
    "Done",
    "Gateway",
    "Guard",
    "Limits",
    "Listening",
    "Local",
    "Metrics",
    "Passing",
    "Retention",
    "Switchboard",
    "Upstream",
    "guard_for",
    "redaction",
    "serving",
]
