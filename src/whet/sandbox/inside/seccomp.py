"""The filter of system calls: a list of what Python programs need; the rest of the kernel does not exist inside.

Where Landlock leaves a gap the filter closes it: modes, times and extended attributes of files; on old kernels also
truncation by path and signals to others. Sockets cannot be made but for pairs that lead nowhere else.
"""

from __future__ import annotations

import ctypes
import itertools
import os
import struct
from collections.abc import Iterable, Iterator
from functools import cache

from whet.sandbox.inside import syscalls
from whet.sandbox.inside.kernel import MACHINE, PR_SET_SECCOMP, prctl

_ARCHITECTURE = {"x86_64": 0xC000003E, "aarch64": 0xC00000B7}
_MODE_FILTER = 2

_ALLOW = 0x7FFF0000
_KILL = 0x80000000
_ERRNO = 0x00050000
_EPERM, _EOPNOTSUPP, _ENOSYS = 1, 95, 38
_PRETEND = _ERRNO
"""Does nothing and says that it worked: copying a file with its mode and times goes on, without them."""

_LOAD, _AND, _RETURN = 0x20, 0x54, 0x06
_IF_EQUAL, _IF_ABOVE, _IF_AT_LEAST, _IF_ANY_BIT = 0x15, 0x25, 0x35, 0x45
_NUMBER, _ARCH = 0, 4
_INSTRUCTION = 8
"""Bytes of one."""
_ANY_PID = 0x7AFE7AFE
"""Stands for the process's own id, which is no such number: ids end at 2^22."""

_CLONE_THREAD = 0x00010000
_CLONE_NEW = 0x7E020080
_O_TRUNC, _O_ACCMODE = 0o1000, 0o3
_FCNTL_REFUSED = (8, 10, 15, 1024, 1026)
"""The owner and signal of a descriptor can signal any process of the user's; leases and watches reach others too."""
_IOCTLS = (0x5401, 0x5413, 0x541B, 0x5421, 0x5450, 0x5451)
"""Is it a terminal, how wide, how much is there to read, do not block, close on exec or not."""
_PRCTLS = (1, 3, 15, 16, 22, 38, 39, 0x53564D41)
"""Of oneself: death signal, dumpable, name, a further filter, no new privileges, names of memory."""

Instruction = tuple[int, int, int, int]


class Policy:
    """Which calls get through.

    `forks`: it may have children. `programs`: it may execute others. `signals`: it may signal others in its sandbox.
    """

    def __init__(self, *, forks: bool, programs: bool, signals: bool, pid: int, machine: str = MACHINE) -> None:
        self._forks = forks
        self._programs = programs
        self._signals = signals
        self._pid = pid
        self._machine = machine

    def program(self) -> list[Instruction]:
        x32 = [(_IF_AT_LEAST, 0, 1, 0x40000000), (_RETURN, 0, 0, _KILL)] if self._machine == "x86_64" else []
        return [
            (_LOAD, 0, 0, _ARCH),
            (_IF_EQUAL, 1, 0, _ARCHITECTURE[self._machine]),
            (_RETURN, 0, 0, _KILL),
            (_LOAD, 0, 0, _NUMBER),
            *x32,
            *self._checked(),
            *self._answered(),
            *self._allowed(),
            (_RETURN, 0, 0, _ERRNO | _ENOSYS),
        ]

    def _groups(self) -> dict[str, int]:
        known = (
            syscalls.FILES,
            syscalls.WAITING,
            syscalls.MEMORY,
            syscalls.SIGNALS,
            syscalls.THREADS,
            syscalls.ITSELF,
            syscalls.NARROWING,
            *((syscalls.CHILDREN,) if self._forks else ()),
            *((syscalls.PROGRAMS,) if self._programs else ()),
        )
        found: dict[str, int] = {}
        for group in known:
            found.update(syscalls.numbers(group, self._machine))
        return found

    def _checked(self) -> Iterator[Instruction]:
        """Calls that depend on what they are called with."""
        numbers = self._groups()
        blocks = {
            "clone": self._clone(),
            "clone3": [(_RETURN, 0, 0, _ERRNO | _ENOSYS)],
            "socketpair": [*_unless_equal(0, (1,), _EPERM), _load(1), (_AND, 0, 0, 0xF), *_allow_if((1,), _EPERM)],
            "ioctl": [_load(1), *_allow_if(_IOCTLS, _EPERM)],
            "fcntl": [_load(1), *_refuse_if(_FCNTL_REFUSED, _EPERM)],
            "prctl": [_load(0), *_allow_if(_PRCTLS, _EPERM)],
            "prlimit64": [_load(0), *_allow_if((0, self._pid), _EPERM)],
            "open": _opening(1),
            "openat": _opening(2),
        }
        if not self._signals:
            blocks["kill"] = blocks["tgkill"] = [_load(0), *_allow_if((self._pid,), _EPERM)]
        for name, block in blocks.items():
            if name in numbers:
                yield (_IF_EQUAL, 0, len(block), numbers[name])
                yield from block

    def _clone(self) -> list[Instruction]:
        refuse_namespaces: list[Instruction] = [
            _load(0),
            (_IF_ANY_BIT, 0, 1, _CLONE_NEW),
            (_RETURN, 0, 0, _ERRNO | _EPERM),
        ]
        if self._forks:
            return [*refuse_namespaces, (_RETURN, 0, 0, _ALLOW)]
        threads_only: list[Instruction] = [(_IF_ANY_BIT, 1, 0, _CLONE_THREAD), (_RETURN, 0, 0, _ERRNO | _EPERM)]
        return [*refuse_namespaces, *threads_only, (_RETURN, 0, 0, _ALLOW)]

    def _answered(self) -> Iterator[Instruction]:
        """Calls that are answered without being made."""
        for group, answer in ((syscalls.PRETENDED, _PRETEND), (syscalls.LABELS, _ERRNO | _EOPNOTSUPP)):
            yield from _ranges(syscalls.numbers(group, self._machine).values(), answer)

    def _allowed(self) -> Iterator[Instruction]:
        yield from _ranges(self._groups().values(), _ALLOW)


