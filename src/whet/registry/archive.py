"""A record with its files as one file, to move it from one registry to another. Read as data, never executed.

A zip file without compression: `record.json`, and the package's files under `files/`. Whatever a hostile one says of
itself, no more is read than its own size on the disk.
"""

from __future__ import annotations

import zipfile
from collections.abc import Callable
from pathlib import Path

import msgspec

from whet.core import InputError
from whet.registry.files import MOST_FILES, check_path
from whet.registry.records import Body, Proof, Record
from whet.registry.registry import FORMAT, Registry

_RECORD = "record.json"
_FILES = "files/"
_LONGEST_RECORD = 16 * 1024 * 1024
_OLDEST_DATE = (1980, 1, 1, 0, 0, 0)


class _Written(msgspec.Struct, frozen=True):
    id: str
    world: str
    policy: str
    body: Body
    certificates: tuple[str, ...] = ()


def write_archive(registry: Registry, record: Record, path: Path) -> None:
    """The same record gives the same bytes."""
    wrong = registry.damaged(record)
    if wrong:
        raise InputError(f"record {record.id} is damaged: {wrong[0]} is not what it was", hint="Nothing was written.")
    certificates = tuple(registry.certificates(record.id))
    written = _Written(record.id, record.world, record.policy, record.body, certificates)
    beside = path.with_name(f".{path.name}.part")
    try:
        with zipfile.ZipFile(beside, "w", zipfile.ZIP_STORED) as archive:
            archive.writestr(zipfile.ZipInfo(_RECORD, _OLDEST_DATE), msgspec.json.encode(written))
            for name in sorted(record.body.files):
                archive.writestr(zipfile.ZipInfo(_FILES + name, _OLDEST_DATE), registry.file(record, name))
        beside.replace(path)
    except OSError as error:
        raise InputError(f"{path} cannot be written: {error.strerror}") from error
    finally:
        beside.unlink(missing_ok=True)


def read_archive(registry: Registry, path: Path, read_proof: Callable[[str], Proof]) -> Record:
    """Add what `path` holds to the registry. Raises InputError, and then nothing was added.

    `read_proof` says what a certificate's text proves, and raises InputError where it is none.
    """
    try:
        with zipfile.ZipFile(path) as archive:
            written = _record(archive, path)
            contents: dict[str, bytes | Path] = {
                name: _content(archive, _FILES + check_path(name), path) for name in written.body.files
            }
    except (zipfile.BadZipFile, zipfile.LargeZipFile, NotImplementedError, EOFError, RuntimeError) as error:
        raise InputError(f"{path} is no export of a registry: {error}") from error
    except OSError as error:
        raise InputError(f"{path} cannot be read: {error.strerror or error}") from error
    proofs = [read_proof(text) for text in written.certificates]
    return registry.take_in(written.id, written.world, written.policy, written.body, contents, proofs)


def _record(archive: zipfile.ZipFile, path: Path) -> _Written:
    entries = archive.infolist()
    if len(entries) > MOST_FILES + 1:
        raise InputError(f"{path} is no export of a registry: it holds {len(entries)} files")
    if _RECORD not in archive.namelist() or archive.getinfo(_RECORD).file_size > _LONGEST_RECORD:
        raise InputError(f"{path} is no export of a registry: it holds no {_RECORD}")
    try:
        written = msgspec.json.decode(_content(archive, _RECORD, path), type=_Written)
    except msgspec.MsgspecError as problem:
        raise InputError(f"the {_RECORD} of {path} cannot be read: {problem}") from problem
    if written.body.format != FORMAT:
        raise InputError(f"{path} was written by another whet (format {written.body.format})", hint="Upgrade whet.")
    extra = {entry.filename for entry in entries} - {_RECORD} - {_FILES + name for name in written.body.files}
    if extra:
        raise InputError(f"{path} holds {min(extra)[:80]!r}, which its record does not name")
    return written


def _content(archive: zipfile.ZipFile, name: str, path: Path) -> bytes:
    try:
        entry = archive.getinfo(name)
    except KeyError:
        raise InputError(f"{path} is truncated or changed: {name} is missing") from None
    if entry.compress_type != zipfile.ZIP_STORED or entry.file_size != entry.compress_size:
        raise InputError(f"{path} is no export of a registry: {name} is compressed")
    return archive.read(entry)
