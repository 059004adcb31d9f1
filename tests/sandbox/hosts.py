"""Hosts that the sandbox's tests load."""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import Any


class Echo:
    """Says what it loaded, where it works, and what it is asked."""

    def __init__(self, settings: Any) -> None:
        self.settings = settings
        self.loaded = 0
        self.asked = 0
        self.scratch = ""

    def load(self) -> None:
        self.loaded = os.getpid()

    def start(self, scratch: str) -> None:
        self.scratch = scratch

    def answer(self, request: bytes) -> bytes:
        self.asked += 1
        return b"%s %d" % (request, self.asked)


class Doing(Echo):
    """Executes what it is asked, with itself as `host`, and answers with what is then called `said`."""

    def answer(self, request: bytes) -> bytes:
        names: dict[str, Any] = {"host": self, "os": os, "time": time, "Path": Path}
        exec(request.decode(), names)  # noqa: S102
        return str(names.get("said", "")).encode()


class CannotLoad(Echo):
    def load(self) -> None:
        raise RuntimeError(f"nothing at {os.getcwd()}")


class LoadsForeignCode(Echo):
    """As a world's generated program is: executed while loading."""

    def load(self) -> None:
        exec(self.settings, {"os": os, "time": time})  # noqa: S102
