"""The one boundary between our code and an author's: who is given what, and what becomes of an exception.

A hook is a function of the author's. It says by its parameters' names what it wants (`task`, `state`, `answer`, …) and
may be sync or async. What it raises is a WorldFault that names the world, the task and the line.
"""

from __future__ import annotations

import inspect
import traceback
from collections.abc import Callable, Generator
from contextlib import contextmanager
from typing import Any

from whet.core import InputError, WhetError, WorldFault


class ToolRefusal(Exception):
    """Raised in a tool to say no: "customer not found". It is an answer, not a fault."""


class Hook:
    """An author's function with the names of what it asks for."""

    def __init__(self, function: Callable[..., Any], offered: tuple[str, ...], where: str) -> None:
        self.function = function
        self.where = where
        self.wants = tuple(name for name in _parameters(function, where) if name in offered)
        unknown = [name for name in required_parameters(function, where) if name not in offered]
        if unknown:
            names = ", ".join(offered)
            raise InputError(f"{where} asks for '{unknown[0]}'", hint=f"It can ask for {names}, each by its name")

    async def __call__(self, **offered: Any) -> Any:
        given = self.now(**offered)
        return await given if inspect.isawaitable(given) else given

    def now(self, **offered: Any) -> Any:
        """The same for what must be sync."""
        return self.function(**{name: offered[name] for name in self.wants})


@contextmanager
def faults(world: str, doing: str, task: str = "") -> Generator[None]:
    """Whatever the author's code raises in here is the world's fault, named. Errors of ours pass."""
    try:
        yield
    except WhetError:
        raise
    except Exception as error:
        about = f"world {world}, task {task}" if task else f"world {world}"
        raise WorldFault(f"{about}: {doing} raised {describe(error)}") from error


def describe(error: BaseException) -> str:
    """The exception and the line that raised it."""
    place = traceback.extract_tb(error.__traceback__)
    at = f" ({place[-1].filename}:{place[-1].lineno})" if place else ""
    text = f": {error}" if str(error) else ""
    return f"{type(error).__name__}{text}{at}"


def required_parameters(function: Callable[..., Any], where: str) -> list[str]:
    return [
        name
        for name, parameter in _parameters(function, where).items()
        if parameter.default is parameter.empty
        and parameter.kind not in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD)
    ]


def _parameters(function: Callable[..., Any], where: str) -> dict[str, inspect.Parameter]:
    try:
        return dict(inspect.signature(function).parameters)
    except (TypeError, ValueError) as error:
        raise InputError(f"{where} is not a function whose parameters can be read") from error
