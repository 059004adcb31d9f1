"""All scenarios of the pack, and the pack as a world."""

from __future__ import annotations

from whet.worlds.database import DatabaseWorld, ScenarioSettings
from whet.worlds.marking import world
from whet.worlds.pack.bank import BANK
from whet.worlds.pack.clinic import CLINIC
from whet.worlds.pack.fleet import FLEET
from whet.worlds.pack.helpdesk import HELPDESK
from whet.worlds.pack.library import LIBRARY
from whet.worlds.pack.shop import SHOP

SCENARIOS = (SHOP, CLINIC, LIBRARY, HELPDESK, BANK, FLEET)


@world("pack")
def pack(settings: ScenarioSettings) -> DatabaseWorld:
    """Six workplaces over SQLite with tools, house rules and ten kinds of task each."""
    return DatabaseWorld("pack", SCENARIOS, settings)
