from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from whet.core import ConfigError, InputError, Split, World
from whet.worlds import check_world, held, load_world

# The package alone takes seconds to import.
pytestmark = pytest.mark.slow


def load(**settings: Any) -> World:
    sizes = {"train": 6, "selection": 4, "test": 4}
    return load_world("reasoning_gym", {**sizes, **settings}, base_dir=Path())


def questions(world: World, split: Split) -> list[Any]:
    return [task.inputs["question"] for task in world.tasks(split)]


async def test_it_is_sound_as_it_comes() -> None:
    report = await check_world(load(), again=load, sample=4)
    assert report.sound, report.problems


def test_the_same_settings_draw_the_same_tasks_and_another_place_draws_others() -> None:
    one, same, other = load(), load(), load(first=1000)
    assert questions(one, Split.TEST) == questions(same, Split.TEST)
    assert one.fingerprint == same.fingerprint
    assert not set(questions(one, Split.SELECTION)) & set(questions(other, Split.SELECTION))
    assert {task.kind for task in one.tasks(Split.TRAIN)} == {
        "chain_sum",
        "leg_counting",
        "simple_equations",
        "word_sorting",
    }


def test_no_question_is_in_two_splits_and_more_to_learn_from_moves_no_test() -> None:
    few = {"generators": ["coin_flip"], "config": {"coin_flip": {"min_trials": 3, "max_trials": 12}}}
    small, large = load(**few), load(**few, train=40)
    drawn = [question for split in Split for question in questions(large, split)]
    assert len(set(drawn)) == len(drawn) == 48
    assert questions(small, Split.TEST) == questions(large, Split.TEST)


async def test_a_right_answer_passes_and_a_wrong_one_does_not() -> None:
    async with held(load(generators=["chain_sum"])) as world:
        task = world.tasks(Split.TRAIN)[0]
        right = world.known_good(task)  # type: ignore[attr-defined]
        for reply, hard in ((f"I think.\n{right}", True), ("<answer>nothing</answer>", False), ("", False)):
            session = await world.open(task, 1)
            verdict = await session.judge(reply)
            await session.close()
            assert verdict.hard is hard
            assert f"<answer>{verdict.reference}</answer>" == right


async def test_an_answer_that_is_code_is_not_run_here(tmp_path: Path) -> None:
    marker = tmp_path / "ran"
    attack = f"[__import__('pathlib').Path({str(marker)!r}).write_text('x')]"
    async with held(load(generators=["spiral_matrix"])) as world:
        session = await world.open(world.tasks(Split.TRAIN)[0], 1)
        verdict = await session.judge(f"<answer>{attack}</answer>")
        await session.close()
    assert not verdict.hard
    assert not marker.exists()


def test_its_scorer_would_run_it_here(tmp_path: Path) -> None:
    """So that the test above can fail."""
    import reasoning_gym

    marker = tmp_path / "ran"
    drawn = reasoning_gym.create_dataset("spiral_matrix", seed=1, size=1)
    drawn.score_answer(f"[__import__('pathlib').Path({str(marker)!r}).write_text('x')]", drawn[0])
    assert marker.exists()


@pytest.mark.parametrize(
    ("settings", "error", "says"),
    [
        ({"generators": ["chain_sun"]}, ConfigError, "there is no 'chain_sun'. Did you mean 'chain_sum'"),
        ({"generators": ["codeio"]}, ConfigError, "codeio cannot be used"),
        ({"generators": []}, ConfigError, "must name at least one"),
        ({"config": {"ab": {}}}, ConfigError, "world.config.ab: it is not among world.generators"),
        ({"config": {"chain_sum": {"terms": 3}}}, ConfigError, "world.config.chain_sum: "),
        ({"generators": ["coin_flip"], "train": 900_000}, InputError, "has no more new questions"),
    ],
)
def test_what_cannot_be_drawn_is_told(settings: Any, error: type[Exception], says: str) -> None:
    if "train" in settings:
        settings = {**settings, "config": {"coin_flip": {"min_trials": 3, "max_trials": 3}}}
    with pytest.raises(error) as caught:
        load(**settings)
    assert says in str(caught.value)
