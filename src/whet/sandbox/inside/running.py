"""One run of a program that we did not write: read it, execute it, answer, end."""

from __future__ import annotations

import asyncio
import inspect
import json
import os
import sys
import traceback
from collections.abc import Callable
from typing import Any, NoReturn

import msgspec

from whet.sandbox.inside.wire import OK, RAISED, read_frame, write_frame
from whet.sandbox.orders import Answer, Reply, Request

SOURCE = "<program>"
"""What tracebacks call the program."""
_BROKEN = 70
_MOST_TEXT = 4000
_decode = msgspec.json.Decoder(Request).decode


def guarded(act: Callable[[], object]) -> NoReturn:
    """What was forked never goes back into the code of its parent."""
    try:
        act()
    except BaseException:  # noqa: BLE001 (nobody is above to tell; the silence on the channel says it)
        pass
    finally:
        os._exit(_BROKEN)


def confined(channel: int, enter: Callable[[], object]) -> None:
    """Tells the other side, before any foreign code, that the walls are up or why they could not be."""
    try:
        enter()
    except BaseException as error:
        write_frame(channel, 0, RAISED, f"{type(error).__name__}: {error}".encode())
        raise
    write_frame(channel, 0, OK, b"")


def run_program(channel: int) -> NoReturn:
    frame = read_frame(channel)
    if frame is None:
        os._exit(0)
    reply = _reply(_decode(frame[1]))
    for stream in (sys.stdout, sys.stderr):
        _flush(stream)
    write_frame(channel, 1, OK, msgspec.json.encode(reply))
    os._exit(0)


def describe(error: BaseException) -> str:
    """The kind of error, what it says, and where in the program it was."""
    found = traceback.extract_tb(error.__traceback__)
    lines = [f"line {frame.lineno}, in {frame.name}" for frame in found if frame.filename == SOURCE]
    said = str(error)
    what = f"{type(error).__name__}: {said}" if said else type(error).__name__
    return f"{what} ({lines[-1]})"[:_MOST_TEXT] if lines else what[:_MOST_TEXT]


def _reply(request: Request) -> Reply:
    # Whatever foreign code raises, also SystemExit and KeyboardInterrupt, is an answer of this kind.
    try:
        value = _called(request)
    except MemoryError:
        return Reply(Answer.MEMORY, error="MemoryError")
    except BaseException as error:  # noqa: BLE001
        return Reply(Answer.RAISED, error=_described(error))
    try:
        return Reply(Answer.DONE, msgspec.Raw(json.dumps(value, allow_nan=False).encode()))
    except BaseException as error:  # noqa: BLE001
        return Reply(Answer.BAD_RESULT, error=_described(error))


def _called(request: Request) -> Any:
    names: dict[str, Any] = {"__name__": "program", "__file__": SOURCE}
    exec(compile(request.source, SOURCE, "exec", dont_inherit=True), names)  # noqa: S102 (what all this is for)
    if not request.entry:
        return None
    if request.entry not in names:
        raise NameError(f"the program has no {request.entry}()")
    value = names[request.entry](**request.arguments)
    return asyncio.run(value) if inspect.iscoroutine(value) else value


def _described(error: BaseException) -> str:
    try:
        return describe(error)
    except BaseException:  # noqa: BLE001 (its own __str__ is foreign code too)
        return "an error that cannot be told"


def _flush(stream: Any) -> None:
    try:
        stream.flush()
    except BaseException:  # noqa: BLE001 (the program may have closed or replaced it)
        return
