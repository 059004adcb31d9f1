"""Finds what a configuration names: `path/to/file.py:attr`, `path/to/file.py` or `package.module:attr`.

The only place that imports code on the word of a configuration.
"""

from __future__ import annotations

import importlib
import importlib.util
import sys
import traceback
from collections.abc import Generator
from contextlib import contextmanager
from hashlib import blake2b
from pathlib import Path
from types import ModuleType
from typing import Any

from whet.core import ConfigError, InputError
from whet.project.settings import nearest


def is_reference(use: str) -> bool:
    """Whether `use` says where the code is, rather than giving a name that is known."""
    return ":" in use or use.endswith(".py")


def find(use: str, base_dir: Path, *, where: str) -> tuple[ModuleType, Any]:
    """The module and the attribute that `use` names; the attribute is None if `use` is only a file."""
    place, _, attribute = use.rpartition(":") if ":" in use else (use, "", "")
    module = _from_file(base_dir / place, where) if place.endswith(".py") else _from_package(place, where)
    if not attribute:
        return module, None
    found = getattr(module, attribute, None)
    if found is None:
        names = [name for name in vars(module) if not name.startswith("_")]
        raise ConfigError(f"{where}: {place} has no '{attribute}'", hint=nearest(attribute, names))
    return module, found


def _from_file(path: Path, where: str) -> ModuleType:
    if not path.is_file():
        raise ConfigError(f"{where}: there is no file {path}", hint="The path is relative to the folder of whet.toml")
    name = f"whet_project_{path.stem}_{blake2b(str(path.resolve()).encode(), digest_size=6).hexdigest()}"
    spec = importlib.util.spec_from_file_location(name, path)
    if spec is None or spec.loader is None:
        raise ConfigError(f"{where}: {path} cannot be imported")
    module = importlib.util.module_from_spec(spec)
    # Type hints and pickles look a module up by its name, so it has to stand in this table while it is in use.
    sys.modules[name] = module
    with _import_errors(str(path)):
        spec.loader.exec_module(module)
    return module


def _from_package(name: str, where: str) -> ModuleType:
    try:
        with _import_errors(name):
            return importlib.import_module(name)
    except InputError as error:
        if isinstance(error.__cause__, ModuleNotFoundError) and name.startswith(str(error.__cause__.name)):
            hint = "Install it, or give a file: 'path/to/file.py:attr'"
            raise ConfigError(f"{where}: there is no module {name}", hint=hint) from error
        raise


@contextmanager
def _import_errors(name: str) -> Generator[None]:
    try:
        yield
    except SyntaxError as error:
        raise InputError(f"{error.filename}:{error.lineno}: {error.msg}") from error
    except ModuleNotFoundError as error:
        hint = "Files beside it are not found from a single file: make them a package, and name 'package.module:attr'"
        raise InputError(f"{_line(error, name)}: {error}", hint=hint) from error
    except (Exception, SystemExit) as error:
        raise InputError(f"{_line(error, name)}: {type(error).__name__}: {error}") from error


def _line(error: BaseException, name: str) -> str:
    """The line of the user's own file if it is on the way to the error, else the last one."""
    frames = traceback.extract_tb(error.__traceback__)
    own = [frame for frame in frames if frame.filename == name] or list(frames)
    return f"{own[-1].filename}:{own[-1].lineno}"
