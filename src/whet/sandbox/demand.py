"""A pool for those who may need one: opened by the first who does, closed with what holds it."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable

from whet.sandbox.pool import PRELOAD, Pool


class PoolOnDemand:
    """May be used again after `aclose`: it opens another."""

    def __init__(self, preload: Iterable[str] = PRELOAD) -> None:
        self._preload = tuple(preload)
        self._opening = asyncio.Lock()
        self._pool: Pool | None = None

    async def pool(self) -> Pool:
        async with self._opening:
            if self._pool is None:
                pool = Pool(self._preload)
                await pool.__aenter__()
                self._pool = pool
            return self._pool

    async def aclose(self) -> None:
        pool, self._pool = self._pool, None
        if pool is not None:
            await pool.__aexit__(None, None, None)
