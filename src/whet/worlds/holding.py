"""What a world holds while it is played, and lets go of."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

from whet.core import HeldWorld, World


@asynccontextmanager
async def held(world: World) -> AsyncGenerator[World]:
    """Sessions are opened inside; nothing that the world started outlives it."""
    try:
        yield world
    finally:
        if isinstance(world, HeldWorld):
            await world.aclose()
