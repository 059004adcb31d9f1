"""What is said between whet and the zygote: typed, small, in JSON; descriptors travel beside it."""

from __future__ import annotations

from enum import StrEnum
from typing import TypeAlias

import msgspec

from whet.core import Json


class Level(StrEnum):
    """How strongly code is confined, strongest first; the strongest that the machine allows is taken."""

    NAMESPACES = "namespaces"
    """Bubblewrap's namespaces, and within them all of `kernel`."""
    KERNEL = "kernel"
    """Landlock, a filter of system calls, limits, and a user id of its own where whet is root."""
    PROCESS = "process"
    """A process with limits and nothing in its environment. Not a wall."""


class Limits(msgspec.Struct, frozen=True):
    """What confined code may use. Exceeding one ends it, and the outcome says which."""

    seconds: float = 10.0
    """Of wall time, for a run or for one request to a worker."""
    cpu_seconds: int = 10
    memory: int = 512 << 20
    """Bytes that it may have beyond what it begins with."""
    processes: int = 1
    """At once, threads included. 1: it can have no children and execute no program, but as many threads as it likes."""
    file_size: int = 64 << 20
    """Bytes of one file."""
    disk: int = 256 << 20
    """Bytes in its scratch folder, looked at several times a second."""
    output: int = 1 << 20
    """Bytes that it may print."""
    reply: int = 16 << 20
    """Bytes of its result."""


class Box(msgspec.Struct, frozen=True):
    """The walls around one confined process."""

    level: Level
    read: tuple[str, ...]
    """What it may read beside Python's library."""
    scratch: str
    """The one folder that it may write."""
    limits: Limits
    landlock: int = 0
    """The version of Landlock to build them with; 0: without."""
    user: int | None = None
    """The user id that is its own for as long as it lives, where whet is root."""


class RunOrder(msgspec.Struct, frozen=True, tag="run"):
    """Fork one, and let it run the program that its channel brings. Comes with its channel and its output."""

    id: int
    box: Box


class HostOrder(msgspec.Struct, frozen=True, tag="host"):
    """Fork a warden and under it a template. Comes with the warden's line and the template's."""

    id: int
    box: Box
    place: str
    settings: Json


class KillOrder(msgspec.Struct, frozen=True, tag="kill"):
    id: int


class Ready(msgspec.Struct, frozen=True, tag="ready"):
    """The zygote has loaded its modules, or could not."""

    problem: str = ""


class Ended(msgspec.Struct, frozen=True, tag="ended"):
    """A process that the zygote forked is gone: its wait status, and what it used."""

    id: int
    status: int
    cpu_seconds: float
    cause: str = ""
    """Why the zygote killed it, if it did."""


LOST = "lost"
"""The cause of an end that nobody saw, because the zygote has gone itself."""


class ForkOrder(msgspec.Struct, frozen=True, tag="fork"):
    """To a template: fork a worker. Comes with the worker's channel."""

    id: int
    scratch: str
    limits: Limits


class Loaded(msgspec.Struct, frozen=True, tag="loaded"):
    """From a template: it is ready to be forked, or could not load."""

    problem: str = ""


class Forked(msgspec.Struct, frozen=True, tag="forked"):
    id: int
    pid: int
    problem: str = ""


class Request(msgspec.Struct, frozen=True):
    """To a run, on its channel, once its walls are up."""

    source: str
    entry: str
    arguments: dict[str, Json]


class Answer(StrEnum):
    DONE = "done"
    RAISED = "raised"
    MEMORY = "memory"
    BAD_RESULT = "bad_result"


class Reply(msgspec.Struct, frozen=True):
    """From a run, on its channel. Foreign code has run by then: it says what it likes."""

    answer: Answer
    value: msgspec.Raw = msgspec.Raw(b"null")
    error: str = ""


ToZygote: TypeAlias = RunOrder | HostOrder | KillOrder
FromZygote: TypeAlias = Ready | Ended
FromTemplate: TypeAlias = Loaded | Forked
