"""Looking at processes from outside."""

from __future__ import annotations

import contextlib
from pathlib import Path

from whet.sandbox.inside.warden import below as descendants


def below(top: int, *, named: str) -> set[int]:
    """Processes under that one whose command has the word."""
    found: set[int] = set()
    for pid in descendants(top):
        with contextlib.suppress(OSError):
            if named.encode() in Path(f"/proc/{pid}/cmdline").read_bytes():
                found.add(pid)
    return found


def gone(pid: int) -> bool:
    """Ended, or waiting to be buried by somebody else."""
    with contextlib.suppress(OSError):
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z"
    return True
