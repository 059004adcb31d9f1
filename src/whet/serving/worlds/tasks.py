"""Which task is meant: by id, by split and index, by seed, or simply the next one. Pure."""

from __future__ import annotations

from collections.abc import Sequence

from whet.core import Json, Split, Task, World
from whet.project import nearest
from whet.serving.worlds.wire import Code, Refusal, Reset

_TYPES = {Split.TRAIN: "train", Split.TEST: "test"}
"""The wire knows three types of split; whatever is neither of these two is for validation."""
_SEEDS = 1 << 63


class TaskBook:
    """The tasks of a world, as the wire asks for them."""

    def __init__(self, world: World) -> None:
        self.tasks: dict[Split, Sequence[Task]] = {split: tasks for split in Split if (tasks := world.tasks(split))}
        self._by_id = {task.id: task for tasks in self.tasks.values() for task in tasks}

    def splits(self) -> list[dict[str, Json]]:
        return [{"name": split.value, "type": _TYPES.get(split, "validation")} for split in self.tasks]

    def of(self, split: str) -> Sequence[Task]:
        tasks = next((tasks for known, tasks in self.tasks.items() if known == split), None)
        if tasks is None:
            raise Refusal(Code.VALIDATION_ERROR, f"there is no split '{split}'. {nearest(split, self.tasks)}")
        return tasks

    def chosen(self, reset: Reset, count: int) -> tuple[Task, int]:
        """The task of a reset, and the seed that it is played with; `count` numbers the resets without a seed."""
        number = count if reset.seed is None else reset.seed
        if not 0 <= number < _SEEDS:
            raise Refusal(Code.VALIDATION_ERROR, "a seed is at least 0 and below 2**63")
        if reset.task_id is not None:
            return self._named(reset.task_id), number
        if reset.split is None and reset.index is not None:
            raise Refusal(Code.VALIDATION_ERROR, "an index needs its split")
        tasks = self.of(reset.split) if reset.split is not None else self._usual()
        if reset.index is None:
            return tasks[number % len(tasks)], number
        if not 0 <= reset.index < len(tasks):
            raise Refusal(Code.VALIDATION_ERROR, f"the split has tasks 0 to {len(tasks) - 1}, not {reset.index}")
        return tasks[reset.index], number

    def _named(self, task_id: str) -> Task:
        task = self._by_id.get(task_id)
        if task is None:
            raise Refusal(Code.VALIDATION_ERROR, f"there is no task '{task_id[:100]}'")
        return task

    def _usual(self) -> Sequence[Task]:
        """Tasks to learn from, where nothing is asked for: nobody meets test tasks by accident."""
        if not self.tasks:
            raise Refusal(Code.FACTORY_ERROR, "this world has no tasks")
        return next(iter(self.tasks.values()))


def as_listed(task: Task) -> dict[str, Json]:
    return {"id": task.id, "split": task.split.value, "kind": task.kind, "inputs": task.inputs}
