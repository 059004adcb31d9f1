"""Names to worlds: `load_world` makes the world that a configuration names, `known_worlds` lists what can be named.

There is no table that decorators write to: a world is found among the built-in names below, among the entry points of
installed packages (group `whet.worlds`), or at the place that the configuration gives.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator, Mapping
from importlib.metadata import EntryPoint, entry_points
from pathlib import Path
from types import ModuleType
from typing import Any, cast, get_type_hints

import msgspec

from whet.core import ConfigError, InputError, Model, UserError, World
from whet.project import decode_settings, find, is_reference, nearest
from whet.worlds.authoring import AuthoredWorld
from whet.worlds.calling import faults
from whet.worlds.jsonl import QuestionSettings, questions
from whet.worlds.marking import Marked, mark_of
from whet.worlds.splits import SplitSettings

GROUP = "whet.worlds"

BUILT_IN = {
    "jsonl": "whet.worlds.jsonl:JsonlWorld",
    "grid_ctf": "whet.worlds.games.grid_ctf:GridCtf",
    "othello_opening": "whet.worlds.games.othello_opening:OthelloOpening",
    "othello": "whet.worlds.games.othello:Othello",
    "house_commands": "whet.worlds.drills.house_commands:HouseCommands",
    "orders": "whet.worlds.drills.orders:Orders",
    "dates": "whet.worlds.drills.dates:Dates",
    "house_codes": "whet.worlds.drills.house_codes:HouseCodes",
    "measures": "whet.worlds.drills.measures:Measures",
    "tickets": "whet.worlds.drills.tickets:Tickets",
    "awm": "whet.worlds.awm:AwmWorld",
    "mcp": "whet.worlds.remote.mcp:McpWorld",
    "reasoning_gym": "whet.worlds.reasoning_gym:ReasoningGym",
    "alfworld": "whet.worlds.alfworld:AlfWorld",
    "textworld": "whet.worlds.textworld:TextWorld",
    "openenv": "whet.worlds.remote.openenv:OpenEnvWorld",
    "pack": "whet.worlds.pack:pack",
}

_CONTEXT = ("base_dir", "judge")
"""What a world may ask for by name beside its settings: the folder of whet.toml, and the model that judges."""


class WorldInfo(msgspec.Struct, frozen=True):
    """A world that can be named, for lists and reference pages."""

    name: str
    description: str
    settings: type[msgspec.Struct] | None
    origin: str
    """`built-in`, or the package that brings it."""
    problem: str = ""
    """Why it cannot be used, if it cannot."""


def load_world(use: str, settings: Mapping[str, Any], *, base_dir: Path, judge: Model | None = None) -> World:
    """The world that `use` names, with the rest of its table of whet.toml as `settings`."""
    author = _find_author(use, base_dir)
    marked = _marked(author, use)
    kind = settings_type(author)
    values = {**marked.defaults, **settings}
    if kind is None and values:
        raise ConfigError(f"world.{next(iter(values))}: the world {marked.name} has no settings")
    decoded = None if kind is None else decode_settings(kind, values, where="world")
    arguments = _arguments(author, decoded, {"base_dir": base_dir, "judge": judge})
    with faults(marked.name, "loading it"):
        made = author(**arguments)
    return _as_world(made, marked, decoded, base_dir, judge)


def known_worlds() -> list[WorldInfo]:
    """Every world that can be named, those that cannot be loaded included."""
    built_in = [_describe(name, "built-in", place) for name, place in BUILT_IN.items()]
    installed = [_describe(entry.name, _package(entry), entry.value) for entry in _installed()]
    return built_in + sorted(installed, key=lambda info: info.name)


def settings_type(author: Callable[..., Any]) -> type[msgspec.Struct] | None:
    """The struct of a world's settings: the one its parameters name, or one made of its parameters."""
    parameters = _setting_parameters(author)
    own = _own_struct(parameters)
    if own is not None:
        return own[1]
    base = _base_settings(author)
    if not parameters and base is None:
        return None
    fields: list[tuple[str, Any] | tuple[str, Any, Any]] = [
        (name, hint) if parameter.default is parameter.empty else (name, hint, parameter.default)
        for name, (parameter, hint) in parameters.items()
    ]
    bases = (base,) if base is not None else None
    name = f"{author.__name__}Settings"
    return msgspec.defstruct(name, fields, bases=bases, frozen=True, kw_only=True, forbid_unknown_fields=True)


def _base_settings(author: Callable[..., Any]) -> type[msgspec.Struct] | None:
    """What every world of this form understands; a function that returns a world answers for itself."""
    if inspect.isclass(author):
        return None if _is_world(author) else SplitSettings
    return QuestionSettings if inspect.isgeneratorfunction(author) else None