@cache
def _code(*, forks: bool, programs: bool, signals: bool) -> bytes:
    """As the kernel takes it, for a process whose id is not known yet."""
    program = Policy(forks=forks, programs=programs, signals=signals, pid=_ANY_PID).program()
    return b"".join(struct.pack("=HBBI", *instruction) for instruction in program)


def prepare() -> None:
    """Builds what forks will need, so that they find it done."""
    for forks, programs, signals in itertools.product((False, True), repeat=3):
        _code(forks=forks, programs=programs, signals=signals)


def install(*, forks: bool, programs: bool, signals: bool) -> None:
    """For this process, for good. Needs no_new_privs."""
    code = _code(forks=forks, programs=programs, signals=signals).replace(
        struct.pack("=I", _ANY_PID), struct.pack("=I", os.getpid())
    )
    instructions = ctypes.create_string_buffer(code, len(code))
    filter_program = ctypes.create_string_buffer(
        struct.pack("@HP", len(code) // _INSTRUCTION, ctypes.addressof(instructions)), struct.calcsize("@HP")
    )
    prctl(PR_SET_SECCOMP, _MODE_FILTER, filter_program)


def is_there() -> bool:
    """The kernel knows filters if it complains of the missing program, not of the request."""
    try:
        prctl(PR_SET_SECCOMP, _MODE_FILTER, None)
    except OSError as error:
        return error.errno == 14
    return False


def _load(argument: int) -> Instruction:
    """The lower half of an argument: all that these are compared for are ints to the kernel."""
    return (_LOAD, 0, 0, 16 + 8 * argument)


def _opening(flags: int) -> list[Instruction]:
    """Emptying a file while opening it for reading alone: old kernels count that as reading."""
    return [
        _load(flags),
        (_AND, 0, 0, _O_TRUNC | _O_ACCMODE),
        (_IF_EQUAL, 0, 1, _O_TRUNC),
        (_RETURN, 0, 0, _ERRNO | _EPERM),
        (_RETURN, 0, 0, _ALLOW),
    ]


def _unless_equal(argument: int, values: Iterable[int], error: int) -> list[Instruction]:
    wanted = list(values)
    tests: list[Instruction] = [(_IF_EQUAL, len(wanted) - place, 0, value) for place, value in enumerate(wanted)]
    return [_load(argument), *tests, (_RETURN, 0, 0, _ERRNO | error)]


def _allow_if(values: Iterable[int], error: int) -> list[Instruction]:
    wanted = list(values)
    tests: list[Instruction] = [(_IF_EQUAL, len(wanted) - place, 0, value) for place, value in enumerate(wanted)]
    return [*tests, (_RETURN, 0, 0, _ERRNO | error), (_RETURN, 0, 0, _ALLOW)]


def _refuse_if(values: Iterable[int], error: int) -> list[Instruction]:
    refused = list(values)
    tests: list[Instruction] = [(_IF_EQUAL, len(refused) - place, 0, value) for place, value in enumerate(refused)]
    return [*tests, (_RETURN, 0, 0, _ALLOW), (_RETURN, 0, 0, _ERRNO | error)]


def _ranges(values: Iterable[int], answer: int) -> Iterator[Instruction]:
    """Neighbouring numbers take one comparison."""
    ordered = sorted(values)
    first = last = -1
    for value in [*ordered, 1 << 30]:
        if value == last + 1 and first >= 0:
            last = value
            continue
        if first >= 0:
            yield (_IF_AT_LEAST, 0, 2, first)
            yield (_IF_ABOVE, 1, 0, last)
            yield (_RETURN, 0, 0, answer)
        first = last = value
