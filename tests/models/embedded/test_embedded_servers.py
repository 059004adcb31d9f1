"""Which server answers, with servers that are none: who comes at an awkward moment is answered too."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

from whet.models.embedded.servers import Servers
from whet.models.embedded.slots import Desk


class Stub:
    async def close(self) -> None:
        pass


async def test_who_comes_in_the_moment_in_which_a_start_ends_gets_a_server_of_its_own() -> None:
    late: list[asyncio.Task[list[str]]] = []
    starts: list[tuple[Path, ...]] = []

    async def lease(name: str) -> list[str]:
        async with servers.lease(name, Path(name)) as running:
            return list(running.adapters)

    async def start(adapters: tuple[Path, ...]) -> Any:
        starts.append(adapters)
        if not late:
            # It takes its first step when this start has ended, and before anybody is told so.
            late.append(asyncio.create_task(lease("second")))
        return Stub()

    servers = Servers(start, lambda: Desk(2, 100))
    assert "first" in await lease("first")
    assert "second" in await late[0]
    assert len(starts) == 2
    await servers.close()
