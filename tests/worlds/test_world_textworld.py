from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from whet.core import Split, World
from whet.worlds import check_world, held, load_world

# A game takes seconds to make.
pytestmark = [pytest.mark.slow, pytest.mark.filterwarnings("ignore")]


def load(base: Path, /, **settings: Any) -> World:
    sizes = {"train": 2, "selection": 1, "test": 1}
    return load_world("textworld", {**sizes, "folder": "games", "quest": 2, **settings}, base_dir=base)


def commands(said: str) -> list[str]:
    return said.rpartition("You can: ")[2].split(", ")


async def test_a_game_is_played_and_its_winner_passes(tmp_path: Path) -> None:
    import textworld

    async with held(load(tmp_path, show_commands=True)) as world:
        session = await world.open(world.tasks(Split.TRAIN)[0], 1)
        assert [tool.name for tool in session.tools] == ["act"]
        assert len(commands(session.brief.text)) > 1
        (made,) = (tmp_path / "games").glob("*.json")
        ends = [
            (await session.call("act", {"command": each})).ends for each in textworld.Game.load(str(made)).walkthrough
        ]
        assert ends == [False, True]
        verdict = await session.judge("")
        await session.close()
        assert (verdict.hard, verdict.soft) == (True, 1.0)


async def test_it_is_sound_and_a_seed_is_always_the_same_game(tmp_path: Path) -> None:
    report = await check_world(load(tmp_path), again=lambda: load(tmp_path), sample=1)
    assert report.sound, report.problems
    other = load(tmp_path / "elsewhere")
    briefs: list[str] = []
    for world in (load(tmp_path), other):
        session = await world.open(world.tasks(Split.TRAIN)[0], 1)
        briefs.append(session.brief.text)
        await session.close()
    assert briefs[0] == briefs[1]
    assert "You can: " not in briefs[0]


async def test_sessions_of_one_game_share_nothing(tmp_path: Path) -> None:
    async with held(load(tmp_path, show_commands=True)) as world:
        task = world.tasks(Split.TRAIN)[1]
        one, two = await asyncio.gather(world.open(task, 1), world.open(task, 2))
        await one.call("act", {"command": commands(one.brief.text)[0]})
        assert (await two.call("act", {"command": "look"})).text.splitlines()[0] in two.brief.text
        assert not (await two.judge("I have won.")).hard
        await one.close()
        await two.close()


async def test_games_that_nobody_keeps_are_gone_at_the_end(tmp_path: Path) -> None:
    world = load(tmp_path, folder="")
    async with held(world):
        session = await world.open(world.tasks(Split.TRAIN)[0], 1)
        await session.close()
        kept = world.author._folder()  # type: ignore[attr-defined]
        assert list(kept.glob("*.z8"))
    assert not kept.exists()
