"""Run folders: where they are, which one a training goes on with, what a new one is called."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import msgspec

from whet.core import ConfigError, InputError, StoreError
from whet.store import meta_of
from whet.training.config import changed_keys

RUNS = "runs"
STORE_FILE = "run.db"
CONFIG_COPY = "config.toml"
REPORT_FILE = "report.json"
REPORT_TEXT = "report.md"
BEST = "best"

_AUTOMATIC = re.compile(r"run-(\d+)")
_ALLOWED = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")


class Chosen(msgspec.Struct, frozen=True):
    path: Path
    note: str
    """Why this one, for people."""


def run_folders(base_dir: Path) -> list[Path]:
    """All runs of a project, the latest last."""
    found = [path.parent for path in (base_dir / RUNS).glob(f"*/{STORE_FILE}")]
    return sorted(found, key=lambda path: ((path / STORE_FILE).stat().st_mtime, path.name))


def choose_run(base_dir: Path, mine: dict[str, Any], name: str | None) -> Chosen:
    """The run that goes on with these settings, or the place of a new one."""
    if name is not None:
        return _named(base_dir, mine, name)
    runs = run_folders(base_dir)
    for path in reversed(runs):
        if _AUTOMATIC.fullmatch(path.name) and _readable_settings(path) == mine:
            return Chosen(path, f"going on with {path.name}")
    numbers = [int(match[1]) for path in runs if (match := _AUTOMATIC.fullmatch(path.name))]
    new = base_dir / RUNS / f"run-{max(numbers, default=0) + 1}"
    if not runs:
        return Chosen(new, f"new run {new.name}")
    before = _readable_settings(runs[-1])
    changed = [] if before is None else changed_keys(before, mine)
    why = f": since {runs[-1].name}, {', '.join(changed[:3])} changed" if changed else ""
    return Chosen(new, f"new run {new.name}{why}")


def _named(base_dir: Path, mine: dict[str, Any], name: str) -> Chosen:
    if not _ALLOWED.fullmatch(name):
        raise ConfigError(f"{name!r} cannot be the name of a run", hint="Letters, digits, dot, dash, underscore.")
    path = base_dir / RUNS / name
    if not (path / STORE_FILE).exists():
        return Chosen(path, f"new run {name}")
    before = stored_settings(path)
    changed = [] if before is None else changed_keys(before, mine)
    if changed:
        raise ConfigError(
            f"{name} was made with other settings: {', '.join(changed)}",
            hint="Set them back, or train under another name.",
        )
    return Chosen(path, f"going on with {name}")


def stored_settings(path: Path) -> dict[str, Any] | None:
    """None if it was ended before it had any: then nothing was done with others."""
    text = meta_of(path / STORE_FILE, "settings")
    return None if text is None else msgspec.json.decode(text, type=dict[str, Any])


def _readable_settings(path: Path) -> dict[str, Any] | None:
    """Also None where the file is damaged or a later whet's: it must not keep a new run from being made."""
    try:
        return stored_settings(path)
    except StoreError:
        return None


def find_run(base_dir: Path, name: str | None) -> Path:
    """The folder of a run by name or by path; without a name, the latest."""
    if name is None:
        runs = run_folders(base_dir)
        if not runs:
            raise InputError(f"there are no runs in {base_dir / RUNS}", hint="Start one with `whet train`.")
        return runs[-1]
    for path in (base_dir / RUNS / name, Path(name)):
        if (path / STORE_FILE).is_file():
            return path
    known = ", ".join(path.name for path in run_folders(base_dir)) or "none"
    raise InputError(f"there is no run {name!r}", hint=f"There are: {known}.")
