"""Which model a file is, by its content, so that an adapter never meets another base."""

from __future__ import annotations

import hashlib
import os
from contextlib import suppress
from pathlib import Path

import msgspec

from whet.core import InputError, fingerprint


class Seen(msgspec.Struct, frozen=True):
    """What is kept beside a large file, so that it is read through once."""

    size: int
    changed: int
    """Nanoseconds since 1970."""
    sha256: str
    original: str = ""
    """The hash of the file that this one was made from, by storing the same weights in another type."""


def base_of(file: Path) -> str:
    """The fingerprint of weights and chat template, which a GGUF file holds both. Raises InputError.

    A file made from another by storing its weights in another type stays the same base.
    """
    seen = look(file)
    return fingerprint("base", seen.original or seen.sha256)


def look(file: Path) -> Seen:
    try:
        found = file.stat()
        known = _kept(file)
        if known is not None and (known.size, known.changed) == (found.st_size, found.st_mtime_ns):
            return known
        return remember(file, sha256_of(file))
    except OSError as error:
        raise InputError(f"{file} cannot be read: {error.strerror}", hint="Pull it with `whet models pull`.") from error


def remember(file: Path, sha256: str, original: str = "") -> Seen:
    """Keep a hash that is known; where nothing can be written beside the file, it is found anew each time."""
    found = file.stat()
    seen = Seen(found.st_size, found.st_mtime_ns, sha256, original)
    partial = _beside(file).with_suffix(f".{os.getpid()}.partial")
    with suppress(OSError):
        partial.write_bytes(msgspec.json.encode(seen))
        partial.replace(_beside(file))
    return seen


def sha256_of(file: Path) -> str:
    with file.open("rb") as opened:
        return hashlib.file_digest(opened, "sha256").hexdigest()


def _kept(file: Path) -> Seen | None:
    try:
        return msgspec.json.decode(_beside(file).read_bytes(), type=Seen)
    except (OSError, msgspec.DecodeError):
        return None


def _beside(file: Path) -> Path:
    return file.with_name(f".{file.name}.seen")
