"""Files that llama.cpp keeps evaluated prompts in, under names that it is told.

On Linux they lie in memory, and nothing is left of them however the process ends. Elsewhere they lie in a folder that
is removed at the end.
"""

from __future__ import annotations

import os
import sys
import tempfile
from pathlib import Path
from typing import Protocol


class States(Protocol):
    folder: str
    """Where llama.cpp looks for the names, with a slash at its end."""

    def new(self) -> str: ...

    def drop(self, name: str) -> None: ...

    def close(self) -> None: ...


class InMemory:
    folder = "/proc/self/fd/"

    def __init__(self) -> None:
        self._open: set[int] = set()

    def new(self) -> str:
        if sys.platform != "linux":
            raise OSError("there are no files in memory here")
        descriptor = os.memfd_create("whet-prompt")
        self._open.add(descriptor)
        return str(descriptor)

    def drop(self, name: str) -> None:
        self._open.discard(int(name))
        os.close(int(name))

    def close(self) -> None:
        while self._open:
            os.close(self._open.pop())


class InFolder:
    def __init__(self) -> None:
        self._folder = tempfile.TemporaryDirectory(prefix="whet-prompts-")
        self.folder = self._folder.name + os.sep
        self._made = 0

    def new(self) -> str:
        self._made += 1
        return f"{self._made}.state"

    def drop(self, name: str) -> None:
        Path(self.folder, name).unlink(missing_ok=True)

    def close(self) -> None:
        self._folder.cleanup()


def states_here() -> States:
    return InMemory() if sys.platform == "linux" and os.path.isdir(InMemory.folder) else InFolder()
