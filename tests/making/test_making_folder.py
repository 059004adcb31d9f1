"""The folder that worlds are made in: what is there stays, what is added is whole, a making goes on where it was."""

from __future__ import annotations

import asyncio
import shutil
from pathlib import Path

import msgspec
import pytest
from scripted_optimizer import STAGES, Known
from workshop import THEME, Author, TwoAuthors, files_in, make

from whet.making import Made, Order
from whet.models import Caps
from whet.worlds.awm import read_layout

ORDER = Order(THEME, tasks=2)
CALLS = len(STAGES) + 2
"""The second task has a solution and a verifier too."""


@pytest.fixture(scope="module")
def whole(pack: Path, tmp_path_factory: pytest.TempPathFactory) -> tuple[Made, Path]:
    """A making that nothing disturbed. What is in its folder must not be changed."""
    folder = tmp_path_factory.mktemp("whole")
    return asyncio.run(make(folder, Author(Known(pack, "library", 2)), ORDER)), folder


@pytest.fixture
def made(whole: tuple[Made, Path], tmp_path: Path) -> Path:
    """A copy of it."""
    return Path(shutil.copytree(whole[1], tmp_path / "made"))


@pytest.mark.slow
async def test_the_same_order_again_asks_nothing_and_changes_nothing(
    library: Known, whole: tuple[Made, Path], made: Path
) -> None:
    author = Author(library)
    again = await make(made, author, ORDER)
    assert not author.asked
    assert msgspec.structs.replace(again, folder=whole[0].folder) == whole[0]
    assert files_in(made) == files_in(whole[1])


@pytest.mark.slow
async def test_more_scenarios_are_made_beside_the_first_which_must_be_unlike_them(pack: Path, tmp_path: Path) -> None:
    author = TwoAuthors(Known(pack, "library", 1), Known(pack, "shop", 1))
    one = await make(tmp_path, author, Order(THEME, tasks=1))
    asked, there = len(author.asked), files_in(tmp_path)
    two = await make(tmp_path, author, Order(THEME, tasks=1, scenarios=2))
    assert len(author.asked) == 2 * asked == 2 * len(STAGES)
    assert [scenario.name for scenario in two.scenarios] == ["library", "shop"]
    assert (one.sound, two.sound) == (1, 2)
    for name, content in files_in(tmp_path).items():
        assert name == "whet_admission.json" or content.startswith(there[name])


async def test_a_second_scenario_like_the_first_is_refused(library: Known, tmp_path: Path) -> None:
    author = Author(library, {"tasks": ["no"]}, always="tasks")
    made = await make(tmp_path, author, Order(THEME, tasks=2, scenarios=2, corrections=1))
    assert [one.name for one in made.scenarios] == ["library", "scenario 2"]
    assert "it is not new: its " in made.scenarios[1].given_up
    assert "'library'" in made.scenarios[1].given_up
    assert [len(author.of("scenario")), len(author.of("tasks"))] == [3, 2]


@pytest.mark.slow
async def test_a_making_stopped_by_its_budget_goes_on_under_a_higher_one_and_ends_the_same(
    library: Known, whole: tuple[Made, Path], tmp_path: Path
) -> None:
    author = Author(library)
    for cap in (0, 1, 5, CALLS - 1):
        stopped = await make(tmp_path / "capped", author, ORDER, caps=Caps(calls=cap))
        assert "budget.calls" in stopped.stopped
        assert len(author.asked) == cap
        assert stopped.sound == (1 if cap == CALLS - 1 else 0)
        assert bool(files_in(tmp_path / "capped")) == bool(stopped.sound), "what came about until then is kept"
    done = await make(tmp_path / "capped", author, ORDER, caps=Caps(calls=CALLS))
    assert (done.stopped, len(author.asked)) == ("", CALLS)
    assert msgspec.structs.replace(done, folder=whole[0].folder) == whole[0]
    assert files_in(tmp_path / "capped") == files_in(whole[1])


@pytest.mark.slow
async def test_a_scenario_is_there_whole_or_not_at_all(
    library: Known, whole: tuple[Made, Path], tmp_path: Path
) -> None:
    author, broken = Author(library), tmp_path / "broken"
    for file in ("gen_scenario", "gen_verifier", "gen_tasks"):
        in_the_way = broken / f"{file}.jsonl.new"
        in_the_way.mkdir(parents=True)
        with pytest.raises(ExceptionGroup, match="unhandled errors") as failed:
            await make(broken, author, ORDER)
        assert isinstance(failed.value.exceptions[0], IsADirectoryError)
        assert not (broken / "gen_tasks.jsonl").exists(), "the list of tasks is written last"
        in_the_way.rmdir()
    made = await make(broken, author, ORDER)
    assert (made.sound, len(author.asked)) == (2, CALLS)
    assert files_in(broken) == files_in(whole[1])


@pytest.mark.slow
async def test_what_was_changed_by_hand_or_came_from_elsewhere_is_left_as_it_is(
    library: Known, made: Path, tmp_path: Path
) -> None:
    descriptions = made / "gen_scenario.jsonl"
    by_hand = descriptions.read_bytes().replace(b"keeps to its rules", b"bends its rules")
    descriptions.write_bytes(by_hand)
    assert (await make(made, Author(library), ORDER)).sound == 2
    assert descriptions.read_bytes() == by_hand

    other = await make(made, Author(library), Order("another theme", tasks=2, corrections=0))
    assert "it is not new" in other.scenarios[0].given_up
    elsewhere = tmp_path / "elsewhere"
    await make(elsewhere, Author(library), ORDER, caps=Caps(calls=3))
    for name, content in files_in(made).items():
        (elsewhere / name).write_bytes(content)
    late = await make(elsewhere, Author(library), ORDER)
    assert late.scenarios[0].given_up == "another scenario of this name has come into the folder meanwhile"
    assert files_in(elsewhere) == files_in(made)


@pytest.mark.slow
async def test_other_lines_stay_also_those_that_nobody_can_read(library: Known, tmp_path: Path) -> None:
    odd = b'{"name": "half\n\xff\xfe\n{"name": "chess_club", "description": "Plays."}'
    author = Author(library)
    await make(tmp_path, author, ORDER, caps=Caps(calls=5))
    (tmp_path / "gen_scenario.jsonl").write_bytes(odd)
    made = await make(tmp_path, author, ORDER)
    assert made.sound == 2
    lines = (tmp_path / "gen_scenario.jsonl").read_bytes().split(b"\n")
    assert lines[:3] == odd.split(b"\n")
    assert b'"library"' in lines[3]
    assert set(read_layout(tmp_path).scenarios) == {"library"}
