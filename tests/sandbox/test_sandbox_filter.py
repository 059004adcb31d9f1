"""The filter of system calls decides the same on both machines: it is run here, instruction by instruction."""

from __future__ import annotations

import platform
import re
from pathlib import Path

import pytest

from whet.sandbox.inside import syscalls
from whet.sandbox.inside.seccomp import Policy

ARCHITECTURES = {"x86_64": 0xC000003E, "aarch64": 0xC00000B7}
ALLOW, ERRNO, KILL = 0x7FFF0000, 0x00050000, 0x80000000
EPERM, EOPNOTSUPP, ENOSYS = 1, 95, 38
REFUSED = {
    # name: number on x86_64, number on aarch64; none of them is in the table
    "socket": (41, 198),
    "connect": (42, 203),
    "bind": (49, 200),
    "ptrace": (101, 117),
    "process_vm_writev": (311, 271),
    "pidfd_open": (434, 434),
    "pidfd_send_signal": (424, 424),
    "rt_sigqueueinfo": (129, 138),
    "io_uring_setup": (425, 425),
    "bpf": (321, 280),
    "perf_event_open": (298, 241),
    "keyctl": (250, 219),
    "userfaultfd": (323, 282),
    "unshare": (272, 97),
    "setns": (308, 268),
    "mount": (165, 40),
    "open_tree": (428, 428),
    "open_by_handle_at": (304, 265),
    "openat2": (437, 437),
    "memfd_create": (319, 279),
    "shmget": (29, 194),
    "mq_open": (240, 180),
    "inotify_init1": (294, 26),
    "truncate": (76, 45),
    "setuid": (105, 146),
    "mknodat": (259, 33),
    "execve": (59, 221),
    "execveat": (322, 281),
    "clone3": (435, 435),
}