def _find_author(use: str, base_dir: Path) -> Callable[..., Any]:
    if is_reference(use):
        module, found = find(use, base_dir, where="world.use")
        return found if found is not None else _only_marked(module, use)
    if use in BUILT_IN:
        return _at(BUILT_IN[use])
    installed = {entry.name: entry for entry in _installed()}
    if use in installed:
        return _at(installed[use].value)
    hint = f"{nearest(use, [*BUILT_IN, *installed])}; one of your own is named by its file: 'worlds/mine.py:Mine'"
    raise ConfigError(f"world.use: there is no world '{use}'", hint=hint)


def _only_marked(module: ModuleType, use: str) -> Callable[..., Any]:
    marked = {name: value for name, value in vars(module).items() if mark_of(value) is not None}
    if len(marked) != 1:
        names = ", ".join(marked) or "none"
        hint = f"Name one after a colon: '{use}:Name'"
        raise ConfigError(f"world.use: {use} must have one @whet.world, and has {len(marked)} ({names})", hint=hint)
    return next(iter(marked.values()))


def _marked(author: object, use: str) -> Marked:
    if not callable(author):
        raise ConfigError(f"world.use: {use} is {type(author).__name__}, not a class or function")
    mark = mark_of(author)
    if mark is None:
        raise ConfigError(f"world.use: {use} is not a world", hint='Put @whet.world("name") above it')
    return mark


def _setting_parameters(author: Callable[..., Any]) -> dict[str, tuple[inspect.Parameter, Any]]:
    """The parameters that are settings, with their types."""
    function = author.__init__ if inspect.isclass(author) else author
    if function is object.__init__:
        return {}
    try:
        hints = get_type_hints(function, include_extras=True)
    except (NameError, TypeError) as error:
        raise InputError(f"{author.__qualname__}: its type hints cannot be read: {error}") from error
    found: dict[str, tuple[inspect.Parameter, Any]] = {}
    for name, parameter in inspect.signature(author).parameters.items():
        if name in _CONTEXT:
            continue
        if name not in hints:
            raise InputError(
                f"{author.__qualname__}: the setting '{name}' needs a type hint", hint=f"Such as {name}: int"
            )
        found[name] = (parameter, hints[name])
    return found


def _own_struct(
    parameters: dict[str, tuple[inspect.Parameter, Any]],
) -> tuple[str, type[msgspec.Struct]] | None:
    """The one parameter that takes all the settings, for authors who write their struct themselves."""
    if len(parameters) != 1:
        return None
    ((name, (_, hint)),) = parameters.items()
    if not inspect.isclass(hint) or not issubclass(hint, msgspec.Struct):
        return None
    return name, hint


def _arguments(author: Callable[..., Any], decoded: msgspec.Struct | None, context: dict[str, Any]) -> dict[str, Any]:
    parameters = _setting_parameters(author)
    own = _own_struct(parameters)
    given = {name: context[name] for name in inspect.signature(author).parameters if name in _CONTEXT}
    if own is not None:
        return {**given, own[0]: decoded}
    return {**given, **{name: getattr(decoded, name) for name in parameters}}


def _as_world(
    made: object,
    marked: Marked,
    decoded: msgspec.Struct | None,
    base_dir: Path,
    judge: Model | None,
) -> World:
    if _is_world(made):
        return cast("World", made)
    if inspect.isgenerator(made) and isinstance(decoded, QuestionSettings):
        rows = cast("Iterator[object]", made)
        return questions(marked.name, rows, decoded, base_dir=base_dir, judge=judge)
    splits = decoded if isinstance(decoded, SplitSettings) else None
    return AuthoredWorld(marked.name, made, splits=splits, settings=decoded)


def _is_world(made: object) -> bool:
    return callable(getattr(made, "open", None)) and hasattr(made, "fingerprint") and hasattr(made, "name")


def _at(place: str) -> Callable[..., Any]:
    return find(place, Path(), where="world.use")[1]


def _installed() -> list[EntryPoint]:
    return list(entry_points(group=GROUP))


def _package(entry: EntryPoint) -> str:
    return entry.dist.name if entry.dist is not None else entry.value


def _describe(name: str, origin: str, place: str) -> WorldInfo:
    try:
        author = _at(place)
        return WorldInfo(name, _first_line(author), settings_type(author), origin)
    except UserError as error:
        return WorldInfo(name, "", None, origin, problem=str(error))


def _first_line(author: object) -> str:
    return (inspect.getdoc(author) or "").partition("\n")[0]
