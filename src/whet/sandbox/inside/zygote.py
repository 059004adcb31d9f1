"""A Python with its modules loaded, from which each run is forked. It runs no foreign code itself.

It is single-threaded and takes orders on one line. What it forks it watches: the wall clock, the scratch folder, the
end. When its line breaks, because whet is gone, everything that it forked is ended.
"""

from __future__ import annotations

import contextlib
import gc
import importlib
import os
import select
import signal
import socket
import sys
import time
from collections.abc import Callable
from typing import NoReturn

import msgspec

from whet.sandbox.inside import hosting, kernel, running, seccomp, warden
from whet.sandbox.inside.confine import CHANNEL, Walls, leave_only, readable_library
from whet.sandbox.inside.wire import Line
from whet.sandbox.orders import Box, Ended, HostOrder, KillOrder, Level, Ready, RunOrder, ToZygote
from whet.sandbox.scratch import bytes_held

_LOOK_EVERY = 0.1
"""Seconds between looks at what runs have written."""
_decode = msgspec.json.Decoder(ToZygote).decode


def main(modules: str) -> None:
    """`modules`: to be loaded first, separated by commas."""
    os.dup2(_only_socket(), CHANNEL)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    line = Line(socket.socket(fileno=CHANNEL))
    try:
        for name in filter(None, modules.split(",")):
            importlib.import_module(name)
    except ImportError as error:
        line.send(msgspec.json.encode(Ready(f"{error.name or modules} cannot be loaded: {error}")))
        return
    _prepare()
    gc.collect()
    gc.freeze()
    line.send(msgspec.json.encode(Ready()))
    Zygote(line).serve()


def _prepare() -> None:
    """Once, here: what a fork finds out is lost with it."""
    readable_library()
    if kernel.IS_LINUX:
        kernel.prctl(kernel.PR_SET_CHILD_SUBREAPER, 1)
        seccomp.prepare()
        if os.getuid() == 0:
            kernel.empty_capability_bounds()


class _Job:
    def __init__(self, id: int, box: Box, *, has_warden: bool, is_run: bool) -> None:
        self.id = id
        self.box = box
        self.has_warden = has_warden
        self.is_run = is_run
        self.deadline = time.monotonic() + box.limits.seconds if is_run else float("inf")
        self.cause = ""


