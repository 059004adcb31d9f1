"""Copies of SQLite databases: one for each session, so that no session sees another.

In memory SQLite's own backup is the quickest way at every size (bench/pack.py): it copies page by page and needs no
block of bytes in between. Bytes are for what is kept. A file is cloned by the file system where it can share blocks.
"""

from __future__ import annotations

import fcntl
import shutil
import sqlite3
from contextlib import closing
from pathlib import Path

_SHARE_BLOCKS = 0x40049409
"""Linux's FICLONE: the copy shares the blocks of the original until one of them is written."""


def clone(connection: sqlite3.Connection) -> sqlite3.Connection:
    """A copy in memory, to be made between transactions."""
    copy = _in_memory()
    connection.backup(copy)
    return _ready(copy)


def snapshot(connection: sqlite3.Connection) -> bytes:
    """The whole database as bytes, to be taken between transactions."""
    return connection.serialize()


def restore(image: bytes) -> sqlite3.Connection:
    """A database in memory of its own, from its bytes."""
    connection = _in_memory()
    connection.deserialize(image)
    return _ready(connection)


def _in_memory() -> sqlite3.Connection:
    """It may be used from another thread, though not by two at once."""
    return sqlite3.connect(":memory:", check_same_thread=False)


def _ready(connection: sqlite3.Connection) -> sqlite3.Connection:
    """SQLite reads the schema with the first statement: now, rather than in the first call of a session."""
    connection.execute("SELECT 1 FROM sqlite_schema").close()
    return connection


def clone_file(source: Path, target: Path) -> None:
    """A copy of a database file, exact also where others have it open and part of it stands in its journal."""
    if any(source.with_name(source.name + journal).exists() for journal in ("-wal", "-journal")):
        with closing(sqlite3.connect(source)) as original, closing(sqlite3.connect(target)) as copy:
            original.backup(copy)
        return
    with source.open("rb") as original, target.open("wb") as copy:
        try:
            fcntl.ioctl(copy.fileno(), _SHARE_BLOCKS, original.fileno())
        except OSError:
            copied = False
        else:
            copied = True
    if not copied:
        shutil.copyfile(source, target)
