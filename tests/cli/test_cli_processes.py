"""Real processes: a terminal, a pipe that closes, Ctrl-C."""

from __future__ import annotations

import fcntl
import os
import pty
import signal
import struct
import subprocess
import sys
import termios
from pathlib import Path
from typing import IO

import pytest

from whet.cli.standing import State, standing_of

pytestmark = pytest.mark.slow

WHET = [sys.executable, "-m", "whet"]

WAITING = '''

import asyncio
import os
import signal
from pathlib import Path


async def waiting_student(request: ModelRequest) -> str:
    """Answers, until it is told to wait: then for as long as the test holds a file open, or for ever."""
    marker = Path(__file__).with_name("answered")
    count = int(marker.read_text()) if marker.exists() else 0
    marker.write_text(str(count + 1))
    how = os.environ.get("WHET_TEST_WAIT", "")
    if how and count >= 50:
        print("in flight", flush=True)
        if how == "for ever":
            await asyncio.Event().wait()
        if how == "deaf":
            while signal.getsignal(signal.SIGINT) is not signal.default_int_handler:
                pass
            print("still deaf", flush=True)
            while True:
                pass
        await asyncio.to_thread(Path(__file__).with_name("gate").read_bytes)
    return student(request)
'''


@pytest.fixture
def waiting(project: Path) -> Path:
    with (project / "models.py").open("a") as file:
        file.write(WAITING)
    text = (project / "whet.toml").read_text()
    text = text.replace("models.py:student", "models.py:waiting_student")
    (project / "whet.toml").write_text(text.replace("[optimizer]", "max_in_flight = 1\n\n[optimizer]"))
    os.mkfifo(project / "gate")
    return project


def _environ(**more: str) -> dict[str, str]:
    return {**os.environ, "PYTHONUNBUFFERED": "1", "TERM": "xterm", **more}


def _start(project: Path, wait: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [*WHET, "train", str(project)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=_environ(WHET_TEST_WAIT=wait),
    )


def _read_to(stream: IO[str] | None, beginning: str) -> str:
    assert stream is not None
    for line in stream:
        if line.startswith(beginning):
            return line
    raise AssertionError(f"no line begins with {beginning!r}")


def test_ctrl_c_keeps_the_call_in_flight_and_the_same_command_goes_on(waiting: Path) -> None:
    training = _start(waiting, "at the gate")
    _read_to(training.stdout, "in flight")
    training.send_signal(signal.SIGINT)
    told = _read_to(training.stdout, "stopping: ")
    assert told == "stopping: waiting for 1 call in flight; Ctrl-C again stops at once\n"
    (waiting / "gate").write_bytes(b"")
    _, errors = training.communicate()
    assert training.returncode == 1
    assert errors == "whet: interrupted by Ctrl-C. Nothing is lost: the same command goes on.\n"

    standing = standing_of(waiting / "runs/run-1")
    assert standing.state is State.STOPPED
    assert standing.stopped == "interrupted by Ctrl-C"
    answered = int((waiting / "answered").read_text())

    again = subprocess.run([*WHET, "train", str(waiting)], capture_output=True, text=True, env=_environ(), check=False)
    assert again.returncode == 0, again.stderr
    assert again.stdout.startswith("going on with run-1\n")
    assert "Better by +0." in again.stdout
    # Nothing that was answered is asked again: the whole training takes as many answers as one without a stop.
    assert answered == 51
    assert int((waiting / "answered").read_text()) == _rollouts(waiting)


def _rollouts(project: Path) -> int:
    return standing_of(project / "runs/run-1").rollouts


def test_a_second_ctrl_c_stops_at_once(waiting: Path) -> None:
    training = _start(waiting, "for ever")
    _read_to(training.stdout, "in flight")
    training.send_signal(signal.SIGINT)
    _read_to(training.stdout, "stopping: ")
    training.send_signal(signal.SIGINT)
    _, errors = training.communicate()
    assert training.returncode == 1
    assert errors.strip().splitlines() == [
        "whet: stopped at once. The same command goes on; only calls in flight are lost."
    ]
    assert standing_of(waiting / "runs/run-1").state is State.INTERRUPTED


def test_ctrl_c_twice_also_ends_a_model_that_holds_up_everything(waiting: Path) -> None:
    """It ends though nothing on the loop can run, and without a traceback."""
    training = _start(waiting, "deaf")
    _read_to(training.stdout, "in flight")
    training.send_signal(signal.SIGINT)
    _read_to(training.stdout, "still deaf")
    training.send_signal(signal.SIGINT)
    _, errors = training.communicate()
    assert training.returncode == 1
    assert errors.strip() == "whet: stopped at once. The same command goes on; only calls in flight are lost."


def _on_terminal(project: Path, arguments: list[str], columns: int, **environ: str) -> tuple[int, str]:
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
    process = subprocess.Popen(
        [*WHET, *arguments], stdin=theirs, stdout=theirs, stderr=theirs, env=_environ(**environ), cwd=project
    )
    os.close(theirs)
    shown = bytearray()
    while True:
        try:
            piece = os.read(ours, 65536)
        except OSError:  # how Linux says that the other side is closed
            break
        if not piece:
            break
        shown += piece
    os.close(ours)
    return process.wait(), shown.decode()


@pytest.mark.parametrize("columns", [80, 40])
def test_a_terminal_gets_bars_and_then_the_verdict(project: Path, columns: int) -> None:
    code, shown = _on_terminal(project, ["train"], columns)
    assert code == 0
    assert "━" in shown
    assert "steps" in shown
    assert "Better by +0." in shown
    assert "\x1b[" in shown


def test_no_color_is_respected_on_a_terminal(trained: Path) -> None:
    _, coloured = _on_terminal(trained, ["show"], 80)
    assert "\x1b[32m" in coloured
    _, plain = _on_terminal(trained, ["show"], 80, NO_COLOR="1")
    assert "\x1b[" not in plain


@pytest.mark.parametrize(
    "arguments", [["show"], ["show", "--step", "1"], ["runs"], ["eval", "--plain"], ["models", "list"], ["doctor"]]
)
def test_no_line_is_broken_by_80_columns(trained: Path, arguments: list[str]) -> None:
    code, shown = _on_terminal(trained, arguments, 80, NO_COLOR="1", WHET_HOME="data")
    assert code == 0
    assert max(len(line) for line in shown.splitlines()) <= 80


def test_a_reader_that_leaves_is_no_error(trained: Path) -> None:
    done = subprocess.run(
        f"{' '.join(WHET)} export run-1 -C {trained} | head -1", shell=True, capture_output=True, text=True, check=True
    )
    assert done.stdout.startswith('{"type":"step"')
    assert done.stderr == ""


def test_watch_follows_another_process_to_its_end(waiting: Path) -> None:
    training = _start(waiting, "at the gate")
    _read_to(training.stdout, "in flight")
    watching = subprocess.Popen(
        [*WHET, "watch", "-C", str(waiting), "--json"], stdout=subprocess.PIPE, text=True, env=_environ()
    )
    training.send_signal(signal.SIGINT)
    _read_to(training.stdout, "stopping: ")
    (waiting / "gate").write_bytes(b"")
    training.communicate()
    told, _ = watching.communicate()
    assert '"state": "stopped early"' in told
