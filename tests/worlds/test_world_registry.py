from __future__ import annotations

from typing import Any

import pytest

from whet.core import ConfigError, InputError, Split, WorldFault
from whet.worlds import known_worlds, world

CLASS = '''
import whet.worlds as whet

@whet.world("sums", count=4)
class Sums:
    """Adds numbers."""

    def __init__(self, count: int = 2, base_dir=None):
        self.count = count
        self.base_dir = base_dir

    def tasks(self):
        return [{"n": n} for n in range(self.count)]

    def brief(self, task):
        return f"{task.inputs['n']} in {self.base_dir}?"

    def judge(self, answer):
        return answer == "yes"
'''

MARKED = """
import whet.worlds as whet

@whet.world("untyped")
class Untyped:
    def __init__(self, size): ...

@whet.world("failing")
class Failing:
    def __init__(self):
        raise RuntimeError("no")
"""

FUNCTION = '''
import whet.worlds as whet

@whet.world("doubles", scorer="numeric")
def doubles(count: int = 3):
    """Doubles numbers."""
    for n in range(count):
        yield {"question": f"2 * {n}?", "answer": 2 * n}
'''


def count(world: Any) -> int:
    return sum(len(world.tasks(split)) for split in Split)


async def test_a_class_in_a_file_is_a_world_and_its_parameters_are_settings(project: Any) -> None:
    project.write("mine/sums.py", CLASS)
    assert project.load("mine/sums.py:Sums").name == "sums"
    assert count(project.load("mine/sums.py")) == 4
    loaded = project.load("mine/sums.py:Sums", count=7, split_ratio={"test": 1})
    assert len(loaded.tasks(Split.TEST)) == 7
    session = await loaded.open(loaded.tasks(Split.TEST)[0], 0)
    assert session.brief.text == f"0 in {project.folder}?"


async def test_a_function_that_yields_rows_is_a_world_of_questions(project: Any, judge_answer: Any) -> None:
    project.write("doubles.py", FUNCTION)
    loaded = project.load("doubles.py:doubles", count=5, split_ratio={"train": 1})
    assert (loaded.name, len(loaded.tasks(Split.TRAIN))) == ("doubles", 5)
    assert (await judge_answer(loaded, "It is 8.", loaded.tasks(Split.TRAIN)[4])).hard
    assert (
        project.load("doubles.py:doubles", scorer="exact").fingerprint != project.load("doubles.py:doubles").fingerprint
    )


def test_a_function_that_returns_a_world_is_asked_for_it(project: Any) -> None:
    returning = '\n@whet.world("made")\ndef made(count: int):\n    return Sums(count)\n'
    project.write("made.py", CLASS + returning)
    assert count(project.load("made.py:made", count=5)) == 5
    with pytest.raises(ConfigError, match=r"world\.count: missing"):
        project.load("made.py:made")


@pytest.mark.parametrize(
    ("use", "settings", "error", "says"),
    [
        ("grid_ctff", {}, ConfigError, "world.use: there is no world 'grid_ctff'. Did you mean 'grid_ctf'?"),
        ("none.py:Sums", {}, ConfigError, "there is no file"),
        ("sums.py:Sum", {}, ConfigError, "sums.py has no 'Sum'. Did you mean 'Sums'?"),
        ("sums.py:whet", {}, ConfigError, "not a class or function"),
        ("bare.py:f", {}, ConfigError, 'is not a world. Put @whet.world("name") above it'),
        ("bare.py", {}, ConfigError, "must have one @whet.world, and has 0 (none)"),
        ("no_such_package.worlds:W", {}, ConfigError, "there is no module no_such_package.worlds"),
        ("broken.py:W", {}, InputError, "broken.py:3: NameError: name 'nothing' is not defined"),
        ("sums.py:Sums", {"cuont": 3}, ConfigError, "world.cuont: there is no such setting. Did you mean 'count'?"),
        ("sums.py:Sums", {"count": "3"}, ConfigError, "world.count: expected `int`, got `str`"),
        ("marked.py:Untyped", {}, InputError, "the setting 'size' needs a type hint"),
        ("marked.py:Failing", {}, WorldFault, "world failing: loading it raised RuntimeError: no"),
        ("grid_ctf", {"train": -1}, ConfigError, "world.train: expected `int` >= 0"),
        ("othello", {"opponents": ["gredy"]}, ConfigError, "Did you mean 'greedy'?"),
    ],
)
def test_what_cannot_be_loaded_is_told(
    project: Any, use: str, settings: Any, error: type[Exception], says: str
) -> None:
    project.write("sums.py", CLASS)
    project.write("broken.py", "\n\nnothing\n")
    project.write("bare.py", "def f(): ...\n")
    project.write("marked.py", MARKED)
    with pytest.raises(error) as caught:
        project.load(use, **settings)
    assert says in str(caught.value)


def test_every_built_in_world_can_be_listed_with_its_settings() -> None:
    known = {info.name: info for info in known_worlds() if info.origin == "built-in"}
    games = {"grid_ctf", "othello_opening", "othello", "textworld", "alfworld"}
    drills = {"house_commands", "orders", "dates", "house_codes", "measures", "tickets"}
    assert set(known) == {"jsonl", "pack", "awm", "openenv", "mcp", "reasoning_gym", *games, *drills}
    for info in known.values():
        assert info.problem == ""
        assert info.description.endswith(".")
        assert info.settings is not None


def test_the_mark_leaves_a_class_what_it_is() -> None:
    class Plain:
        pass

    assert world("plain")(Plain) is Plain