def decision(policy: Policy, machine: str, number: int, *arguments: int) -> int:
    """What a kernel of that machine makes of the call."""
    words = [number, ARCHITECTURES[machine], 0, 0]
    for argument in (*arguments, *[0] * (6 - len(arguments))):
        words += [argument & 0xFFFFFFFF, argument >> 32]
    program, place, value = policy.program(), 0, 0
    for _ in range(len(program)):
        code, yes, no, operand = program[place]
        place += 1
        match code:
            case 0x20:
                value = words[operand // 4]
            case 0x54:
                value &= operand
            case 0x06:
                return operand
            case 0x15:
                place += yes if value == operand else no
            case 0x25:
                place += yes if value > operand else no
            case 0x35:
                place += yes if value >= operand else no
            case 0x45:
                place += yes if value & operand else no
            case _:
                pytest.fail(f"no such instruction: {code:#x}")
    pytest.fail("it goes round in circles")


def policy(machine: str, *, forks: bool = False, programs: bool = False, signals: bool = False) -> Policy:
    return Policy(forks=forks, programs=programs, signals=signals, pid=4242, machine=machine)


@pytest.mark.parametrize("machine", ARCHITECTURES)
def test_what_is_not_listed_does_not_exist(machine: str) -> None:
    for name, numbers in REFUSED.items():
        number = numbers[list(ARCHITECTURES).index(machine)]
        assert decision(policy(machine), machine, number) == ERRNO | ENOSYS, name
    assert decision(policy(machine), machine, 10_000) == ERRNO | ENOSYS


@pytest.mark.parametrize("machine", ARCHITECTURES)
def test_what_programs_need_is_there(machine: str) -> None:
    for group in (syscalls.MEMORY, syscalls.ITSELF, syscalls.NARROWING):
        for name, number in syscalls.numbers(group, machine).items():
            assert decision(policy(machine), machine, number) == ALLOW, name
    for name in ("read", "write", "close", "futex", "exit_group", "epoll_pwait", "getdents64", "unlinkat"):
        number = next(
            found[name]
            for group in (syscalls.FILES, syscalls.THREADS, syscalls.WAITING)
            if name in (found := syscalls.numbers(group, machine))
        )
        assert decision(policy(machine), machine, number) == ALLOW, name


@pytest.mark.parametrize("machine", ARCHITECTURES)
def test_another_architecture_is_killed(machine: str) -> None:
    other = next(each for each in ARCHITECTURES if each != machine)
    assert decision(policy(machine), other, 0) == KILL
    assert decision(policy("x86_64"), "x86_64", 0x40000000 + 41) == KILL


CASES = [
    # group, name, arguments, whether it may have children, decision
    ("THREADS", "clone", (0x3D0F00,), False, ALLOW),
    ("THREADS", "clone", (17,), False, ERRNO | EPERM),
    ("THREADS", "clone", (0x4000 | 0x100 | 17,), False, ERRNO | EPERM),
    ("THREADS", "clone", (17,), True, ALLOW),
    ("THREADS", "clone", (17 | 0x10000000,), True, ERRNO | EPERM),
    ("THREADS", "clone", (0x3D0F00 | 0x40000000,), False, ERRNO | EPERM),
    ("THREADS", "prlimit64", (0, 7), False, ALLOW),
    ("THREADS", "prlimit64", (4242, 7), False, ALLOW),
    ("THREADS", "prlimit64", (1, 7), False, ERRNO | EPERM),
    ("THREADS", "prctl", (15,), False, ALLOW),
    ("THREADS", "prctl", (4,), False, ERRNO | EPERM),
    ("WAITING", "socketpair", (1, 1 | 0x80000), False, ALLOW),
    ("WAITING", "socketpair", (1, 2), False, ERRNO | EPERM),
    ("WAITING", "socketpair", (2, 1), False, ERRNO | EPERM),
    ("SIGNALS", "kill", (4242, 6), False, ALLOW),
    ("SIGNALS", "kill", (1, 9), False, ERRNO | EPERM),
    ("SIGNALS", "kill", (0xFFFFFFFF, 9), False, ERRNO | EPERM),
    ("SIGNALS", "kill", (0, 9), True, ERRNO | EPERM),
    ("SIGNALS", "tgkill", (1, 1, 9), False, ERRNO | EPERM),
    ("FILES", "ioctl", (0, 0x5401), False, ALLOW),
    ("FILES", "ioctl", (0, 0x5412), False, ERRNO | EPERM),
    ("FILES", "fcntl", (0, 3), False, ALLOW),
    ("FILES", "fcntl", (0, 8, 1), False, ERRNO | EPERM),
    ("FILES", "fcntl", (0, 10, 9), False, ERRNO | EPERM),
    ("FILES", "openat", (0, 0, 0), False, ALLOW),
    ("FILES", "openat", (0, 0, 0o1001), False, ALLOW),
    ("FILES", "openat", (0, 0, 0o1000), False, ERRNO | EPERM),
    ("PRETENDED", "fchmodat", (), False, ERRNO),
    ("PRETENDED", "utimensat", (), False, ERRNO),
    ("LABELS", "fsetxattr", (), False, ERRNO | EOPNOTSUPP),
]


@pytest.mark.parametrize("machine", ARCHITECTURES)
@pytest.mark.parametrize(("group", "name", "arguments", "forks", "wanted"), CASES)
def test_calls_are_judged_by_what_they_are_called_with(
    machine: str, group: str, name: str, arguments: tuple[int, ...], forks: bool, wanted: int
) -> None:
    number = syscalls.numbers(getattr(syscalls, group), machine)[name]
    assert decision(policy(machine, forks=forks), machine, number, *arguments) == wanted


def test_children_signals_and_programs_are_each_allowed_apart() -> None:
    numbers = {"execve": 59, "wait4": 61, "kill": 62}
    allowed = {
        name: [
            decision(policy("x86_64", **{which: True}), "x86_64", number, 1) == ALLOW
            for which in ("forks", "programs", "signals")
        ]
        for name, number in numbers.items()
    }
    assert allowed == {
        "execve": [False, True, False],
        "wait4": [True, False, False],
        "kill": [False, False, True],
    }


@pytest.mark.skipif(
    platform.machine() != "x86_64" or not Path("/usr/include/x86_64-linux-gnu/asm/unistd_64.h").exists(),
    reason="the kernel's headers are not here",
)
def test_the_table_says_what_the_kernels_headers_say() -> None:
    text = Path("/usr/include/x86_64-linux-gnu/asm/unistd_64.h").read_text()
    real = {found[1]: int(found[2]) for found in re.finditer(r"#define __NR_(\w+) (\d+)", text)}
    for group in (value for name, value in vars(syscalls).items() if name.isupper()):
        for name, number in syscalls.numbers(group, "x86_64").items():
            assert real.get(name, number) == number, name
