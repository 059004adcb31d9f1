"""From whet.toml and `--set` to a `Config`. Nothing here reads the environment or starts anything."""

from __future__ import annotations

import json
import tomllib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, cast

import msgspec

from whet.core import ConfigError
from whet.project import decode_settings, nearest
from whet.training.config import Config

CONFIG_FILE = "whet.toml"


def load_config(path: Path, overrides: Sequence[str] = ()) -> Config:
    """Read `path`, what it extends, and `key.path=value` overrides."""
    table = read_toml(path)
    for override in overrides:
        table = _merged(table, _parse_override(override))
    return config_from(table)


def config_from(table: Mapping[str, Any]) -> Config:
    _require_tables(table)
    config = decode_settings(Config, table, where="")
    if not isinstance(config.world.get("use"), str):
        raise ConfigError("world.use: missing", hint='Say which world: use = "jsonl"; `whet world list` names them.')
    return config


def read_toml(path: Path, seen: tuple[Path, ...] = ()) -> dict[str, Any]:
    """One file with what it extends underneath."""
    if path.is_dir():
        path = path / CONFIG_FILE
    if path.resolve() in seen:
        raise ConfigError(f"{path.name} extends itself")
    try:
        table = tomllib.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise ConfigError(f"there is no {path}", hint="Make a project with `whet init`, or name its file.") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise ConfigError(f"{path.name} is not TOML: {error}") from error
    except OSError as error:
        raise ConfigError(f"{path} cannot be read: {error.strerror}") from error
    base = table.pop("extends", None)
    if base is None:
        return table
    if not isinstance(base, str):
        raise ConfigError(f"{path.name}: extends names a file, not {type(base).__name__}")
    return _merged(read_toml(path.parent / base, (*seen, path.resolve())), table)


def _merged(below: Mapping[str, Any], above: Mapping[str, Any]) -> dict[str, Any]:
    merged = dict(below)
    for key, value in above.items():
        under = merged.get(key)
        both = isinstance(value, dict) and isinstance(under, dict)
        merged[key] = _merged(cast("dict[str, Any]", under), cast("dict[str, Any]", value)) if both else value
    return merged


def _parse_override(text: str) -> dict[str, Any]:
    """`train.epochs=2` as nested tables; the value is TOML, or a bare text."""
    key, equals, written = text.partition("=")
    names = key.strip().split(".", 1)
    if not equals or len(names) != 2 or not all(names):
        raise ConfigError(f"--set {text}: not of the form table.key=value", hint="Such as --set train.epochs=2.")
    try:
        value = tomllib.loads(f"value = {written}")["value"]
    except tomllib.TOMLDecodeError:
        value = written.strip()
    table, rest = names
    if table == "prices":
        model, _, field = rest.rpartition(".")
        if not model:
            raise ConfigError(f"--set {text}: which model?", hint="Such as --set prices.openai/gpt-5.5.input=2.5.")
        return {table: {model.strip('"'): {field: value}}}
    return {table: _nested(rest.split("."), value)}


def _nested(names: Sequence[str], value: Any) -> dict[str, Any]:
    return {names[0]: value if len(names) == 1 else _nested(names[1:], value)}


def _require_tables(table: Mapping[str, Any]) -> None:
    known = {field.encode_name for field in msgspec.structs.fields(Config)}
    for name, value in table.items():
        if name not in known:
            raise ConfigError(f"[{name}]: there is no such table", hint=nearest(name, known))
        if not isinstance(value, dict):
            raise ConfigError(f"{name} is a table, not {type(value).__name__}", hint=f"Write it as [{name}].")
    for name in ("world", "target"):
        if name not in table:
            raise ConfigError(f"[{name}] is missing", hint="`whet init` makes a configuration to start from.")


def dump_toml(config: Config) -> str:
    """The configuration as resolved, as TOML that reads back to the same."""
    tables = cast("dict[str, dict[str, Any]]", msgspec.to_builtins(config))
    return "\n".join(section for name, values in tables.items() for section in _sections(name, values))


def _sections(path: str, values: Mapping[str, Any]) -> list[str]:
    plain = {key: value for key, value in values.items() if not isinstance(value, dict)}
    inner = {key: cast("dict[str, Any]", value) for key, value in values.items() if isinstance(value, dict)}
    lines = [f"{_key(key)} = {_value(value)}" for key, value in plain.items() if value is not None]
    own = [f"[{path}]\n" + "".join(f"{line}\n" for line in lines)] if lines or not inner else []
    return own + [text for key, table in inner.items() for text in _sections(f"{path}.{_key(key)}", table)]


def _key(key: str) -> str:
    bare = key.isascii() and key.replace("-", "_").isidentifier()
    return key if bare else _text(key)


def _value(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, list | tuple):
        return "[" + ", ".join(_value(item) for item in cast("Sequence[Any]", value)) + "]"
    if isinstance(value, dict):
        items = cast("dict[str, Any]", value).items()
        return "{" + ", ".join(f"{_key(key)} = {_value(item)}" for key, item in items if item is not None) + "}"
    if isinstance(value, int | float):
        return repr(value)
    return _text(str(value))


def _text(text: str) -> str:
    """TOML's escapes are JSON's, but it has no pairs of them for one character, and wants DEL escaped."""
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")
