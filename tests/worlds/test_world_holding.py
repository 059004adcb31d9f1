"""A world's processes and connections end with the work that needed them."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from whet.core import Split
from whet.testing import SimulatedWorld
from whet.training import load_config, open_workshop, prepare
from whet.worlds import check_world, held


class Holding(SimulatedWorld):
    """Counts how often it was let go of."""

    def __init__(self) -> None:
        super().__init__(6, 6, 6)
        self.closed = 0

    async def aclose(self) -> None:
        self.closed += 1


async def test_a_world_is_let_go_of_whatever_happens() -> None:
    world = Holding()
    with pytest.raises(ZeroDivisionError):
        async with held(world):
            raise ZeroDivisionError
    assert world.closed == 1


async def test_a_world_that_holds_nothing_is_left_alone() -> None:
    async with held(SimulatedWorld(6, 6, 6)) as world:
        assert world.tasks(Split.TRAIN)


async def test_checking_a_world_lets_go_of_it() -> None:
    world = Holding()
    await check_world(world)
    assert world.closed == 1


CONFIG = """\
[world]
use = "whet.testing.simulation:SimulatedWorld"
[target]
model = "scripted/whet.testing.simulation:student"
"""


async def test_a_workshop_lets_go_of_its_world_at_its_end(tmp_path: Path) -> None:

    (tmp_path / "whet.toml").write_text(CONFIG)
    world = Holding()
    project = msgspec.structs.replace(prepare(load_config(tmp_path / "whet.toml"), tmp_path), world=world)
    async with open_workshop(project, tmp_path / "runs" / "run-1"):
        assert world.closed == 0
    assert world.closed == 1
