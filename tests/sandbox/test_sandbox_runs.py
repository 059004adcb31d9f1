"""A run gives back what its program returned, or says how it ended, and leaves nothing behind."""

from __future__ import annotations

import asyncio
import os
import signal
from pathlib import Path
from typing import Any

import pytest
from processes import below, gone

from whet.core import ConfigError, WorldFault
from whet.sandbox import Ending, Level, Limits, Outcome, Pool, Program, SandboxFault, SandboxWarning, survey
from whet.sandbox import levels as walls

pytestmark = pytest.mark.slow


async def run(source: str, arguments: dict[str, Any] | None = None, **more: Any) -> Outcome:
    async with Pool() as pool:
        return await pool.run(Program(source), arguments, **more)


async def test_a_program_is_called_with_its_arguments_and_answers() -> None:
    source = "def main(x, more):\n print('hello')\n return {'sum': x + more[0], 'text': 'ä'}"
    outcome = await run(source, {"x": 1, "more": [2]})
    assert (outcome.kind, outcome.value, outcome.output) == (Ending.DONE, {"sum": 3, "text": "ä"}, "hello\n")
    assert outcome.seconds > 0


async def test_an_entry_may_be_async_and_arguments_may_be_large() -> None:
    source = "import asyncio\nasync def main(text):\n await asyncio.sleep(0)\n return text"
    assert (await run(source, {"text": "x" * 3_000_000})).value == "x" * 3_000_000


@pytest.mark.parametrize(
    ("source", "kind", "says"),
    [
        ("def main(): return 1 / 0", Ending.RAISED, "ZeroDivisionError: division by zero (line 1, in main)"),
        ("def main(): raise SystemExit(0)", Ending.RAISED, "SystemExit"),
        ("def main(:", Ending.RAISED, "SyntaxError"),
        ("x = 1", Ending.RAISED, "NameError: the program has no main()"),
        ("import os\ndef main(): os._exit(0)", Ending.KILLED, "without an answer (exit code 0)"),
        ("import os\ndef main(): os.abort()", Ending.KILLED, "SIGABRT"),
        ("def main(): return {1, 2}", Ending.BAD_RESULT, "not JSON serializable"),
        ("def main(): return float('nan')", Ending.BAD_RESULT, "not JSON compliant"),
        ("def main(): return 'x' * 2_000_000", Ending.BAD_RESULT, "a result of more than"),
        ("def main(): print('x' * 2_000_000)", Ending.OUTPUT, "bytes printed"),
        ("import time\ndef main(): time.sleep(60)", Ending.TIMEOUT, "not done after 1.5 s"),
        ("def main():\n while True: pass", Ending.CPU, "more than 1 s of CPU"),
        ("def main(): return 'x' * (1 << 30)", Ending.MEMORY, "MemoryError"),
        ("import os\ndef main(): os.write(3, bytes(9)); os._exit(0)", Ending.BAD_RESULT, "cannot be read"),
        ("import os\ndef main(): os.write(3, b'x'); os._exit(0)", Ending.BAD_RESULT, "without an answer"),
    ],
)
async def test_however_a_program_ends_the_outcome_says_so(source: str, kind: Ending, says: str) -> None:
    limits = Limits(seconds=1.5 if kind is Ending.TIMEOUT else 30, cpu_seconds=1, memory=256 << 20, reply=1 << 20)
    outcome = await run(source, limits=limits)
    assert outcome.kind is kind
    assert says in outcome.error
    assert outcome.value is None


async def test_an_error_tells_no_path_of_this_machine(tmp_path: Path) -> None:
    outcome = await run("def main(path): open(path + '/private/thing.txt')", {"path": str(tmp_path)})
    assert outcome.kind is Ending.RAISED
    assert "…/thing.txt" in outcome.error
    assert str(tmp_path) not in outcome.error


async def test_what_is_given_can_be_read_and_only_that(tmp_path: Path) -> None:
    (tmp_path / "given.txt").write_text("given")
    (tmp_path / "other.txt").write_text("other")
    async with Pool() as pool:
        program = Program("def main(path): return open(path).read()")
        given = await pool.run(program, {"path": str(tmp_path / "given.txt")}, read=[tmp_path / "given.txt"])
        other = await pool.run(program, {"path": str(tmp_path / "other.txt")}, read=[tmp_path / "given.txt"])
    assert given.value == "given"
    assert "PermissionError" in other.error


