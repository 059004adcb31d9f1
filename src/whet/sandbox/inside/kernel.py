"""System calls that Python has no function for."""

from __future__ import annotations

import ctypes
import os
import platform
import sys

MACHINE = platform.machine()
IS_LINUX = sys.platform == "linux" and MACHINE in ("x86_64", "aarch64")

PR_SET_PDEATHSIG = 1
PR_SET_DUMPABLE = 4
PR_SET_KEEPCAPS = 8
PR_SET_NAME = 15
PR_SET_SECCOMP = 22
PR_CAPBSET_DROP = 24
PR_SET_CHILD_SUBREAPER = 36
PR_SET_NO_NEW_PRIVS = 38
PR_CAP_AMBIENT = 47
_PR_CAP_AMBIENT_CLEAR_ALL = 4

CAP_DAC_READ_SEARCH = 2
_CAPSET = {"x86_64": 126, "aarch64": 91}
_CAPABILITIES_3 = 0x20080522
_EINVAL = 22

_libc = ctypes.CDLL(None, use_errno=True)


def syscall(number: int, *arguments: object) -> int:
    """Integers go as 64 bits, or the kernel would see what was left in the upper half of a register."""
    wide = [ctypes.c_long(one) if isinstance(one, int) else one for one in arguments]
    return _checked(_libc.syscall(ctypes.c_long(number), *wide))


def prctl(option: int, *arguments: object) -> int:
    wide: list[object] = [ctypes.c_ulong(one) if isinstance(one, int) else one for one in arguments]
    wide += [ctypes.c_ulong(0)] * (4 - len(wide))
    return _checked(_libc.prctl(option, *wide))


def keep_capabilities(kept: frozenset[int]) -> None:
    """Gives up all but these, for good: also what a program could win back by being executed."""
    mask = sum(1 << capability for capability in kept)
    header = (ctypes.c_uint32 * 2)(_CAPABILITIES_3, 0)
    # Effective, permitted and inheritable, the lower 32 and then the upper 32 capabilities.
    sets = (ctypes.c_uint32 * 6)(mask, mask, 0, 0, 0, 0)
    syscall(_CAPSET[MACHINE], header, sets)


def empty_capability_bounds() -> None:
    """Once, by root: whatever is forked from here wins back nothing by executing a program. Where the kernel's list
    of capabilities ends, it says so."""
    for capability in range(64):
        try:
            prctl(PR_CAPBSET_DROP, capability)
        except OSError as error:
            if error.errno == _EINVAL:
                break
            raise
    prctl(PR_CAP_AMBIENT, _PR_CAP_AMBIENT_CLEAR_ALL)


def no_new_privileges() -> None:
    prctl(PR_SET_NO_NEW_PRIVS, 1)


def die_with_parent(parent: int) -> None:
    """The kernel kills this process when its parent is gone; it may be gone already."""
    prctl(PR_SET_PDEATHSIG, 9)
    if os.getppid() != parent:
        os._exit(1)


def _checked(done: int) -> int:
    if done < 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))
    return done
