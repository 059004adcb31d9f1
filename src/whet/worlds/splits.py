"""Which task is in which split: as listed, or drawn by content, so that adding tasks moves none of the others.

Pure, and knows nothing of where tasks come from.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from enum import StrEnum
from typing import Annotated

import msgspec

from whet.core import InputError, Json, Split, Task, World, content_key

SHOWN_PROBLEMS = 5
"""How many problems one error lists before it only counts the rest."""

Share = Annotated[float, msgspec.Meta(ge=0)]
Count = Annotated[int, msgspec.Meta(ge=0)]


class Shares(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """How much of one list goes to each split, as weights; a split that is left out gets nothing."""

    train: Share = 0.0
    """Weight of the tasks that are learned from."""
    selection: Share = 0.0
    """Weight of the tasks that the gate compares on."""
    test: Share = 0.0
    """Weight of the tasks that are kept for the final report."""
    confirm: Share = 0.0
    """Weight of the tasks that confirm a certificate."""

    def __post_init__(self) -> None:
        if self.train + self.selection + self.test + self.confirm <= 0:
            raise ValueError("at least one share must be above 0")


class Limits(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The most tasks of each split; a split that is left out has no limit."""

    train: Count | None = None
    """Most tasks to learn from."""
    selection: Count | None = None
    """Most tasks for the gate."""
    test: Count | None = None
    """Most tasks for the final report."""
    confirm: Count | None = None
    """Most tasks to confirm with."""


class Duplicates(StrEnum):
    """What to do with a task that stands twice in one split."""

    ERROR = "error"
    DROP = "drop"


