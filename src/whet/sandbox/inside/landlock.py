"""Landlock: which files a process may open, by system calls alone. Rules can be added later, and only narrow.

What older kernels (ABI 1 to 5) do not check, the seccomp filter refuses for all: truncation by path, sockets, device
controls and signals to others. What is lost on ABI 1 is moving files between folders of one's own scratch.
"""

from __future__ import annotations

import ctypes
import os
import stat
import struct
from collections.abc import Iterable

from whet.sandbox.inside.kernel import IS_LINUX, syscall

_CREATE, _ADD, _RESTRICT = 444, 445, 446
_VERSION = 1
_PATH_BENEATH = 1

EXECUTE = 1 << 0
_WRITE_FILE = 1 << 1
_READ_FILE = 1 << 2
_READ_DIR = 1 << 3
_REFER = 1 << 13
_TRUNCATE = 1 << 14
_IOCTL_DEV = 1 << 15
_MAKE = sum(1 << bit for bit in (4, 5, 7, 8, 12))
"""Remove and make folders, files and symbolic links; not devices, sockets or pipes."""
_ON_FILES = EXECUTE | _WRITE_FILE | _READ_FILE | _TRUNCATE | _IOCTL_DEV

READ = _READ_FILE | _READ_DIR
WRITE = READ | _WRITE_FILE | _TRUNCATE | _REFER | _MAKE
DEVICE = _READ_FILE | _WRITE_FILE

_ALL_FS = {1: (1 << 13) - 1, 2: (1 << 14) - 1, 3: (1 << 15) - 1, 4: (1 << 15) - 1, 5: (1 << 16) - 1}
_ALL_NET = 3
_ALL_SCOPES = 3
_SCOPE_SIGNAL = 2

Rule = tuple[int, int]
"""A descriptor of the place, opened with O_PATH, and what is allowed beneath it."""


def abi() -> int:
    """The version of Landlock in this kernel; 0 where there is none."""
    if not IS_LINUX:
        return 0
    try:
        return syscall(_CREATE, None, 0, _VERSION)
    except OSError:
        return 0


def open_rules(paths: Iterable[str], access: int) -> list[Rule]:
    """What is not there needs no rule."""
    rules: list[Rule] = []
    for path in paths:
        try:
            rules.append((os.open(path, os.O_PATH | os.O_CLOEXEC), access))
        except FileNotFoundError:
            continue
    return rules


def restrict(rules: Iterable[Rule], version: int) -> None:
    """Nothing but these, for this process and all that come of it. Needs no_new_privs."""
    handled = _ALL_FS[min(version, 5)]
    ruleset = _create(handled, _ALL_NET if version >= 4 else 0, _ALL_SCOPES if version >= 6 else 0, version)
    try:
        for place, access in rules:
            is_folder = stat.S_ISDIR(os.fstat(place).st_mode)
            allowed = access & handled & (-1 if is_folder else _ON_FILES)
            attribute = ctypes.create_string_buffer(struct.pack("=Qi", allowed, place), 12)
            syscall(_ADD, ruleset, _PATH_BENEATH, attribute, 0)
        syscall(_RESTRICT, ruleset, 0)
    finally:
        os.close(ruleset)


def keep_signals_in(version: int) -> bool:
    """From here on this process and its children can signal each other and nobody else, if the kernel can do that."""
    if version < 6:
        return False
    ruleset = _create(0, 0, _SCOPE_SIGNAL, version)
    try:
        syscall(_RESTRICT, ruleset, 0)
    finally:
        os.close(ruleset)
    return True


def _create(files: int, network: int, scopes: int, version: int) -> int:
    fields = (files, network, scopes)[: 1 if version < 4 else 2 if version < 6 else 3]
    attribute = struct.pack(f"={len(fields)}Q", *fields)
    return syscall(_CREATE, ctypes.create_string_buffer(attribute, len(attribute)), len(attribute), 0)
