"""ALFWorld's games, where their data is: which are tasks, what things are called, how a try is judged."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from whet.core import ConfigError, Split, ToolFault
from whet.worlds import check_world, load_world
from whet.worlds.alfworld import AlfWorld, AlfWorldSettings, Engine, names_of
from whet.worlds.authoring import AuthoredWorld

TRAIN = "pick_and_place_simple-Mug-None-Desk-308/trial_T2019"


class House:
    """An engine of one game, that speaks as textworld's does: the mug belongs on the desk."""

    def __init__(self, file: Path) -> None:
        self.task = json.loads(file.read_text())["task"]
        self.closed = False
        self._moves = 0

    def reset(self) -> dict[str, Any]:
        return self._state(f"You are in a room.\n\nYour task is to: {self.task}.")

    def step(self, command: str) -> tuple[dict[str, Any], int, bool]:
        self._moves += 1
        won = command == "put mug 1 in/on desk 1"
        return self._state("You put it there." if won else "Nothing happens.", won=won), int(won), won

    def close(self) -> None:
        self.closed = True

    def _state(self, feedback: str, *, won: bool = False) -> dict[str, Any]:
        commands = ["look", "put mug 1 in/on desk 1"]
        return {"feedback": feedback, "won": won, "moves": self._moves, "admissible_commands": commands}


class Houses(AlfWorld):
    def engine(self) -> Engine:
        return House


def games(folder: Path) -> Path:
    def game(place: str, **fields: Any) -> None:
        (folder / place).mkdir(parents=True)
        (folder / place / "game.tw-pddl").write_text(json.dumps({"solvable": True, "task": "put a mug", **fields}))

    game(f"train/{TRAIN}")
    game("train/look_at_obj_in_light-Book-None-Lamp-1/trial_1", task="look at the book")
    game("train/look_at_obj_in_light-Book-None-Lamp-1/trial_2", solvable=False)
    game("train/pick_two_obj_and_place-AppleSliced-None-Fridge-2/trial_1")
    game("train/pick_and_place_with_movable_recep-Pen-Mug-Desk-3/trial_1")
    game("valid_seen/pick_heat_then_place_in_recep-Egg-None-Table-4/trial_1", task="heat an egg")
    game("valid_unseen/pick_cool_then_place_in_recep-Egg-None-Table-5/trial_1", task="cool an egg")
    return folder


def load(folder: Path, **settings: Any) -> AuthoredWorld:
    return AuthoredWorld("alfworld", Houses(AlfWorldSettings(path=".", **settings), games(folder)))


def test_the_splits_are_the_datas_and_what_cannot_be_played_or_done_is_no_task(tmp_path: Path) -> None:
    world = load(tmp_path)
    kinds = {split: sorted(task.kind for task in world.tasks(split)) for split in Split}
    assert kinds == {
        Split.TRAIN: ["look_at_obj_in_light", "pick_and_place_simple"],
        Split.SELECTION: ["pick_heat_then_place_in_recep"],
        Split.TEST: ["pick_cool_then_place_in_recep"],
        Split.CONFIRM: [],
    }
    assert f"train/{TRAIN}" in {task.id for task in world.tasks(Split.TRAIN)}


async def test_a_game_is_won_by_doing_the_task_and_by_nothing_else(tmp_path: Path) -> None:
    world = load(tmp_path, show_commands=True)
    task = next(task for task in world.tasks(Split.TRAIN) if task.id == f"train/{TRAIN}")
    session = await world.open(task, 1)
    assert "Your task is to: put a mug." in session.brief.text
    assert "You can: look, put mug 1 in/on desk 1" in session.brief.text
    assert (await session.call("act", {"command": "sing"})).text.startswith("Nothing happens.")
    assert (await session.call("win", {})).fault is ToolFault.UNKNOWN_TOOL
    assert (await session.call("act", {"command": " put mug 1  in/on desk 1 "})).ends
    verdict = await session.judge("")
    assert (verdict.hard, verdict.soft, verdict.facts) == (True, 1.0, {"moves": 2, "finished": True})
    idle = await world.open(task, 1)
    verdict = await idle.judge("I did it.")
    assert (verdict.hard, verdict.soft, verdict.feedback) == (False, 0.0, "not done: 0 moves")


async def test_it_is_sound(tmp_path: Path) -> None:
    report = await check_world(load(tmp_path))
    assert report.sound, report.problems


def test_things_are_numbered_as_the_benchmark_numbers_them() -> None:
    ids = [
        "mug_bar__minus_01_dot_5",
        "mug_bar__plus_02_dot_0",
        "sink_bar__plus_1_bar_sinkbasin",
        "agent1",
        "desk_bar_0",
    ]
    assert names_of(ids) == {
        "mug_bar__minus_01_dot_5": "mug 2",
        "mug_bar__plus_02_dot_0": "mug 1",
        "sink_bar__plus_1_bar_sinkbasin": "sinkbasin 1",
        "desk_bar_0": "desk 1",
        "agent1": "agent1",
    }


def test_what_is_not_there_is_told_with_how_to_get_it(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"there are no games of ALFWorld in .*alfworld-download"):
        Houses(AlfWorldSettings(path="nowhere"), tmp_path)
    with pytest.raises(ConfigError, match=r"textworld\[pddl\]|alfworld-download"):
        load_world("alfworld", {"path": "nowhere"}, base_dir=tmp_path)
    games(tmp_path)
    (tmp_path / "train" / TRAIN / "game.tw-pddl").write_text("{")
    with pytest.raises(ConfigError, match="is no game"):
        list(Houses(AlfWorldSettings(path="."), tmp_path).tasks())