class Zygote:
    def __init__(self, line: Line) -> None:
        self._line = line
        self._jobs: dict[int, _Job] = {}
        self._woken, self._wake = os.pipe()
        os.set_blocking(self._woken, False)
        os.set_blocking(self._wake, False)

    def serve(self) -> None:
        """Until the line ends."""
        signal.signal(signal.SIGCHLD, _noted)
        signal.set_wakeup_fd(self._wake, warn_on_full_buffer=False)
        look = 0.0
        while True:
            ready, _, _ = select.select([self._line, self._woken], [], [], self._patience())
            if self._woken in ready:
                with contextlib.suppress(BlockingIOError):
                    os.read(self._woken, 4096)
            self._reap()
            if self._line in ready:
                if not self._line.read():
                    break
                while (message := self._line.waiting()) is not None:
                    self._take(_decode(message[0]), message[1])
            now = time.monotonic()
            self._end_late(now)
            if now >= look:
                self._end_greedy()
                look = now + _LOOK_EVERY
        self._end_all()

    def _patience(self) -> float | None:
        runs = [job.deadline for job in self._jobs.values() if job.is_run]
        return min(max(0.0, min(runs) - time.monotonic()), _LOOK_EVERY) if runs else None

    def _take(self, order: ToZygote, descriptors: list[int]) -> None:
        match order:
            case RunOrder(id=id, box=box):
                channel, output = descriptors
                has_warden = box.limits.processes > 1 or box.level is Level.PROCESS
                become = self._as_warden(box, channel, output) if has_warden else _as_run(box, channel, output)
                self._fork(_Job(id, box, has_warden=has_warden, is_run=True), become)
            case HostOrder(id=id, box=box):
                self._fork(_Job(id, box, has_warden=True, is_run=False), self._as_host(order, *descriptors))
            case KillOrder(id=id):
                self._kill(id, "asked")
        for descriptor in descriptors:
            os.close(descriptor)

    def _fork(self, job: _Job, become: Callable[[int], object]) -> None:
        """`become` is told who its parent is."""
        me = os.getpid()
        pid = os.fork()
        if pid == 0:
            self._forget()
            running.guarded(lambda: become(me))
        self._jobs[pid] = job

    def _forget(self) -> None:
        """Leaves behind what a child must not have of its parent's."""
        signal.set_wakeup_fd(-1)
        for each in (signal.SIGCHLD, signal.SIGINT):
            signal.signal(each, signal.SIG_DFL)
        os.setsid()

    def _as_warden(self, box: Box, channel: int, output: int) -> Callable[[int], NoReturn]:
        above = (self._line.fileno(), self._woken, self._wake)
        program = _as_run(box, channel, output)
        return lambda parent: warden.keep(box, program, parent, None, (*above, channel, output))

    def _as_host(self, order: HostOrder, watch: int, orders: int) -> Callable[[int], NoReturn]:
        above = (self._line.fileno(), self._woken, self._wake)

        def program(parent: int) -> NoReturn:
            hosting.template(order, orders, parent)

        return lambda parent: warden.keep(order.box, program, parent, watch, (*above, orders))

    def _reap(self) -> None:
        """Whatever has ended. One that is not known was orphaned with its warden, and may have orphaned others."""
        while True:
            try:
                pid, status, usage = os.wait4(-1, os.WNOHANG)
            except ChildProcessError:
                return
            if pid == 0:
                return
            job = self._jobs.pop(pid, None)
            if job is None or job.has_warden:
                self._end_strays()
            if job is not None:
                ended = Ended(job.id, status, usage.ru_utime + usage.ru_stime, job.cause)
                self._line.send(msgspec.json.encode(ended))

    def _end_strays(self) -> None:
        """What is left of a sandbox whose warden was killed by others."""
        for pid in warden.below(os.getpid(), children=True) - set(self._jobs):
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)

    def _end_late(self, now: float) -> None:
        for job in [job for job in self._jobs.values() if job.deadline <= now]:
            job.deadline = float("inf")
            self._kill(job.id, "timeout")

    def _end_greedy(self) -> None:
        for pid, job in list(self._jobs.items()):
            most = job.box.limits.disk
            if not job.is_run:
                continue
            pids = warden.below(pid) if job.has_warden else {pid}
            if bytes_held(job.box.scratch, most, pids) > most:
                self._kill(job.id, "disk")

    def _kill(self, id: int, cause: str) -> None:
        """A warden is asked to end, because only it can end all that is below it."""
        for pid, job in self._jobs.items():
            if job.id == id:
                job.cause = job.cause or cause
                os.kill(pid, signal.SIGTERM if job.has_warden else signal.SIGKILL)

    def _end_all(self) -> None:
        for job in list(self._jobs.values()):
            self._kill(job.id, "gone")
        until = time.monotonic() + 5.0
        while self._jobs and time.monotonic() < until:
            select.select([self._woken], [], [], 0.05)
            self._reap()


def _noted(*_: object) -> None:
    """The wake-up descriptor tells of it; a handler must be there for that."""


def _as_run(box: Box, channel: int, output: int) -> Callable[[int], NoReturn]:
    def become(parent: int) -> NoReturn:
        walls = Walls(box)
        null = os.open(os.devnull, os.O_RDONLY)
        leave_only({0: null, 1: output, 2: output, CHANNEL: channel}, walls.keep_open())

        def enter() -> None:
            walls.enter()
            walls.close()
            kernel.die_with_parent(parent) if kernel.IS_LINUX else None

        running.confined(CHANNEL, enter)
        running.run_program(CHANNEL)

    return become


def _only_socket() -> int:
    """The descriptor of whet's line, by the number that it has in both processes."""
    return int(sys.argv[1])
