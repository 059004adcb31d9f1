"""A template is loaded once and forked often; no worker sees or is taken for another, and nothing outlives it."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import signal
import subprocess
import sys
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from processes import below, descendants, gone

from whet.core import InputError
from whet.sandbox import (
    HOST_LIMITS,
    Ending,
    Host,
    HostRaised,
    Level,
    Limits,
    Pool,
    SandboxFault,
    Template,
    Worker,
    WorkerLost,
)

pytestmark = pytest.mark.slow
HERE = Path(__file__).parent
DOING = Host("hosts:Doing", {"a": 1})


@contextlib.asynccontextmanager
async def opened(host: Host = DOING, level: Level | None = None) -> AsyncIterator[Template]:
    async with Pool(level=level) as pool:
        yield await pool.template(host)


async def until_only(pids: set[int]) -> None:
    """A process that is ending is still to be seen for a moment."""
    async with asyncio.timeout(5):
        while below(os.getpid(), named="zygote") != pids:
            await asyncio.sleep(0)


async def said(worker: Worker, code: str) -> str:
    return (await worker.ask(code.encode(), seconds=5)).decode()


async def test_it_is_loaded_once_and_each_worker_counts_for_itself() -> None:
    async with opened() as template:
        one, other = await template.fork(), await template.fork()
        counting = "host.asked += 1; said = host.asked, host.settings"
        assert await said(one, counting) == "(1, {'a': 1})"
        assert await said(one, counting) == "(2, {'a': 1})"
        assert await said(other, counting) == "(1, {'a': 1})"
        loaded = {await said(worker, "said = host.loaded") for worker in (one, other)}
        pids = {await said(worker, "said = os.getpid()") for worker in (one, other)}
        assert len(loaded) == 1
        assert len(pids | loaded) == 3


@pytest.mark.parametrize("level", [Level.NAMESPACES, Level.KERNEL])
async def test_a_worker_reaches_nothing_of_another(level: Level) -> None:
    async with opened(level=level) as template:
        mine, other = await template.fork(), await template.fork()
        await said(mine, "Path('mine.txt').write_text('x')")
        pid = await said(mine, "said = os.getpid()")
        assert (mine.scratch / "mine.txt").read_text() == "x"
        for attack in (
            f"open('{mine.scratch}/mine.txt')",
            f"os.listdir('{mine.scratch}')",
            f"os.listdir('{template.folder}')",
            f"open('{mine.scratch}/new.txt', 'w')",
            f"os.unlink('{mine.scratch}/mine.txt')",
            f"os.kill({pid}, 9)",
            "os.kill(os.getppid(), 9)",
            "os.fork()",
            "open('/etc/passwd')",
            "os.stat(4)",
            "__import__('socket').socket()",
        ):
            with pytest.raises(HostRaised, match=r"Error"):
                await said(other, attack)
        assert await said(mine, "said = Path('mine.txt').read_text()") == "x"


async def test_an_error_of_the_host_is_told_and_the_worker_goes_on() -> None:
    async with opened() as template:
        worker = await template.fork()
        with pytest.raises(HostRaised, match=r"the host failed: ZeroDivisionError: division by zero"):
            await said(worker, "1 / 0")
        assert await said(worker, "said = 1") == "1"


async def test_a_late_reply_is_never_taken_for_the_next_ones() -> None:
    async with opened() as template:
        worker = await template.fork()
        with pytest.raises(WorkerLost, match=r"no reply after 0.2 s") as lost:
            await worker.ask(b"time.sleep(0.4); said = 'late'", seconds=0.2)
        assert lost.value.kind is Ending.TIMEOUT
        with pytest.raises(WorkerLost):
            await said(worker, "said = 'next'")
        assert await said(await template.fork(), "said = 'another'") == "another"


async def test_a_request_that_is_given_up_ends_the_worker() -> None:
    async with opened() as template:
        worker = await template.fork()
        asking = asyncio.create_task(worker.ask(b"time.sleep(60)"))
        await asyncio.sleep(0.05)
        asking.cancel()
        with pytest.raises(asyncio.CancelledError):
            await asking
        assert worker.lost is not None


@pytest.mark.parametrize(
    ("code", "kind"),
    [
        ("os._exit(0)", Ending.KILLED),
        ("os.write(3, bytes(9))", Ending.BAD_RESULT),
        ("os.write(3, b'\\xff' * 9)", Ending.BAD_RESULT),
        ("said = 'x' * 40_000_000", Ending.BAD_RESULT),
        ("open('a', 'wb').write(bytes(50 << 20)); said = 1", Ending.DISK),
        ("while True: pass", Ending.KILLED),
    ],
)
async def test_what_breaks_a_worker_breaks_it_alone(code: str, kind: Ending) -> None:
    async with opened() as template:
        limits = Limits(cpu_seconds=1, disk=30 << 20)
        broken, whole = await template.fork(limits=limits), await template.fork()
        with pytest.raises(WorkerLost) as lost:
            await broken.ask(code.encode())
        assert lost.value.kind is kind
        assert await said(whole, "said = 'whole'") == "whole"


async def test_memory_is_limited_for_each_worker() -> None:
    async with opened() as template:
        small, large = await template.fork(limits=Limits(memory=64 << 20)), await template.fork()
        with pytest.raises(HostRaised, match="MemoryError"):
            await said(small, "kept = bytearray(200 << 20)")
        assert await said(large, "kept = bytearray(200 << 20); said = len(kept)") == str(200 << 20)


async def test_a_killed_warden_takes_its_sandbox_with_it() -> None:
    code = "pid = os.fork()\nif pid == 0:\n os.setsid()\n time.sleep(300)"
    async with Pool(level=Level.KERNEL) as pool:
        before = below(os.getpid(), named="zygote")
        template = await pool.template(Host("hosts:LoadsForeignCode", code))
        (zygote,) = before
        (warden,) = descendants(zygote, children=True)
        os.kill(warden, signal.SIGKILL)
        await until_only(before)
        with pytest.raises(SandboxFault):
            await template.fork()
        await template.close()
        await until_only(before)


async def test_a_request_after_another_waits_for_its_turn() -> None:
    async with opened(Host("hosts:Echo")) as template:
        worker = await template.fork()
        replies = await asyncio.gather(*(worker.ask(b"%d" % number) for number in range(50)))
        assert replies == [b"%d %d" % (number, number + 1) for number in range(50)]


async def test_a_folder_that_the_caller_filled_is_the_workers_and_stays() -> None:
    async with opened() as template:
        folder = template.folder / "session"
        folder.mkdir()
        (folder / "given.txt").write_text("given")
        worker = await template.fork(folder)
        assert await said(worker, "p = Path('given.txt'); p.write_text(p.read_text() + '+'); said = os.getcwd()")
        await worker.close()
        assert (folder / "given.txt").read_text() == "given+"
        with pytest.raises(InputError, match=r"is not in"):
            await template.fork(HERE)


async def test_what_cannot_be_loaded_is_told_without_paths() -> None:
    async with Pool() as pool:
        with pytest.raises(SandboxFault, match=r"RuntimeError: nothing at …/\d+"):
            await pool.template(Host("hosts:CannotLoad"))
        with pytest.raises(SandboxFault, match="no_such_module"):
            await pool.template(Host("no_such_module:Class"))
        with pytest.raises(SandboxFault, match="it ended while loading"):
            await pool.template(Host("hosts:LoadsForeignCode", "os._exit(0)"))
        slow = Limits(seconds=0.3, processes=4)
        with pytest.raises(SandboxFault, match=r"not loaded within 0.3 s"):
            await pool.template(Host("hosts:LoadsForeignCode", "time.sleep(60)"), limits=slow)


@pytest.mark.parametrize("level", [Level.NAMESPACES, Level.KERNEL, Level.PROCESS])
@pytest.mark.filterwarnings("ignore::whet.sandbox.SandboxWarning")
async def test_what_a_template_forks_behind_our_back_ends_with_it(level: Level) -> None:
    """Foreign code that is loaded may fork twice, leave its session and ignore signals."""
    code = """
