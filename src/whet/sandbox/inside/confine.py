"""The walls, in the order in which they must go up: each needs something that the next one takes away."""

from __future__ import annotations

import contextlib
import os
import resource
import site
import stat
import sys
import sysconfig
from functools import cache
from pathlib import Path

from whet.sandbox.inside import kernel, landlock, seccomp
from whet.sandbox.orders import Box, Level, Limits

CHANNEL = 3
"""Where the one socket is that a confined process is left with."""
_NEVER_SEEN = ("/etc/ld.so.cache", "/etc/localtime")
_SYSTEM = ("/usr/lib", "/usr/lib64", "/usr/local/lib", "/lib", "/lib64", "/usr/share/zoneinfo", *_NEVER_SEEN)
_PROGRAMS = ("/usr/bin", "/bin")
_DEVICES = ("/dev/null", "/dev/zero", "/dev/random", "/dev/urandom")


class Walls:
    """What holds for a process and what is forked from it; rules are opened while there are still rights to do so."""

    def __init__(self, box: Box, *, is_template: bool = False) -> None:
        self._box = box
        self._is_template = is_template
        self._version = box.landlock
        self._rules = self._open_rules() if self._version else []
        self._memory = _open_memory()

    @property
    def _forks(self) -> bool:
        return self._is_template or self._box.limits.processes > 1

    @property
    def _programs(self) -> bool:
        return self._forks and not self._is_template

    def enter(self) -> None:
        """Confines this process. There must be no other thread yet."""
        floor = _running(self._box.user) if self._forks else None
        set_limits(self._box.limits, _mapped(self._memory), floor=floor)
        if self._box.level is Level.PROCESS:
            _enter_folder(self._box.scratch)
            return
        self._leave_root()
        _enter_folder(self._box.scratch)
        kernel.no_new_privileges()
        self._restrict(self._box.scratch)
        self._filter(forks=self._forks, programs=self._programs)

    def narrow(self, scratch: str, limits: Limits) -> None:
        """In a fork of a process that is confined already: to one folder of its own, and no children."""
        set_limits(limits, _mapped(self._memory))
        if self._box.level is not Level.PROCESS:
            self._restrict(scratch)
            self._filter(forks=False, programs=False)
        _enter_folder(scratch)

    def close(self) -> None:
        for place in self.keep_open():
            os.close(place)

    def keep_open(self) -> frozenset[int]:
        memory = () if self._memory is None else (self._memory,)
        return frozenset((*(place for place, _ in self._rules), *memory))

    def _restrict(self, scratch: str) -> None:
        if not self._version:
            return
        own = landlock.open_rules((scratch,) if scratch else (), landlock.WRITE)
        landlock.restrict([*self._rules, *own], self._version)
        for place, _ in own:
            os.close(place)

    def _filter(self, *, forks: bool, programs: bool) -> None:
        # Signals to others are checked by whoever can: Landlock by its scope, or the kernel by the user id.
        signals = forks and (self._version >= 6 or self._box.user is not None)
        seccomp.install(forks=forks, programs=programs, signals=signals)

    def _open_rules(self) -> list[landlock.Rule]:
        library = landlock.open_rules(readable_library(), landlock.READ)
        given = landlock.open_rules(self._box.read, landlock.READ)
        devices = landlock.open_rules(_DEVICES, landlock.DEVICE)
        execute = landlock.READ | landlock.EXECUTE
        programs = landlock.open_rules((*_SYSTEM, *_PROGRAMS), execute) if self._programs else []
        return [*library, *given, *devices, *programs]

    def _leave_root(self) -> None:
        if self._box.user is None:
            kernel.keep_capabilities(frozenset())
            return
        # Reading what only root may reach, such as a Python in root's own folder, is then left to Landlock to grant.
        # Of a folder that was given, the files may have modes of their own.
        folders = any(os.path.isdir(path) for path in self._box.read)
        open_to_all = all(_is_open_to_all(path) for path in (*readable_library(), *self._box.read))
        needs_help = self._version and (folders or not open_to_all)
        kernel.prctl(kernel.PR_SET_KEEPCAPS, 1)
        become_user(self._box.user)
        kernel.keep_capabilities(frozenset({kernel.CAP_DAC_READ_SEARCH}) if needs_help else frozenset())


