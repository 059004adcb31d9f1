"""What is asked of the sandbox, and what came of it."""

from __future__ import annotations

import os
import re
import signal
from enum import StrEnum

import msgspec

from whet.core import Json, WorldFault
from whet.sandbox.inside.wire import FRAME, OK
from whet.sandbox.orders import LOST, Answer, Ended, Limits, Reply

_PATH = re.compile(r"(?<![\w./])(?:/[\w.+@~=-]+){2,}/?")
_MOST_TEXT = 4000
_decode = msgspec.json.Decoder(Reply).decode


class SandboxFault(WorldFault):
    """The sandbox itself broke: no word on the code that was to run in it."""


class WorkerLost(SandboxFault):
    """A worker is gone, or was ended because it did not keep to its limits. `kind` says how."""

    def __init__(self, message: str, kind: Ending) -> None:
        super().__init__(message)
        self.kind = kind


class HostRaised(SandboxFault):
    """A host's `answer` raised; its worker goes on."""


class Program(msgspec.Struct, frozen=True):
    """Python that we did not write."""

    source: str
    entry: str = "main"
    """The function to call; it may be async. Empty: executing the source is all."""


class Host(msgspec.Struct, frozen=True):
    """A class of ours for a template to load, as "module:Class"; see `Hosted` for its methods."""

    place: str
    settings: Json = None


class Ending(StrEnum):
    DONE = "done"
    RAISED = "raised"
    TIMEOUT = "timeout"
    CPU = "cpu"
    MEMORY = "memory"
    DISK = "disk"
    OUTPUT = "output"
    BAD_RESULT = "bad_result"
    """It has no JSON form, is too large, or is not what a run answers with."""
    KILLED = "killed"
    """Ended by a signal, or of itself without an answer."""


class Outcome(msgspec.Struct, frozen=True):
    """How a run ended. All of it comes from foreign code but `kind`, `seconds` and `cpu_seconds`."""

    kind: Ending
    value: Json = None
    error: str = ""
    """One line, without paths of this machine."""
    output: str = ""
    """What it printed, up to its limit."""
    seconds: float = 0.0
    cpu_seconds: float = 0.0

    @property
    def done(self) -> bool:
        return self.kind is Ending.DONE


class Gathered(msgspec.Struct, frozen=True):
    """Everything that is known of a run when it is over."""

    said: bytes
    said_too_much: bool
    printed: bytes
    printed_too_much: bool
    ended: Ended
    seconds: float


def outcome_of(found: Gathered, limits: Limits) -> Outcome:
    """What is forced upon a run comes before what it says of itself."""
    if found.ended.cause == LOST:
        raise SandboxFault("the sandbox ended in the middle of a run")
    first, rest = _frame(found.said)
    if first is None or first[1] != OK:
        why = first[2].decode("utf-8", "replace") if first else f"it ended early ({_status(found.ended.status)})"
        raise SandboxFault(f"a run could not be confined: {without_paths(why)}", hint="See `whet doctor`")
    kind, error = _forced(found, limits)
    value: Json = None
    if kind is None:
        kind, value, error = _answered(rest, found.ended.status)
    output = found.printed.decode("utf-8", "replace")
    return Outcome(kind, value, without_paths(error), output, found.seconds, found.ended.cpu_seconds)


def without_paths(text: str) -> str:
    """Of each path its last part."""
    return _PATH.sub(lambda found: f"…/{found[0].rstrip('/').rpartition('/')[2]}", text)[:_MOST_TEXT]


def _forced(found: Gathered, limits: Limits) -> tuple[Ending | None, str]:
    if found.ended.cause in ("timeout", "disk"):
        told = {
            "timeout": f"not done after {limits.seconds:g} s",
            "disk": f"more than {limits.disk:,} bytes written",
        }
        return Ending(found.ended.cause), told[found.ended.cause]
    if found.printed_too_much:
        return Ending.OUTPUT, f"more than {limits.output:,} bytes printed"
    if found.said_too_much:
        return Ending.BAD_RESULT, f"a result of more than {limits.reply:,} bytes"
    if _ran_out_of_cpu(found.ended, limits):
        return Ending.CPU, f"more than {limits.cpu_seconds} s of CPU"
    return None, ""


def _ran_out_of_cpu(ended: Ended, limits: Limits) -> bool:
    if not os.WIFSIGNALED(ended.status):
        return False
    return os.WTERMSIG(ended.status) == signal.SIGXCPU or ended.cpu_seconds >= limits.cpu_seconds


def _answered(said: bytes, status: int) -> tuple[Ending, Json, str]:
    frame, rest = _frame(said)
    if frame is None:
        kind = Ending.BAD_RESULT if said else Ending.KILLED
        return kind, None, f"it ended without an answer ({_status(status)})"
    try:
        reply = _decode(frame[2])
        value: Json = msgspec.json.decode(reply.value)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        return Ending.BAD_RESULT, None, f"its result cannot be read: {error}"
    if rest:
        return Ending.BAD_RESULT, None, "it answered more than once"
    kind = Ending(reply.answer)
    return kind, value if reply.answer is Answer.DONE else None, reply.error


def _frame(data: bytes) -> tuple[tuple[int, int, bytes] | None, bytes]:
    """The first frame as number, status and payload, and what follows it."""
    if len(data) < FRAME.size:
        return None, data
    length, number, status = FRAME.unpack_from(data)
    end = FRAME.size + length
    return (None, data) if len(data) < end else ((number, status, data[FRAME.size : end]), data[end:])


def _status(status: int) -> str:
    if os.WIFSIGNALED(status):
        return signal.Signals(os.WTERMSIG(status)).name
    return f"exit code {os.waitstatus_to_exitcode(status)}"
