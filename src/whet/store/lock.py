"""One writer a run: a lock that the operating system lets go of when its process dies, however it dies."""

from __future__ import annotations

import os
import sys
import time
from pathlib import Path

from whet.core import StoreBusy


class WriterLock:
    """Holds `path` locked from construction until `release`."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._descriptor = os.open(path, os.O_RDWR | os.O_CREAT, 0o644)
        try:
            _lock_soon(self._descriptor)
        except OSError:
            holder = os.pread(self._descriptor, 32, 0).decode(errors="replace").strip()
            os.close(self._descriptor)
            raise StoreBusy(
                f"{path.parent.name} is being written by another process" + (f" (pid {holder})" if holder else ""),
                hint="Watch it with `whet watch`, or stop that process first.",
            ) from None
        os.ftruncate(self._descriptor, 0)
        os.write(self._descriptor, f"{os.getpid()}\n".encode())

    def release(self) -> None:
        os.ftruncate(self._descriptor, 0)
        os.close(self._descriptor)


def writer_of(path: Path) -> int | None:
    """The process that is writing a run just now, or None."""
    try:
        descriptor = os.open(path, os.O_RDWR)
    except OSError:
        return None
    try:
        _lock(descriptor)
    except OSError:
        text = os.pread(descriptor, 32, 0).decode(errors="replace").strip()
        return int(text) if text.isdigit() else 0
    finally:
        os.close(descriptor)
    return None


def _lock_soon(descriptor: int) -> None:
    """Whoever only asks who writes (`writer_of`) holds the lock for a moment; that is not a writer."""
    for _ in range(5):
        try:
            return _lock(descriptor)
        except OSError:
            time.sleep(0.02)
    return _lock(descriptor)


if sys.platform == "win32":
    import msvcrt

    def _lock(descriptor: int) -> None:
        msvcrt.locking(descriptor, msvcrt.LK_NBLCK, 1)
else:
    import fcntl

    def _lock(descriptor: int) -> None:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