class SplitSettings(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The settings of every world that lists its tasks rather than making them by seed."""

    split_ratio: Shares = Shares(train=2, selection=1, test=1)
    """How tasks without a split of their own are shared out, as weights: `{train = 2, selection = 1, test = 1}`."""
    split_seed: Count = 0
    """Another seed is another draw."""
    limits: Limits = Limits()
    """The most tasks of each split; which ones is drawn by content, so it is the same sample every time."""
    duplicates: Duplicates = Duplicates.ERROR
    """`error`, or `drop` to keep the first of equal tasks of a split. Equal tasks in two splits are always an error."""


class Listed(msgspec.Struct, frozen=True, gc=False):
    """A task as its author lists it, before it has a place."""

    inputs: dict[str, Json]
    id: str = ""
    """Empty: named by its content."""
    split: Split | None = None
    """None: drawn."""
    kind: str = ""
    key: dict[str, Json] = {}
    """What only the judge may know."""
    where: str = ""
    """For messages, such as "train.jsonl:17"."""


class Arranged(msgspec.Struct, frozen=True):
    """Every task in its place. `content` names all that was listed, whatever the limits."""

    tasks: dict[Split, tuple[Task, ...]]
    keys: dict[str, dict[str, Json]]
    content: str


def as_split(value: object) -> Split | None:
    """The split that a task names, if it names one."""
    if value is None:
        return None
    try:
        return Split(value)
    except ValueError as error:
        raise ValueError(f"there is no split {value!r}, only {', '.join(Split)}") from error


def draw(fingerprint: str, shares: Shares, seed: int) -> Split:
    """The split of a task by its content alone."""
    weights = (shares.train, shares.selection, shares.test, shares.confirm)
    point = _unit(content_key("draw", seed, fingerprint)) * sum(weights)
    for split, weight in zip(Split, weights, strict=True):
        if point < weight:
            return split
        point -= weight
    return next(split for split, weight in zip(reversed(Split), reversed(weights), strict=True) if weight > 0)


def arrange(listed: Iterable[Listed], settings: SplitSettings) -> Arranged:
    """Put every listed task in its place, or raise InputError with the first few of all the problems."""
    placed = _Placed(settings)
    for one in listed:
        placed.add(one)
    raise_problems(placed.problems, "the list of tasks")
    limits = settings.limits
    bounds = (limits.train, limits.selection, limits.test, limits.confirm)
    tasks = {
        split: _sample(placed.tasks[split], bound, settings.split_seed)
        for split, bound in zip(Split, bounds, strict=True)
    }
    return Arranged(tasks, placed.keys, placed.content())


def raise_problems(problems: Sequence[str], what: str) -> None:
    """One error for all of them: the first few in full, the rest counted."""
    if not problems:
        return
    if len(problems) == 1:
        raise InputError(problems[0])
    rest = len(problems) - SHOWN_PROBLEMS
    more = [f"and {rest} more"] if rest > 0 else []
    lines = "\n  ".join([*problems[:SHOWN_PROBLEMS], *more])
    raise InputError(f"{len(problems)} problems in {what}:\n  {lines}")


def require_tasks(world: World, split: Split) -> Sequence[Task]:
    """The tasks of a split that cannot be done without."""
    tasks = world.tasks(split)
    if not tasks:
        others = ", ".join(f"{len(world.tasks(other))} in {other}" for other in Split if other is not split)
        raise InputError(
            f"world {world.name} has no {split} tasks ({others})",
            hint=f"Add some, give {split} a share in world.split_ratio, or try another world.split_seed",
        )
    return tasks


class _Placed:
    """Tasks as they are placed one by one, and what is wrong with them."""

    def __init__(self, settings: SplitSettings) -> None:
        self.settings = settings
        self.tasks: dict[Split, list[Task]] = {split: [] for split in Split}
        self.keys: dict[str, dict[str, Json]] = {}
        self.problems: list[str] = []
        self._by_content: dict[str, Task] = {}
        self._where: dict[str, str] = {}
        self._contents: list[tuple[str, bytes]] = []

    def add(self, one: Listed) -> None:
        try:
            content = Task("", Split.TRAIN, one.inputs).fingerprint
            key = content_key("key", one.kind, one.key)
        except (TypeError, OverflowError) as error:
            self.problems.append(f"{_named(one.id, one.where)}: inputs and keys must be JSON values: {error}")
            return
        split = one.split or draw(content, self.settings.split_ratio, self.settings.split_seed)
        task = Task(one.id or content[:12], split, one.inputs, one.kind)
        twin = self._by_content.setdefault(content, task)
        if twin is not task:
            self._duplicate(one, task, twin)
        elif task.id in self.keys:
            name, other = _named(task.id, one.where), self._where[task.id]
            self.problems.append(f"{name}: the id '{task.id}' is taken{f' by {other}' if other else ''}")
        else:
            self._where[task.id] = one.where
            self.keys[task.id] = one.key
            self.tasks[split].append(task)
            self._contents.append((content, key))

    def content(self) -> str:
        return content_key("tasks", sorted(self._contents)).hex()

    def _duplicate(self, one: Listed, task: Task, twin: Task) -> None:
        mine, other = _named(task.id, one.where), _named(twin.id, self._where[twin.id])
        if task.split is not twin.split:
            self.problems.append(f"{mine} in {task.split} is the same task as {other} in {twin.split}")
        elif one.key != self.keys[twin.id]:
            self.problems.append(f"{mine} is the same task as {other} with another answer")
        elif self.settings.duplicates is Duplicates.ERROR:
            self.problems.append(f"{mine} is the same task as {other} (duplicates = 'drop' keeps the first)")


def _named(task_id: str, where: str) -> str:
    if where and task_id:
        return f"{where} (task {task_id})"
    return where or f"task {task_id or 'without an id'}"


def _sample(tasks: list[Task], bound: int | None, seed: int) -> tuple[Task, ...]:
    if bound is None or len(tasks) <= bound:
        return tuple(tasks)
    chosen = {task.id for task in sorted(tasks, key=lambda task: content_key("limit", seed, task.fingerprint))[:bound]}
    return tuple(_kept(tasks, chosen))


def _kept(tasks: Iterable[Task], ids: set[str]) -> Iterator[Task]:
    return (task for task in tasks if task.id in ids)


def _unit(key: bytes) -> float:
    return int.from_bytes(key[:6], "big") / 2**48
