"""Text adventures made offline by the package textworld: a seed is a house, a quest in it is the task.

A game is made and compiled when its task is first opened, which takes seconds, and kept for later sessions.
"""

from __future__ import annotations

import asyncio
import tempfile
from collections.abc import Iterator
from importlib import import_module
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path
from types import ModuleType
from typing import Annotated, Any

import msgspec

from whet.core import ConfigError, Json, Task, ToolResult, Verdict, fingerprint
from whet.worlds.games.seeds import SeedSettings
from whet.worlds.games.strategies import seed_of, seed_tasks
from whet.worlds.marking import world
from whet.worlds.tools import tool

_BRIEF = """\
You play a text adventure, with the tool `act`: one command a call, such as "go east", "take key", "open door with key",
"look" or "inventory". The game is won when its quest is done. You need not write an answer.

{opening}"""


class TextWorldSettings(SeedSettings, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """How many games, and how large they are."""

    rooms: Annotated[int, msgspec.Meta(ge=1, le=30)] = 3
    """Rooms of a house."""
    objects: Annotated[int, msgspec.Meta(ge=1, le=100)] = 4
    """Things to be found in it."""
    quest: Annotated[int, msgspec.Meta(ge=1, le=20)] = 3
    """Commands that the quest takes."""
    show_commands: bool = False
    """Whether each answer lists the commands that the game would understand: much easier."""
    folder: str = ""
    """Where compiled games are kept, relative to whet.toml. Left out: they are made anew in each process."""


class Play:
    """One game under way."""

    def __init__(self, environment: Any, show_commands: bool) -> None:
        self._environment = environment
        self._show_commands = show_commands
        self._state = environment.reset()
        self.done = False

    @property
    def won(self) -> bool:
        return bool(self._state["won"])

    @property
    def share(self) -> float:
        """Of the game's points, those that were made."""
        most = self._state["max_score"]
        return min(1.0, max(0.0, self._state["score"] / most)) if most else float(self.won)

    @property
    def moves(self) -> int:
        return int(self._state["moves"])

    def act(self, command: str) -> str:
        self._state, _, self.done = self._environment.step(command)
        return self.seen()

    def seen(self) -> str:
        """What the game says, without its prompt and its line of status."""
        said = str(self._state["feedback"]).rpartition("\n>")
        text = (said[0] or said[2]).strip()
        if not self._show_commands or self.done:
            return text
        return f"{text}\n\nYou can: {', '.join(self._state['admissible_commands'])}"

    def close(self) -> None:
        self._environment.close()


@world("textworld")
class TextWorld:
    """Text adventures made offline by the package textworld, played with one tool."""

    def __init__(self, settings: TextWorldSettings, base_dir: Path) -> None:
        self._settings = settings
        self._package = _package()
        self._kept = base_dir / settings.folder if settings.folder else None
        self._own: tempfile.TemporaryDirectory[str] | None = None
        self._making = asyncio.Lock()

    @property
    def content(self) -> Json:
        return ["textworld 1", version("textworld"), self._settings.show_commands]

    def tasks(self) -> Iterator[Task]:
        settings = self._settings
        for _, task in seed_tasks(settings, "textworld"):
            task.inputs.update(rooms=settings.rooms, objects=settings.objects, quest=settings.quest)
            yield task

    async def start(self, task: Task) -> Play:
        file = await self._game(task)
        names = ("feedback", "won", "score", "max_score", "moves", "admissible_commands")
        infos = self._package.EnvInfos(**dict.fromkeys(names, True))
        return Play(self._package.start(str(file), infos), self._settings.show_commands)

    def brief(self, state: Play) -> str:
        return _BRIEF.format(opening=state.seen())

    @tool
    def act(self, state: Play, command: str) -> ToolResult:
        """Say a command to the game, and hear what happens.

        Args:
            command: what to do, such as "go east" or "take the key"
        """
        line = " ".join(command.split())
        return ToolResult(state.act(line), ends=state.done) if line else ToolResult("Say something.")

    def judge(self, state: Play) -> Verdict:
        facts: dict[str, Json] = {"moves": state.moves, "finished": state.done}
        reason = "won" if state.won else "lost" if state.done else "unfinished"
        return Verdict(state.won, 1.0 if state.won else state.share, f"{reason}: {state.moves} moves", facts)

    def close(self, state: Play) -> None:
        state.close()

    def aclose(self) -> None:
        if self._own is not None:
            self._own.cleanup()
            self._own = None

    async def _game(self, task: Task) -> Path:
        """The compiled game of a task. One is made at a time: the package keeps state while it makes one."""
        file = self._folder() / f"{fingerprint('textworld', version('textworld'), task.inputs)}.z8"
        async with self._making:
            if not file.exists():
                await asyncio.to_thread(self._make, task, file)
        return file

    def _folder(self) -> Path:
        if self._kept is not None:
            self._kept.mkdir(parents=True, exist_ok=True)
            return self._kept
        if self._own is None:
            self._own = tempfile.TemporaryDirectory(prefix="whet-textworld-")
        return Path(self._own.name)

    def _make(self, task: Task, file: Path) -> None:
        """Under another name first, so that a game which is there is whole."""
        options = self._package.GameOptions()
        options.seeds = seed_of(task)
        options.nb_rooms, options.nb_objects = self._settings.rooms, self._settings.objects
        options.quest_length = self._settings.quest
        with tempfile.TemporaryDirectory(dir=file.parent) as making:
            options.path = str(Path(making) / "game.z8")
            self._package.make(options)
            (Path(making) / "game.json").rename(file.with_suffix(".json"))
            (Path(making) / "game.z8").rename(file)


def _package() -> ModuleType:
    if find_spec("textworld") is None:
        raise ConfigError("the world textworld needs its package", hint="pip install 'whet[textworld]'")
    return import_module("textworld")