def become_user(user: int) -> None:
    """The zygote may still look at what it has open: who changes user is hidden from its own otherwise."""
    os.setgroups([])
    os.setresgid(user, user, user)
    os.setresuid(user, user, user)
    kernel.prctl(kernel.PR_SET_DUMPABLE, 1)


def set_limits(limits: Limits, mapped: int, *, floor: int | None = None) -> None:
    """`mapped`: memory that it begins with. `floor`: how many processes are already counted against the same limit."""
    _limit(resource.RLIMIT_CORE, 0)
    # A second more for the kill than for the signal that says why.
    _limit(resource.RLIMIT_CPU, max(1, limits.cpu_seconds), max(1, limits.cpu_seconds) + 1)
    _limit(resource.RLIMIT_FSIZE, limits.file_size)
    _limit(resource.RLIMIT_NOFILE, 512)
    _limit(resource.RLIMIT_MEMLOCK, 0)
    if mapped:
        _limit(resource.RLIMIT_AS, mapped + limits.memory)
    if floor is not None:
        _limit(resource.RLIMIT_NPROC, floor + limits.processes)


@cache
def readable_library() -> tuple[str, ...]:
    """Python's own library, what is installed beside it, and the shared libraries that these load."""
    paths = sysconfig.get_paths()
    own = Path(__file__).resolve().parents[2]
    found = [paths[name] for name in ("stdlib", "platstdlib", "purelib", "platlib")]
    base = sysconfig.get_path("stdlib", vars={"installed_base": sys.base_prefix})
    installed = [*site.getsitepackages(), f"{sys.base_prefix}/lib"]
    return tuple(dict.fromkeys([*found, base, *installed, str(own), *_SYSTEM]))


def leave_only(kept: dict[int, int], beside: frozenset[int] = frozenset()) -> None:
    """Moves descriptors to where they belong, and closes every other one that this process was born with."""
    highest = max([*kept.values(), *beside, CHANNEL]) + 1
    moved = {os.dup2(old, highest + place, inheritable=False): place for place, old in kept.items()}
    for high, place in moved.items():
        os.dup2(high, place, inheritable=place <= 2)
    wanted = sorted({*kept, *(number for number in beside if number > CHANNEL)})
    start = 0
    for number in [*wanted, os.sysconf("SC_OPEN_MAX")]:
        if start < number:
            # An empty range from 0 is taken for all of them by some Pythons.
            os.closerange(start, number)
        start = number + 1


def _limit(what: int, most: int, at_last: int | None = None) -> None:
    """Lower, never higher: a process cannot win back what was taken from it."""
    _, hard = resource.getrlimit(what)
    at_last = most if at_last is None else at_last
    at_last = at_last if hard == resource.RLIM_INFINITY else min(at_last, hard)
    resource.setrlimit(what, (min(most, at_last), at_last))


def _open_memory() -> int | None:
    """Where this process's memory can be read, also when it has no way to the file any more: a fork has as much."""
    try:
        return os.open("/proc/self/statm", os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return None


def _mapped(memory: int | None) -> int:
    """Bytes of address space in use; 0 where the system does not say."""
    return 0 if memory is None else int(os.pread(memory, 100, 0).split()[0]) * resource.getpagesize()


def _running(uid: int | None) -> int:
    """How many others the user has who is counted: of a user id of its own, that is the warden."""
    if uid is not None:
        return 1
    mine, count = os.getuid(), 0
    for entry in os.scandir("/proc") if os.path.isdir("/proc") else ():
        with contextlib.suppress(OSError):
            if entry.name.isdigit() and entry.stat().st_uid == mine:
                count += len(os.listdir(f"/proc/{entry.name}/task"))
    return count - 1


def _enter_folder(scratch: str) -> None:
    os.chdir(scratch or "/")


def _is_open_to_all(path: str) -> bool:
    """Whether any user can read it, as far as its own mode and those of the folders above it say."""
    place = Path(path)
    try:
        mode = place.stat().st_mode
        above = all(folder.stat().st_mode & stat.S_IXOTH for folder in place.resolve().parents)
    except FileNotFoundError:
        return True
    wanted = stat.S_IROTH | stat.S_IXOTH if stat.S_ISDIR(mode) else stat.S_IROTH
    return above and mode & wanted == wanted
