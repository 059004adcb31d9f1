"""Private folders: made, handed to a user id, measured, and removed whatever is in them."""

from __future__ import annotations

import contextlib
import os
import stat
from collections.abc import Iterable
from pathlib import Path

_ENTRY = 4096
"""What each file and folder costs at least, so that a million empty ones count too."""


def hand_over(folder: Path, user: int) -> None:
    """Gives a folder and what is in it to a user; symbolic links are given, not followed."""
    for _, folders, files, place in os.fwalk(folder):
        os.fchown(place, user, user)
        for name in (*folders, *files):
            os.chown(name, user, user, dir_fd=place, follow_symlinks=False)


def bytes_held(folder: str, enough: int, pids: Iterable[int] = ()) -> int:
    """What is in a folder, and in files that processes have open but unlinked. Stops counting when it is enough."""
    total, left = 0, [folder]
    while left and total <= enough:
        with contextlib.suppress(OSError), os.scandir(left.pop()) as entries:
            for entry in entries:
                total += _ENTRY
                with contextlib.suppress(OSError):
                    if entry.is_dir(follow_symlinks=False):
                        left.append(entry.path)
                    else:
                        total += entry.stat(follow_symlinks=False).st_blocks * 512
                if total > enough:
                    break
    return total + sum(map(_unlinked, pids))


def _unlinked(pid: int) -> int:
    total = 0
    with contextlib.suppress(OSError):
        for name in os.listdir(f"/proc/{pid}/fd"):
            with contextlib.suppress(OSError):
                found = os.stat(f"/proc/{pid}/fd/{name}")
                total += found.st_blocks * 512 if stat.S_ISREG(found.st_mode) and found.st_nlink == 0 else 0
    return total


def remove(folder: Path) -> None:
    """However deep it is, and whatever the modes: each subfolder's content is moved up before it is removed."""
    with contextlib.suppress(FileNotFoundError):
        top = _opened(str(folder), None)
        try:
            _empty(top)
        finally:
            os.close(top)
        os.rmdir(folder)


def _empty(top: int) -> None:
    count = 0
    while names := os.listdir(top):
        for name in names:
            if not _is_folder(name, top):
                os.unlink(name, dir_fd=top)
                continue
            inner = _opened(name, top)
            try:
                for below in os.listdir(inner):
                    if not _is_folder(below, inner):
                        os.unlink(below, dir_fd=inner)
                        continue
                    count += 1
                    # A folder can only be moved by who may write it.
                    os.close(_opened(below, inner))
                    os.rename(below, _free_name(count, top), src_dir_fd=inner, dst_dir_fd=top)
            finally:
                os.close(inner)
            os.rmdir(name, dir_fd=top)


def _opened(name: str, place: int | None) -> int:
    """A folder, made accessible if it is not, and never by way of a link that took its place."""
    how = os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
    held = os.open(name, (os.O_PATH if hasattr(os, "O_PATH") else os.O_RDONLY) | how, dir_fd=place)
    try:
        if stat.S_IMODE(os.fstat(held).st_mode) & 0o700 != 0o700:
            os.chmod(f"/proc/self/fd/{held}" if hasattr(os, "O_PATH") else held, 0o700)
        return os.open(name, os.O_RDONLY | how, dir_fd=place)
    finally:
        os.close(held)


def _free_name(count: int, top: int) -> str:
    name = f".moved-{count}"
    while _is_there(name, top):
        name += "-"
    return name


def _is_there(name: str, place: int) -> bool:
    try:
        os.stat(name, dir_fd=place, follow_symlinks=False)
    except FileNotFoundError:
        return False
    return True


def _is_folder(name: str, place: int) -> bool:
    return stat.S_ISDIR(os.stat(name, dir_fd=place, follow_symlinks=False).st_mode)
