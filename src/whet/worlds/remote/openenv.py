"""Any OpenEnv environment server as a world: its tasks, its sessions, and its rewards as verdicts."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Iterator, Sequence
from enum import StrEnum
from pathlib import Path
from typing import Annotated
from weakref import WeakKeyDictionary

import msgspec

from whet.core import ConfigError, InputError, Json, Session, Split, Task, fingerprint
from whet.worlds.games.seeds import SeedSettings, seeds
from whet.worlds.marking import world
from whet.worlds.reading import BadRow, Row, read_rows
from whet.worlds.remote.catalogue import Server
from whet.worlds.remote.episodes import Environment, OpenEnvSession
from whet.worlds.remote.link import connect
from whet.worlds.splits import Listed, SplitSettings, arrange, as_split, raise_problems

Seconds = Annotated[float, msgspec.Meta(gt=0)]


class Acts(StrEnum):
    """How the agent acts."""

    AUTO = "auto"
    TOOLS = "tools"
    FORM = "form"
    ANSWER = "answer"


class Reward(StrEnum):
    """Which of an episode's rewards counts."""

    LAST = "last"
    SUM = "sum"
    BEST = "best"


class OpenEnvSettings(SplitSettings, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Where the server is, what its tasks are, and how rewards become verdicts."""

    url: str
    """The server's address, such as `http://127.0.0.1:8000`."""
    token_env: str = ""
    """The environment variable that holds a token, which is sent as `Authorization: Bearer`."""
    tasks: str = ""
    """A .jsonl, .json or .csv file of tasks: `id`, `split` and `kind` are read, the rest is sent with the reset.

    Left out, and without `seeds`: the tasks that the server lists.
    """
    seeds: SeedSettings | None = None
    """Tasks that are seeds, as a table: `{train = 40, selection = 40, test = 100}`."""
    acts: Acts = Acts.AUTO
    """`tools`: the agent calls the environment's tools. `form`: it has one tool, `act`, with an action's fields.

    `answer`: no tools, its last words are the one action. `auto`: tools or form, as the server's actions say.
    """
    answer_field: str = ""
    """The field of an action that takes the agent's last words. Left out, with `answer`: the one text field."""
    brief_field: str = ""
    """The field of the first observation that is the brief. Left out: `brief`, else all of it."""
    instructions: str = ""
    """Put before every brief."""
    reward: Reward = Reward.LAST
    """Which of an episode's rewards counts: `last`, `sum` or `best`."""
    pass_mark: float = 1.0
    """Passed at this reward or more."""
    lowest: float = 0.0
    """The reward that is a soft score of 0; less is 0 as well."""
    highest: float = 1.0
    """The reward that is a soft score of 1; more is 1 as well."""
    sessions: Annotated[int, msgspec.Meta(ge=1)] = 16
    """Most sessions at once. Many servers take only one, unless they are told otherwise."""
    connect_seconds: Seconds = 10.0
    """How long a connection may take."""
    reset_seconds: Seconds = 60.0
    """How long a reset may take."""
    step_seconds: Seconds = 60.0
    """How long a step may take. An episode whose answer is later is lost, and played again."""
    frame_megabytes: Annotated[int, msgspec.Meta(ge=1)] = 16
    """The longest answer that is read."""

    def __post_init__(self) -> None:
        if self.tasks and self.seeds is not None:
            raise ValueError("give either a file of tasks or seeds")
        if not self.lowest < self.highest:
            raise ValueError("lowest must be less than highest")


@world("openenv")
class OpenEnvWorld:
    """Any OpenEnv environment server, by its address."""

    def __init__(self, settings: OpenEnvSettings, base_dir: Path) -> None:
        self._settings = settings
        self._headers = _headers(settings.token_env)
        server = Server(settings.url, self._headers, settings.connect_seconds)
        about = server.catalogue()
        self._environment = _environment(settings, about.calls_tools, about.takes_answers, about.text_fields)
        self._environment = msgspec.structs.replace(
            self._environment, where=about.name, description=about.description, action=about.action
        )
        self._socket_url = server.socket_url
        self._arranged = arrange(_tasks(settings, server, base_dir), settings)
        self._places: WeakKeyDictionary[asyncio.AbstractEventLoop, asyncio.Semaphore] = WeakKeyDictionary()
        deciding = (about.version, self._arranged.content, self._environment.deciding)
        self._fingerprint = fingerprint("world", "openenv 1", about.name, deciding)

    @property
    def name(self) -> str:
        return self._environment.where

    @property
    def fingerprint(self) -> str:
        return self._fingerprint

    def tasks(self, split: Split) -> Sequence[Task]:
        return self._arranged.tasks[split]

    async def open(self, task: Task, seed: int) -> Session:
        reset = self._reset(task, seed)
        places = self._places.setdefault(asyncio.get_running_loop(), asyncio.Semaphore(self._settings.sessions))
        await places.acquire()
        try:
            link = await connect(
                self._socket_url,
                self._headers,
                seconds=self._settings.connect_seconds,
                frame_bytes=self._settings.frame_megabytes << 20,
            )
            session = OpenEnvSession(self._environment, link, places.release)
        except BaseException:
            places.release()
            raise
        try:
            await session.begin(reset)
        except BaseException:
            await session.close()
            raise
        return session

    def _reset(self, task: Task, seed: int) -> dict[str, Json]:
        key = self._arranged.keys.get(task.id)
        if key is None:
            raise InputError(f"world {self.name} has no task {task.id}", hint="Take tasks from world.tasks(split)")
        named = key["reset"]
        assert isinstance(named, dict)
        deferred: dict[str, Json] = {"deferred": True} if self._environment.judges_answers else {}
        return {"seed": seed, **named, **deferred}


def _environment(
    settings: OpenEnvSettings, calls_tools: bool, takes_answers: bool, text_fields: list[str]
) -> Environment:
    acts = settings.acts
    if acts is Acts.AUTO:
        acts = Acts.TOOLS if calls_tools else Acts.FORM
    answer_field = settings.answer_field
    if acts is Acts.ANSWER and not answer_field:
        if len(text_fields) != 1:
            names = ", ".join(text_fields) or "none"
            hint = f"Set world.answer_field; text fields of an action here: {names}"
            raise ConfigError("world.acts: 'answer' needs to know the field that takes the answer", hint=hint)
        (answer_field,) = text_fields
    return Environment(
        tools=acts is Acts.TOOLS,
        form=acts is Acts.FORM,
        judges_answers=takes_answers,
        answer_field=answer_field,
        brief_field=settings.brief_field,
        instructions=settings.instructions.strip(),
        reward=settings.reward.value,
        pass_mark=settings.pass_mark,
        lowest=settings.lowest,
        highest=settings.highest,
        reset_seconds=settings.reset_seconds,
        step_seconds=settings.step_seconds,
    )


def _tasks(settings: OpenEnvSettings, server: Server, base_dir: Path) -> Iterator[Listed]:
    if settings.seeds is not None:
        yield from _seeded(settings.seeds)
    elif settings.tasks:
        yield from _from_file(base_dir / settings.tasks, settings.tasks)
    else:
        listed = list(server.tasks())
        if not listed:
            hint = "Set world.tasks to a file, or world.seeds to how many there are, such as {train = 40}"
            raise ConfigError("world.url: this server lists no tasks", hint=hint)
        yield from listed


def _seeded(settings: SeedSettings) -> Iterator[Listed]:
    for split in Split:
        for seed in seeds(settings, split):
            yield Listed({"seed": seed}, f"seed-{seed}", split, key={"reset": {"seed": seed}})


def _from_file(path: Path, shown: str) -> Iterator[Listed]:
    problems: list[str] = []
    for row in read_rows(path, shown):
        listed = _from_row(row)
        if isinstance(listed, str):
            problems.append(listed)
        else:
            yield listed
    raise_problems(problems, "the task file")


def _from_row(row: Row | BadRow) -> Listed | str:
    if isinstance(row, BadRow):
        return row.problem
    reset = {name: value for name, value in row.fields.items() if name not in ("id", "split", "kind")}
    try:
        split = as_split(row.fields.get("split"))
    except ValueError as error:
        return f"{row.where}: {error}"
    name, kind = (row.fields.get(field, "") for field in ("id", "kind"))
    return Listed(reset, str(name), split, str(kind), {"reset": reset}, row.where)


def _headers(token_env: str) -> dict[str, str]:
    if not token_env:
        return {}
    token = os.environ.get(token_env)
    if not token:
        raise ConfigError(f"world.token_env: the environment variable {token_env} is not set")
    return {"Authorization": f"Bearer {token}"}