async def test_a_database_is_read_where_it_is_and_a_copy_can_be_written(tmp_path: Path) -> None:
    source = """
import sqlite3
def main(path):
    kept = sqlite3.connect(f"file:{path}?mode=ro", uri=True)
    mine = sqlite3.connect("mine.db")
    kept.backup(mine)
    mine.execute("insert into t values (2)")
    mine.commit()
    return [mine.execute("select sum(x) from t").fetchone()[0], kept.execute("select sum(x) from t").fetchone()[0]]
"""
    path = tmp_path / "a.db"
    make = "import sqlite3, sys; c = sqlite3.connect(sys.argv[1]); c.execute('create table t (x)'); "
    make += "c.execute('insert into t values (1)'); c.commit()"
    made = await asyncio.create_subprocess_exec(os.sys.executable, "-c", make, str(path))
    assert await made.wait() == 0
    assert (await run(source, {"path": str(path)}, read=[path])).value == [3, 1]


async def test_a_run_that_patches_what_it_can_reach_changes_no_other_run() -> None:
    patching = """
import builtins, json, os, sqlite3
def main():
    json.dumps = lambda *a, **k: '"forged"'
    builtins.open = os.write = sqlite3.connect = None
"""
    async with Pool() as pool:
        await pool.run(Program(patching))
        honest = await pool.run(Program("import json, os, sqlite3\ndef main(): return [json.dumps(1), bool(os.write)]"))
    assert honest.value == ["1", True]


async def test_children_are_allowed_where_the_limits_say_so() -> None:
    source = (
        "import subprocess\ndef main(): return subprocess.run(['/bin/echo', 'x'], capture_output=True).stdout.decode()"
    )
    assert (await run(source)).kind is Ending.RAISED
    assert (await run(source, limits=Limits(processes=4))).value == "x\n"


async def test_children_are_counted() -> None:
    source = """
import os, time
def main():
    count = 0
    try:
        while count < 100:
            if os.fork() == 0:
                time.sleep(60)
            count += 1
    except OSError:
        return count
"""
    async with Pool() as pool:
        outcome = await pool.run(Program(source), limits=Limits(processes=8))
        assert below(os.getpid(), named="zygote") != set()
    assert outcome.value == 7
    assert below(os.getpid(), named="zygote") == set()


async def test_modules_are_loaded_before_and_an_unknown_one_is_told() -> None:
    async with Pool(preload=("colorsys",)) as pool:
        loaded = await pool.run(Program("import sys\ndef main(): return 'colorsys' in sys.modules"))
    assert loaded.value is True
    with pytest.raises(SandboxFault, match="no_such_module"):
        async with Pool(preload=("no_such_module",)):
            pass


async def test_a_cancelled_run_is_ended_at_once() -> None:
    async with Pool() as pool:
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.3):
                await pool.run(Program("import time\ndef main(): time.sleep(60)"), limits=Limits(seconds=60))
        assert len(below(os.getpid(), named="zygote")) <= 3
        assert (await pool.run(Program("def main(): return 1"))).value == 1


async def test_many_runs_at_once_leave_no_process_no_file_and_no_descriptor(tmp_path: Path) -> None:
    before = os.listdir("/proc/self/fd")
    source = "import os\ndef main(n):\n open('file', 'w').write('x')\n os.mkdir('folder', 0o000)\n return n"
    async with Pool(folder=tmp_path) as pool, asyncio.TaskGroup() as group:
        runs = [group.create_task(pool.run(Program(source), {"n": number})) for number in range(64)]
    assert [each.result().value for each in runs] == list(range(64))
    assert os.listdir(tmp_path) == []
    assert below(os.getpid(), named="zygote") == set()
    assert len(os.listdir("/proc/self/fd")) == len(before)


async def test_a_zygote_that_dies_is_a_fault_of_ours_and_never_an_answer() -> None:
    async with Pool(level=Level.KERNEL) as pool:
        source = "import time\ndef main(): time.sleep(60)"
        running = asyncio.create_task(pool.run(Program(source), limits=Limits(seconds=60)))
        (zygote,) = {pid for pid in below(os.getpid(), named="zygote") if os.getpid() in below_parents(pid)}
        await asyncio.sleep(0)
        os.kill(zygote, signal.SIGKILL)
        with pytest.raises(WorldFault, match="in the middle of a run"):
            await running
        with pytest.raises(SandboxFault):
            await pool.run(Program("def main(): return 1"))
    assert gone(zygote)


def below_parents(pid: int) -> set[int]:
    return {int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])}


async def test_without_walls_there_is_a_loud_warning() -> None:
    with pytest.warns(SandboxWarning, match="without walls"):
        async with Pool(level=Level.PROCESS) as pool:
            assert (await pool.run(Program("def main(): return 1"))).value == 1


async def test_a_level_that_is_not_there_is_told_with_the_command_that_mends_it(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    found = survey()
    assert found.in_force is Level.KERNEL
    assert found.of(Level.NAMESPACES).mend == walls.INSTALL_BUBBLEWRAP
    with pytest.raises(ConfigError, match=r"bubblewrap is not installed.*apt-get install bubblewrap"):
        async with Pool(level=Level.NAMESPACES):
            pass
