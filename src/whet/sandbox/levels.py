"""Which walls this machine has: what each level stops here, what it leaves open, and what would mend that."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Sequence
from enum import StrEnum
from pathlib import Path

import msgspec

from whet.core import ConfigError
from whet.sandbox.inside import kernel, landlock, seccomp
from whet.sandbox.orders import Level

INSTALL_BUBBLEWRAP = "apt-get install bubblewrap"
_TRIAL_SECONDS = 10


class Danger(StrEnum):
    """What code that we did not write could do."""

    READ = "read files that it was not given"
    WRITE = "write outside its folder"
    CHANGE = "change modes, times or attributes of files outside"
    NETWORK = "use the network or local sockets"
    SIGNAL = "signal or trace other processes"
    SECRETS = "read credentials from the environment"
    KERNEL = "use rare parts of the kernel (io_uring, bpf, keys, namespaces …)"
    EXHAUST = "use up memory, CPU, disk or output"
    FORK = "start programs or processes"
    LINGER = "leave processes behind"
    FORGE = "forge a result by printing it"
    SEE_NAMES = "learn names and sizes of files, not what is in them"


_ALWAYS = (Danger.SECRETS, Danger.EXHAUST, Danger.FORGE, *((Danger.LINGER,) if kernel.IS_LINUX else ()))


class Standing(msgspec.Struct, frozen=True):
    """One level on this machine."""

    level: Level
    available: bool
    stops: tuple[Danger, ...]
    leaves: tuple[Danger, ...]
    why_not: str = ""
    mend: str = ""
    """The command that makes it available."""


class Survey(msgspec.Struct, frozen=True):
    in_force: Level
    levels: tuple[Standing, ...]
    landlock: int
    """The version of Landlock in this kernel, 0 for none."""

    @property
    def standing(self) -> Standing:
        return self.of(self.in_force)

    def of(self, level: Level) -> Standing:
        return next(each for each in self.levels if each.level is level)


def survey() -> Survey:
    """Looks at the machine; starts bubblewrap once to see whether it works."""
    levels = tuple(_look(level) for level in Level)
    return Survey(next(each.level for each in levels if each.available), levels, landlock.abi())


def choose(level: Level | None) -> Level:
    """The strongest there is, or the one that is asked for, if it is there."""
    if level is None:
        return next(each for each in Level if _look(each).available)
    standing = _look(level)
    if not standing.available:
        hint = f"Do `{standing.mend}`" if standing.mend else "Leave the level out: the strongest possible is taken"
        raise ConfigError(f"sandbox level {level} is not available: {standing.why_not}", hint=hint)
    return level


def bubblewrap(writable: Sequence[Path]) -> list[str]:
    """The command before the command: the machine read-only, its own /proc, /dev and processes, no network."""
    # Root keeps its user namespace, because only so can each run have a user id of its own.
    user = ["--cap-add", "ALL"] if os.geteuid() == 0 else ["--unshare-user"]
    spaces = ["--unshare-pid", "--unshare-net", "--unshare-ipc", "--unshare-uts", "--unshare-cgroup-try"]
    view = ["--ro-bind", "/", "/", "--proc", "/proc", "--dev", "/dev"]
    own = [word for folder in writable for word in ("--bind", str(folder), str(folder))]
    return ["bwrap", *user, *spaces, *view, *own, "--die-with-parent", "--new-session", "--chdir", "/", "--"]


def _look(level: Level) -> Standing:
    version, filters = landlock.abi(), kernel.IS_LINUX and seccomp.is_there()
    match level:
        case Level.NAMESPACES:
            return _namespaces(version, filters)
        case Level.KERNEL:
            return _kernel(version, filters)
        case Level.PROCESS:
            return _standing(Level.PROCESS, _ALWAYS)


def _namespaces(version: int, filters: bool) -> Standing:
    if not filters:
        return _missing(Level.NAMESPACES, "it needs Linux with seccomp on x86_64 or aarch64")
    if shutil.which("bwrap") is None:
        return _missing(Level.NAMESPACES, "bubblewrap is not installed", INSTALL_BUBBLEWRAP)
    try:
        trial = subprocess.run(
            [*bubblewrap(()), sys.executable, "-I", "-S", "-c", ""],
            capture_output=True,
            timeout=_TRIAL_SECONDS,
            check=False,
        )
    except subprocess.TimeoutExpired:
        return _missing(Level.NAMESPACES, "bubblewrap does not start")
    if trial.returncode:
        said = trial.stderr.decode("utf-8", "replace").strip().splitlines()
        return _missing(
            Level.NAMESPACES, f"bubblewrap cannot make namespaces here ({said[-1] if said else 'silently'})"
        )
    open_here = {Danger.SEE_NAMES, *(() if version else (Danger.READ,))}
    return _standing(Level.NAMESPACES, [each for each in Danger if each not in open_here])


def _kernel(version: int, filters: bool) -> Standing:
    if not filters:
        return _missing(Level.KERNEL, "it needs Linux with seccomp on x86_64 or aarch64")
    if not version:
        return _missing(Level.KERNEL, "this kernel has no Landlock (Linux 5.13 or later, with lsm=landlock)")
    return _standing(Level.KERNEL, [each for each in Danger if each is not Danger.SEE_NAMES])


def _standing(level: Level, stops: Sequence[Danger]) -> Standing:
    return Standing(level, True, tuple(stops), tuple(each for each in Danger if each not in stops))


def _missing(level: Level, why_not: str, mend: str = "") -> Standing:
    return Standing(level, False, (), tuple(Danger), why_not, mend)
