"""Packages: folders named by what is in them. What is written is there whole or not at all."""

from __future__ import annotations

import hashlib
import os
import re
import shutil
from collections.abc import Iterable, Mapping
from pathlib import Path

from whet.core import InputError, StoreFull, fingerprint

_PART = re.compile(r"[A-Za-z0-9_][A-Za-z0-9._ -]{0,99}")
_CHUNK = 1 << 20
MOST_FILES = 1000


def package_name(files: Mapping[str, str]) -> str:
    return fingerprint("package", sorted(files.items()))


def check_path(path: str) -> str:
    """A path inside a package: plain names only, so that nothing can lead out of it."""
    parts = path.split("/")
    if len(parts) > 6 or not all(_PART.fullmatch(part) and not part.endswith((".", " ")) for part in parts):
        raise InputError(f"{path[:80]!r} cannot be the path of a published file", hint="Letters, digits, dot, dash.")
    return path


class Packages:
    """Only called by whoever holds the index's write lock, but for reading."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._staging = folder.with_name("staging")

    def path(self, package: str) -> Path:
        return self._folder / package

    def put(self, contents: Mapping[str, bytes | Path]) -> dict[str, str]:
        """Write a package; gives the SHA-256 of each of its files."""
        if not 0 < len(contents) <= MOST_FILES:
            raise InputError(f"a package has 1 to {MOST_FILES} files, not {len(contents)}")
        draft = self._staging / "draft"
        try:
            return self._put(contents, draft)
        except OSError as error:
            raise StoreFull(
                f"{self._folder.parent} cannot be written: {error.strerror}",
                hint="Make room on the disk; nothing was changed.",
            ) from error
        finally:
            shutil.rmtree(self._staging, ignore_errors=True)

    def _put(self, contents: Mapping[str, bytes | Path], draft: Path) -> dict[str, str]:
        shutil.rmtree(self._staging, ignore_errors=True)
        files = {name: _written(draft / check_path(name), content) for name, content in sorted(contents.items())}
        target = self.path(package_name(files))
        if not target.exists():
            target.parent.mkdir(parents=True, exist_ok=True)
            _sync_folders(draft)
            draft.rename(target)
            _sync(target.parent)
        return files

    def sweep(self, known: Iterable[str]) -> None:
        """What a killed process left without a record."""
        keep = set(known)
        if self._folder.is_dir():
            for path in self._folder.iterdir():
                if path.name not in keep:
                    shutil.rmtree(path, ignore_errors=True)

    def read(self, package: str, name: str) -> bytes:
        path = self.path(package) / check_path(name)
        try:
            return path.read_bytes()
        except OSError as error:
            raise InputError(
                f"{name} of package {package[:12]} cannot be read: {error.strerror}",
                hint="Restore it from an export of the record.",
            ) from error

    def damaged(self, package: str, files: Mapping[str, str]) -> list[str]:
        """Files that are missing or not what they were."""
        return [name for name, digest in files.items() if _digest_of(self.path(package) / check_path(name)) != digest]


def _written(path: Path, content: bytes | Path) -> str:
    path.parent.mkdir(parents=True, exist_ok=True)
    digest = hashlib.sha256()
    with path.open("xb") as target:
        for piece in _pieces(content):
            digest.update(piece)
            target.write(piece)
        target.flush()
        os.fsync(target.fileno())
    return digest.hexdigest()


def _pieces(content: bytes | Path) -> Iterable[bytes]:
    if isinstance(content, bytes):
        yield content
        return
    with content.open("rb") as source:
        while piece := source.read(_CHUNK):
            yield piece


def _digest_of(path: Path) -> str:
    if path.is_symlink() or not path.is_file():
        return ""
    with path.open("rb") as source:
        return hashlib.file_digest(source, "sha256").hexdigest()


def _sync_folders(folder: Path) -> None:
    for path in sorted(folder.rglob("*")):
        if path.is_dir():
            _sync(path)
    _sync(folder)


def _sync(folder: Path) -> None:
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
