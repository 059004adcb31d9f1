"""ALFWorld's household games, where their data is: one game a task, played with the tool of the text adventures.

The games are those that `alfworld-download` of the package alfworld fetches; that package itself is not needed, for its
games are played by textworld. Splits are the data's own: seen rooms select, unseen ones test.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from hashlib import blake2b
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import msgspec

from whet.core import ConfigError, Json, Split, Task, ToolResult, Verdict
from whet.worlds.marking import world
from whet.worlds.textworld import Play
from whet.worlds.tools import tool

GAME = "game.tw-pddl"
FOLDERS = {Split.TRAIN: "train", Split.SELECTION: "valid_seen", Split.TEST: "valid_unseen"}
_UNPLAYABLE = ("movable", "Sliced")
"""Parts of names of folders whose games textworld cannot play."""
_SIGNS = {"_bar_": "|", "_minus_": "-", "_plus_": "+", "_dot_": ".", "_comma_": ","}
_BRIEF = """\
You do a task in a house, with the tool `act`: one command a call, such as "go to desk 1", "take mug 1 from desk 1",
"open drawer 2", "look" or "inventory"; "help" lists them. You are done when the task is. You need not write an answer.

{opening}"""

Engine = Callable[[Path], Any]


class AlfWorldSettings(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Where the games are, and how they are played; `limits` says how many of them."""

    path: str = "~/.cache/alfworld/json_2.1.1"
    """The folder with `train`, `valid_seen` and `valid_unseen`, relative to whet.toml."""
    show_commands: bool = False
    """Whether each answer lists the commands that the game would understand: much easier."""


class _Game(msgspec.Struct):
    solvable: bool = False


class HousePlay(Play):
    """It has no points: it is won or it is not."""

    @property
    def share(self) -> float:
        return float(self.won)


@world("alfworld")
class AlfWorld:
    """ALFWorld's tasks in a house, where the data of the package alfworld is present."""

    def __init__(self, settings: AlfWorldSettings, base_dir: Path) -> None:
        self._settings = settings
        self._folder = base_dir / Path(settings.path).expanduser()
        self._engine = self.engine()
        if not any((self._folder / name).is_dir() for name in FOLDERS.values()):
            hint = "`pip install alfworld` and `alfworld-download` put them there; or set world.path."
            raise ConfigError(f"world.path: there are no games of ALFWorld in {self._folder}", hint=hint)

    @property
    def content(self) -> Json:
        return ["alfworld 1", self._settings.show_commands]

    def engine(self) -> Engine:
        """What plays a game's file: textworld. Another may stand in for it."""
        return _textworld()

    def tasks(self) -> Iterator[Task]:
        for split, name in FOLDERS.items():
            for file, digest in _games(self._folder / name):
                place = file.parent.relative_to(self._folder).as_posix()
                kind = file.parent.relative_to(self._folder / name).parts[0].partition("-")[0]
                yield Task(place, split, {"game": place, "content": digest}, kind)

    def start(self, task: Task) -> HousePlay:
        environment = self._engine(self._folder / str(task.inputs["game"]) / GAME)
        return HousePlay(environment, self._settings.show_commands)

    def brief(self, state: HousePlay) -> str:
        return _BRIEF.format(opening=state.seen())

    @tool
    def act(self, state: HousePlay, command: str) -> ToolResult:
        """Say a command to the game, and hear what happens.

        Args:
            command: what to do, such as "go to desk 1" or "open drawer 2"
        """
        line = " ".join(command.split())
        return ToolResult(state.act(line), ends=state.done) if line else ToolResult("Say something.")

    def judge(self, state: HousePlay) -> Verdict:
        facts: dict[str, Json] = {"moves": state.moves, "finished": state.done}
        reason = "done" if state.won else "not done"
        return Verdict(state.won, state.share, f"{reason}: {state.moves} moves", facts)

    def close(self, state: HousePlay) -> None:
        state.close()


def _games(folder: Path) -> Iterator[tuple[Path, str]]:
    """Those that can be played and won, each with a digest of its content."""
    for file in sorted(folder.rglob(GAME)):
        if any(sign in str(file.relative_to(folder)) for sign in _UNPLAYABLE):
            continue
        content = file.read_bytes()
        try:
            solvable = msgspec.json.decode(content, type=_Game).solvable
        except (msgspec.DecodeError, UnicodeDecodeError) as error:
            raise ConfigError(f"{file} is no game: {error}", hint="Fetch it again: alfworld-download -f") from error
        if solvable:
            yield file, blake2b(content, digest_size=16).hexdigest()


def names_of(ids: Iterable[str]) -> dict[str, str]:
    """What things are called in the game, as ALFWorld numbers them: "mug 2" for `mug_bar__minus_01_dot_5…`."""
    names: dict[str, str] = {}
    counts: Counter[str] = Counter()
    for id in sorted(ids, reverse=True):
        kind, bar, _ = id.partition("_bar_")
        if not bar:
            names[id] = _readable(id)
            continue
        kind = f"{_readable(kind)}{'basin' if 'basin' in id else ''}"
        counts[kind] += 1
        names[id] = f"{kind} {counts[kind]}"
    return names


def _readable(text: str) -> str:
    for written, sign in _SIGNS.items():
        text = text.replace(written, sign)
    return text


def _textworld() -> Engine:
    """textworld's own engine for these games, which needs a planner beside it."""
    if find_spec("textworld") is None or find_spec("fast_downward") is None:
        raise ConfigError("the world alfworld needs textworld and its planner", hint="pip install 'textworld[pddl]'")
    package = import_module("textworld")

    def start(file: Path) -> Any:
        infos = package.EnvInfos(**dict.fromkeys(("feedback", "won", "moves", "admissible_commands"), True))
        environment = package.start(str(file), infos)
        known: Mapping[str, Any] = environment._entity_infos
        for id, name in names_of(known).items():
            known[id].name = name
        return environment

    return start