for _ in range(3):
    pid = os.fork()
    if pid == 0:
        os.setsid()
        if os.fork() == 0:
            import signal
            signal.signal(signal.SIGTERM, signal.SIG_IGN)
            time.sleep(300)
        os._exit(0)
    os.waitpid(pid, 0)
"""
    async with Pool(level=level) as pool:
        before = below(os.getpid(), named="zygote")
        template = await pool.template(Host("hosts:LoadsForeignCode", code))
        assert len(below(os.getpid(), named="zygote")) >= len(before) + 5
        await template.close()
        assert below(os.getpid(), named="zygote") == before


async def test_a_thousand_workers_leave_nothing_behind(tmp_path: Path) -> None:
    before = len(os.listdir("/proc/self/fd"))
    async with Pool(folder=tmp_path) as pool:
        template = await pool.template(Host("hosts:Echo"))
        zygotes = below(os.getpid(), named="zygote")
        for _ in range(4):
            workers = [await template.fork() for _ in range(256)]
            assert await workers[-1].ask(b"x") == b"x 1"
            assert len(below(os.getpid(), named="zygote")) == len(zygotes) + 256
            await asyncio.gather(*(worker.close() for worker in workers))
            assert list(template.folder.iterdir()) == []
        await until_only(zygotes)
    assert os.listdir(tmp_path) == []
    assert below(os.getpid(), named="zygote") == set()
    assert len(os.listdir("/proc/self/fd")) == before


HOLDING = """
import asyncio, json, os, sys
sys.path.insert(0, sys.argv[1])
from processes import below
from whet.sandbox import *
async def main():
    async with Pool(level=Level(sys.argv[2]), folder=sys.argv[3]) as pool:
        template = await pool.template(Host("hosts:Doing"))
        worker = await template.fork()
        running = asyncio.create_task(pool.run(Program("def main():\\n while 1: pass")))
        asking = asyncio.create_task(worker.ask(b"while 1: pass"))
        await asyncio.sleep(0.3)
        print(json.dumps(sorted(below(os.getpid(), named="zygote"))), flush=True)
        await asking
asyncio.run(main())
"""


@pytest.mark.parametrize("level", [Level.NAMESPACES, Level.KERNEL])
def test_a_whet_that_is_killed_leaves_no_process_behind(level: Level, tmp_path: Path) -> None:
    holding = subprocess.Popen(
        [sys.executable, "-c", HOLDING, str(HERE), level, str(tmp_path)], stdout=subprocess.PIPE, text=True
    )
    assert holding.stdout is not None
    pids = json.loads(holding.stdout.readline())
    assert len(pids) >= 5
    holding.send_signal(signal.SIGKILL)
    holding.wait()
    holding.stdout.close()
    for _ in range(500):
        if all(map(gone, pids)):
            return
        subprocess.run(["sleep", "0.01"], check=True)
    pytest.fail(f"still there: {[pid for pid in pids if not gone(pid)]}")


def test_the_limits_of_hosts_leave_room_for_many_workers() -> None:
    assert HOST_LIMITS.processes >= 1024
