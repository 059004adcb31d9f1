"""Who thinks: one client for each wire format, with limits, retries, prices and a memory.

This room knows nothing of tasks or skills. Everything above it sees `core.Model`, made by `open_model`.
"""

from whet.models.ledger import Caps, Cost, Grant, Ledger, believable, input_bound
from whet.models.limits import AdaptiveLimit, Places
from whet.models.once import Once
from whet.models.opening import SCRIPTED, Models
from whet.models.prices import Price, Prices
from whet.models.providers import PROVIDERS, EndpointOptions, Provider, resolve
from whet.models.recorded import RecordedModel, Sender
from whet.models.roles import CallSettings, RoleSettings
from whet.models.scripted import Script, ScriptedSender

__all__ = [
    "PROVIDERS",
    "SCRIPTED",
    "AdaptiveLimit",
    "CallSettings",
    "Caps",
    "Cost",
    "EndpointOptions",
    "Grant",
    "Ledger",
    "Models",
    "Once",
    "Places",
    "Price",
    "Prices",
    "Provider",
    "RecordedModel",
    "RoleSettings",
    "Script",
    "ScriptedSender",
    "Sender",
    "believable",
    "input_bound",
    "resolve",
]
