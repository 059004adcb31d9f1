"""Stands above a process that may have children, and ends when it ends, with all that came of it.

Whatever forks twice, starts a session of its own or outlives its parent becomes the warden's child. The warden can
signal nothing but what is below it, so that an order with a wrong process id does no harm. It may read no library any
more: it uses what is loaded already.
"""

from __future__ import annotations

import contextlib
import os
import select
import signal
import socket
from collections.abc import Callable
from pathlib import Path
from typing import NoReturn

from whet.sandbox.inside import kernel, landlock
from whet.sandbox.inside.confine import become_user
from whet.sandbox.inside.running import guarded
from whet.sandbox.inside.wire import Line
from whet.sandbox.orders import Box, Level

_LOOK_AGAIN = 0.002


def keep(
    box: Box, program: Callable[[int], object], parent: int, watch: int | None, above: tuple[int, ...]
) -> NoReturn:
    """Forks the program and stays above it. `watch`: a line with orders to kill, whose end is the end of all."""
    ending = _Ending()
    reaches_its_own = False
    if kernel.IS_LINUX:
        kernel.prctl(kernel.PR_SET_CHILD_SUBREAPER, 1)
        if box.level is not Level.PROCESS:
            kernel.no_new_privileges()
            reaches_its_own = landlock.keep_signals_in(box.landlock)
    me = os.getpid()
    child = os.fork()
    if child == 0:
        ending.forget()
        guarded(lambda: program(me))
    for descriptor in above:
        os.close(descriptor)
    if box.user is not None:
        become_user(box.user)
        reaches_its_own = True
        kernel.keep_capabilities(frozenset())
    if kernel.IS_LINUX:
        kernel.prctl(kernel.PR_SET_PDEATHSIG, signal.SIGTERM)
    if os.getppid() != parent:
        ending.wanted = True
    status = _watch_over(child, None if watch is None else Line(socket.socket(fileno=watch)), ending)
    _kill_all(child, everyone=reaches_its_own)
    _end_as(status)


class _Ending:
    """Signals that wake the warden, and the one that ends it."""

    def __init__(self) -> None:
        self.wanted = False
        self.woken, self._wake = os.pipe()
        os.set_blocking(self.woken, False)
        os.set_blocking(self._wake, False)
        signal.signal(signal.SIGTERM, self._end)
        signal.signal(signal.SIGCHLD, _noted)
        signal.set_wakeup_fd(self._wake, warn_on_full_buffer=False)

    def _end(self, *_: object) -> None:
        self.wanted = True

    def forget(self) -> None:
        signal.set_wakeup_fd(-1)
        for each in (signal.SIGTERM, signal.SIGCHLD):
            signal.signal(each, signal.SIG_DFL)
        os.close(self.woken)
        os.close(self._wake)


def _noted(*_: object) -> None:
    """The wake-up descriptor tells of it; a handler must be there for that."""


def _watch_over(child: int, line: Line | None, ending: _Ending) -> int:
    """The child's wait status once it is gone, or a kill where the end was asked for."""
    lines = [] if line is None else [line]
    while not ending.wanted:
        ready, _, _ = select.select([ending.woken, *lines], [], [])
        if ending.woken in ready:
            with contextlib.suppress(BlockingIOError):
                os.read(ending.woken, 4096)
            status = _reaped().get(child)
            if status is not None:
                return status
        if line is not None and line in ready:
            if not line.read():
                break
            while (message := line.waiting()) is not None:
                _kill_one(int(message[0]))
    return signal.SIGKILL


def _reaped() -> dict[int, int]:
    """Everything below that has ended since, with its status."""
    found: dict[int, int] = {}
    with contextlib.suppress(ChildProcessError):
        while (ended := os.waitpid(-1, os.WNOHANG))[0]:
            found[ended[0]] = ended[1]
    return found


def _kill_one(pid: int) -> None:
    if pid in below(os.getpid()):
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.kill(pid, signal.SIGKILL)


def _kill_all(child: int, *, everyone: bool) -> None:
    """Until there is nobody left to wait for: every orphan below comes to the warden in the end.

    `everyone`: the kernel lets this process signal nothing but its own sandbox, so that a signal to all is one to that.
    """
    while True:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            if everyone:
                os.kill(-1, signal.SIGKILL)
            elif not kernel.IS_LINUX:
                os.killpg(child, signal.SIGKILL)
        for pid in () if everyone else below(os.getpid()):
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.kill(pid, signal.SIGKILL)
        try:
            while os.waitpid(-1, os.WNOHANG)[0]:
                pass
        except ChildProcessError:
            return
        select.select([], [], [], _LOOK_AGAIN)


def below(top: int, *, children: bool = False) -> set[int]:
    """Every process that descends from that one, or its children alone."""
    parents: dict[int, int] = {}
    for entry in Path("/proc").iterdir() if kernel.IS_LINUX else ():
        if entry.name.isdigit():
            with contextlib.suppress(OSError, IndexError, ValueError):
                parents[int(entry.name)] = int((entry / "stat").read_bytes().rpartition(b")")[2].split()[1])
    if children:
        return {pid for pid, parent in parents.items() if parent == top}
    found = {top}
    while more := {pid for pid, parent in parents.items() if parent in found} - found:
        found |= more
    return found - {top}


def _end_as(status: int) -> NoReturn:
    """So that who waits for the warden learns how the child ended."""
    if os.WIFSIGNALED(status):
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        os.kill(os.getpid(), os.WTERMSIG(status))
    os._exit(os.waitstatus_to_exitcode(status) & 0xFF)
