"""Every epoch goes through all tasks once, in an order that the seed alone decides."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from whet.core import Split, Task
from whet.training import PlannedStep, plan


def tasks(count: int) -> list[Task]:
    return [Task(f"t{number}", Split.TRAIN, {"n": number}) for number in range(count)]


def ids(steps: list[PlannedStep]) -> list[list[str]]:
    return [[task.id for task in step.tasks] for step in steps]


@given(
    count=st.integers(0, 40),
    epochs=st.integers(1, 4),
    batch=st.integers(1, 50),
    accumulation=st.integers(1, 3),
    seed=st.integers(0, 2**40),
)
def test_every_epoch_covers_all_tasks_once(count: int, epochs: int, batch: int, accumulation: int, seed: int) -> None:
    steps = plan(tasks(count), epochs, batch, seed, accumulation)
    everything = sorted(task.id for task in tasks(count))
    for epoch in range(1, epochs + 1):
        mine = [step for step in steps if step.step.epoch == epoch]
        assert sorted(name for names in ids(mine) for name in names) == everything
        assert all(len(step.tasks) == batch * accumulation for step in mine[:-1])
        assert [step.ends_epoch for step in mine] == [False] * (len(mine) - 1) + [True] * bool(mine)
    assert [step.step.number for step in steps] == list(range(1, len(steps) + 1))
    assert {step.step.total for step in steps} <= {len(steps)}
    assert len({step.step.key for step in steps}) == len(steps)


def test_the_order_depends_on_the_seed_and_the_epoch_alone() -> None:
    steps = plan(tasks(30), 2, 10, seed=1)
    assert plan(tasks(30), 2, 10, seed=1) == steps
    assert ids(plan(tasks(30), 2, 10, seed=2)) != ids(steps)
    flat = [name for names in ids(steps) for name in names]
    assert flat[:30] != flat[30:]
    assert flat == [name for names in ids(plan(tasks(30), 2, 7, seed=1)) for name in names]
    assert ids(plan(tasks(30), 4, 10, seed=1))[:6] == ids(steps)
