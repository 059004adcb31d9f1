"""Runs Python as an ordinary user: `python ordinary.py nobody script.py arguments`. Started by root, it becomes nobody
first; `python ordinary.py root …` stays root.

A Python below a folder that only root may enter is made reachable in a view of the file system that is this process's
own; nothing is changed for others.
"""

from __future__ import annotations

import ctypes
import os
import stat
import sys
import tempfile
from pathlib import Path

NOBODY = 65534
_NEW_MOUNTS = 0x20000
_BIND, _MOVE, _RECURSIVE, _PRIVATE = 0x1000, 0x2000, 0x4000, 0x40000
_libc = ctypes.CDLL(None, use_errno=True)


def main() -> None:
    if os.geteuid() == 0:
        needed = {Path(sys.base_prefix), Path(sys.prefix), Path(__file__).resolve().parents[2]}
        closed = {folder for place in needed if (folder := _closed_above(place))}
        if closed:
            _checked(_libc.unshare(_NEW_MOUNTS))
            _mount(b"none", b"/", _RECURSIVE | _PRIVATE)
        for folder in closed:
            _open_up(folder, [place for place in needed if place.is_relative_to(folder)])
        if sys.argv[1] == "nobody":
            os.setgroups([])
            os.setresgid(NOBODY, NOBODY, NOBODY)
            os.setresuid(NOBODY, NOBODY, NOBODY)
    os.execv(sys.executable, [sys.executable, *sys.argv[2:]])


def _closed_above(place: Path) -> Path | None:
    """The highest folder above it that others may not enter."""
    return next((each for each in reversed(place.parents) if not each.stat().st_mode & stat.S_IXOTH), None)


def _open_up(folder: Path, places: list[Path]) -> None:
    """Covers the folder with an empty one that anybody may enter, in which there are only these."""
    held = Path(tempfile.mkdtemp())
    for number, place in enumerate(places):
        (held / str(number)).mkdir()
        _mount(str(place).encode(), str(held / str(number)).encode(), _BIND | _RECURSIVE)
    _mount(b"none", str(folder).encode(), 0, b"tmpfs", b"mode=755")
    for number, place in enumerate(places):
        place.mkdir(parents=True, exist_ok=True)
        _mount(str(held / str(number)).encode(), str(place).encode(), _MOVE)
        (held / str(number)).rmdir()
    held.rmdir()


def _mount(source: bytes, target: bytes, flags: int, kind: bytes | None = None, options: bytes | None = None) -> None:
    _checked(_libc.mount(source, target, kind, flags, options))


def _checked(done: int) -> None:
    if done != 0:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))


if __name__ == "__main__":
    main()
