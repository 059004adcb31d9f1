"""Keeps what was asked and answered, for those who switch it on: redacted before a byte is written, and not for ever.

One JSON line a request. The file that is written to is followed by older ones beside it, `FILE.1700000000`, and the
oldest go first, by size and by age.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, cast

import msgspec
from msgspec import Raw

from whet.core import Clock, ConfigError, WhetError
from whet.models.wires.base import EventReader
from whet.project import find

Redact = Callable[[dict[str, Any]], "dict[str, Any] | None"]
_DAY = 86_400.0
_PARTS = 8
"""Files that the kept bytes and days are spread over: so much of them is let go at once."""


class Retention(msgspec.Struct, frozen=True):
    megabytes: float = 100.0
    days: float = 30.0


class Capture:
    """Belongs to one process. What the redaction refuses or breaks at is not written."""

    def __init__(self, file: Path, clock: Clock, *, redact: Redact | None, retention: Retention) -> None:
        self._file = file
        self._clock = clock
        self._redact = redact
        self._most_bytes = int(retention.megabytes * 1e6)
        self._most_seconds = retention.days * _DAY
        self._descriptor = -1
        self._begun = 0.0
        self._size = 0
        self._tended = 0.0
        if file.is_file() and file.stat().st_size:
            # Nobody knows any more when it was begun: it is older by an eighth of the days at most.
            file.rename(self._free_name(int(file.stat().st_mtime)))
        self._open()

    def add(self, entry: dict[str, Any]) -> None:
        """Raises WhetError where it was not written."""
        line = self._line(entry)
        if line is None:
            return
        try:
            self._write(line)
        except OSError as error:
            raise WhetError(f"{self._file} cannot be written: {error.strerror}") from error

    def _write(self, line: bytes) -> None:
        self.tend()
        if self._size and self._size + len(line) > self._most_bytes // _PARTS:
            self._turn()
        if not self._size:
            self._begun = self._clock.wall()
        os.write(self._descriptor, line)
        self._size += len(line)

    def _line(self, entry: dict[str, Any]) -> bytes | None:
        try:
            kept = self._redact(entry) if self._redact else entry
            return None if kept is None else msgspec.json.encode(kept) + b"\n"
        except Exception as error:
            # The hook is the user's code, and whatever it breaks at is not kept.
            raise WhetError(f"the redaction broke, and nothing was written: {type(error).__name__}") from error

    def tend(self) -> None:
        """Let go what is too old or too much. To be called also where nobody asks; looks at the disk once a minute."""
        now = self._clock.wall()
        if self._size and now - self._begun > self._most_seconds / _PARTS:
            self._turn()
        if now - self._tended < min(60.0, self._most_seconds / _PARTS):
            return
        self._tended = now
        older = self._older()
        for path, begun in older:
            if now - begun > self._most_seconds * (1 - 1 / _PARTS):
                path.unlink(missing_ok=True)
        kept = [path for path, _ in older if path.exists()]
        sizes = sum(path.stat().st_size for path in kept) + self._size
        while kept and sizes > self._most_bytes * (1 - 1 / _PARTS):
            oldest = kept.pop(0)
            sizes -= oldest.stat().st_size
            oldest.unlink(missing_ok=True)

    def close(self) -> None:
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1

    def _turn(self) -> None:
        """Begin a new file."""
        self.close()
        self._file.rename(self._free_name(int(self._begun)))
        self._open()
        self._tended = 0.0

    def _open(self) -> None:
        try:
            self._file.parent.mkdir(parents=True, exist_ok=True)
            flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND | getattr(os, "O_NOFOLLOW", 0)
            self._descriptor = os.open(self._file, flags, 0o600)
            os.fchmod(self._descriptor, 0o600)
        except OSError as error:
            raise ConfigError(f"--capture: {self._file} cannot be written: {error.strerror}") from error
        self._size = 0

    def _free_name(self, number: int) -> Path:
        while (beside := self._file.with_name(f"{self._file.name}.{number}")).exists():
            number += 1
        return beside

    def _older(self) -> list[tuple[Path, float]]:
        """Files of before with the moment at which each was begun, the oldest first."""
        found = self._file.parent.glob(f"{self._file.name}.*")
        numbered = [(path, path.name.rpartition(".")[2]) for path in found]
        dated = [(path, float(number)) for path, number in numbered if number.isdecimal()]
        return sorted(dated, key=lambda one: one[1])


def said(asked: Mapping[str, Raw], answer: bytes, *, stream: bool) -> dict[str, Any]:
    """A request and its answer as plain values, which a redaction can work on; a stream as its events."""
    try:
        request = {name: msgspec.json.decode(raw) for name, raw in asked.items()}
        if not stream:
            return {"request": request, "answer": msgspec.json.decode(answer)}
        events = [event for event in EventReader().feed(answer) if event != b"[DONE]"]
        return {"request": request, "events": [msgspec.json.decode(event) for event in events]}
    except (msgspec.DecodeError, UnicodeError, RecursionError) as error:
        raise WhetError("a request or its answer cannot be read, and nothing was written") from error


def redaction(reference: str, base_dir: Path) -> Redact:
    """The user's function: it is given an entry, and returns what may be written of it, or None."""
    _, function = find(reference, base_dir, where="--redact")
    if not callable(function):
        raise ConfigError(f"--redact: {reference} is not a function", hint="Write file.py:function.")
    return cast("Redact", function)
