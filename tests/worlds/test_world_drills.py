"""What the drills promise: one right answer, checked to the letter, and no way to pass by heart."""

from __future__ import annotations

import asyncio
import difflib
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from whet.core import ConfigError, Split, Task, Verdict, World
from whet.worlds import load_world

DRILLS = ("house_commands", "orders", "dates", "house_codes", "measures", "tickets")
SIZES = {"train": 100, "selection": 40, "test": 60, "confirm": 40}
HEARSAY = 0.4
GUESSED = {"house_codes": 0.75, "tickets": 0.75}
"""What the nearest sentence's answer may score; of a few codes the right one is often met."""


def opened(name: str, **sizes: int) -> World:
    return load_world(name, SIZES | sizes, base_dir=Path())


def judged(world: World, task: Task, answer: str) -> Verdict:
    async def judge() -> Verdict:
        session = await world.open(task, seed=0)
        return await session.judge(answer)

    return asyncio.run(judge())


def answers(world: World, tasks: Sequence[Task]) -> list[str]:
    return [judged(world, task, "").reference for task in tasks]


@pytest.mark.parametrize("name", DRILLS)
def test_the_right_answer_passes_and_nothing_else_does(name: str) -> None:
    world = opened(name)
    tasks = [task for split in Split for task in world.tasks(split)]
    for task, right in zip(tasks, answers(world, tasks), strict=True):
        assert judged(world, task, f" {right}\n").hard
        for wrong in (
            "",
            "I have completed the task.",
            right + ".",
            right[:-1],
            f"{right}\n{right}",
            f"Answer: {right}",
        ):
            verdict = judged(world, task, wrong)
            assert not verdict.hard
            assert verdict.soft < 1.0


@pytest.mark.parametrize("name", DRILLS)
def test_no_text_is_in_two_splits_or_twice_in_one(name: str) -> None:
    world = opened(name)
    texts = [task.inputs["text"] for split in Split for task in world.tasks(split)]
    assert len(texts) == sum(SIZES.values())
    assert len(set(texts)) == len(texts)


@pytest.mark.parametrize("name", DRILLS)
def test_growing_a_split_keeps_the_tasks_that_it_had(name: str) -> None:
    small, large = opened(name, test=20), opened(name, test=50)
    assert list(large.tasks(Split.TEST))[:20] == list(small.tasks(Split.TEST))


@pytest.mark.parametrize("name", DRILLS)
def test_who_knows_the_train_answers_by_heart_does_not_pass(name: str) -> None:
    """The answer of the most similar sentence that training has seen."""
    world = opened(name)
    train = list(world.tasks(Split.TRAIN))
    known = dict(zip((str(task.inputs["text"]) for task in train), answers(world, train), strict=True))
    tests = list(world.tasks(Split.TEST))
    passed = 0
    for task in tests:
        (nearest,) = difflib.get_close_matches(str(task.inputs["text"]), known, n=1, cutoff=0.0)
        passed += judged(world, task, known[nearest]).hard
    assert passed / len(tests) <= GUESSED.get(name, HEARSAY)


@pytest.mark.parametrize("name", DRILLS)
def test_what_is_said_of_a_failure_names_the_reason_and_the_right_answer(name: str) -> None:
    world = opened(name)
    task = world.tasks(Split.TRAIN)[0]
    verdict = judged(world, task, "no")
    assert verdict.feedback.startswith("invalid: ")
    assert verdict.reference in verdict.feedback
    assert verdict.facts == {"valid": False}


@pytest.mark.parametrize("name", DRILLS)
@given(answer=st.text(max_size=60))
def test_no_answer_breaks_a_drill(name: str, answer: str) -> None:
    world = opened(name, train=1, selection=0, test=0, confirm=0)
    verdict = judged(world, world.tasks(Split.TRAIN)[0], answer)
    assert 0.0 <= verdict.soft <= 1.0


def test_part_of_an_answer_is_worth_something() -> None:
    world = opened("house_commands")
    task = next(task for task in world.tasks(Split.TRAIN) if task.kind == "light")
    right = judged(world, task, "").reference
    other = right.replace(",on)", ",off)") if ",on)" in right else right.replace(",off)", ",on)")
    assert judged(world, task, other).soft == pytest.approx(0.6)


@pytest.mark.parametrize("answer", ['{"item":"tea"}', "[]", '{"item":"tea","size":"small","quantity":true}', "NaN"])
def test_an_order_has_its_fields_and_no_others(answer: str) -> None:
    world = opened("orders")
    assert judged(world, world.tasks(Split.TRAIN)[0], answer).facts == {"valid": False}


def test_more_tasks_than_there_are_is_said_at_once() -> None:
    sizes: dict[str, Any] = {"train": 100_000}
    with pytest.raises(ConfigError, match=r"world\.train: there are no 100000 different tasks"):
        opened("tickets", **sizes).tasks(Split.TRAIN)
