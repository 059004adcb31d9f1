"""The outermost edge: every error becomes one line on stderr and an exit code.

0  it ran, and the answer is yes
1  it ran, and the answer is no, or it was stopped before its end
2  it could not run
"""

from __future__ import annotations

import os
import sys
import traceback
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from typing import cast

import click

NO = 1
COULD_NOT_RUN = 2

DEBUG = "WHET_DEBUG"


@contextmanager
def boundary(environ: Mapping[str, str]) -> Generator[None]:
    """Ends the process on every error. With WHET_DEBUG=1 the whole traceback is shown."""
    try:
        yield
    except click.exceptions.NoArgsIsHelpError as error:
        click.echo(error.format_message(), err=True)
        sys.exit(COULD_NOT_RUN)
    except click.ClickException as error:
        _end(_usage(error), COULD_NOT_RUN)
    except (click.Abort, KeyboardInterrupt):
        _end("interrupted", NO)
    except BrokenPipeError:
        # Whoever read our output has left, as `head` does; the interpreter must not try to flush it at its end.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(NO)
    except Exception as error:  # noqa: BLE001 (the one place where everything that is left over is told)
        if environ.get(DEBUG):
            traceback.print_exception(error)
        _end(*_told(error))


def _end(text: str, code: int) -> None:
    click.echo(f"whet: {text}", err=True)
    sys.exit(code)


def _usage(error: click.ClickException) -> str:
    message = " ".join(error.format_message().split())
    message = message[:1].lower() + message[1:]
    context = error.ctx if isinstance(error, click.UsageError) else None
    return f"{message} See `{context.command_path} --help`." if context else message


def _told(error: BaseException) -> tuple[str, int]:
    """The line and the exit code for an error."""
    # Imported here so that commands which end well do not wait for it.
    from whet.core import BudgetExhausted, RunStopped, WhetError, cause_of

    if isinstance(error, BaseExceptionGroup):
        error = cause_of(cast("BaseExceptionGroup[BaseException]", error))
    if isinstance(error, BudgetExhausted | RunStopped):
        return _ended(error), NO
    if isinstance(error, WhetError):
        return _ended(error), COULD_NOT_RUN
    if isinstance(error, OSError) and error.filename is not None:
        return f"{error.filename}: {error.strerror}", COULD_NOT_RUN
    return _unexpected(error), COULD_NOT_RUN


def _ended(error: BaseException) -> str:
    text = str(error)
    return text if text.endswith((".", "?", "!")) else f"{text}."


def _unexpected(error: BaseException) -> str:
    frames = traceback.extract_tb(error.__traceback__)
    place = f" at {frames[-1].filename}:{frames[-1].lineno}" if frames else ""
    said = f": {error}" if str(error) else ""
    return (
        f"unexpected {type(error).__name__}{place}{said}. If that is not a file of yours, please report it; "
        f"{DEBUG}=1 shows the whole traceback."
    )
