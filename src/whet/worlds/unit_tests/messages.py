"""What is said between whet, the tests and the answer."""

from __future__ import annotations

from typing import TypeAlias

import msgspec

from whet.core import Json


class Do(msgspec.Struct, frozen=True, tag="do"):
    """To the answer: `call` an object, `get` or `set` an attribute, or one of the operators."""

    number: int
    """Of the object; 0 is the module itself."""
    what: str
    arguments: Json
    named: Json = None


class Done(msgspec.Struct, frozen=True, tag="done"):
    """From the answer: a value, or an exception as its class and arguments; and the arguments as they are by now."""

    value: Json = None
    arguments: Json = None
    raised: Json = None
    raised_kind: str = ""


class Load(msgspec.Struct, frozen=True, tag="load"):
    """To the answer: execute this. To the tests: these are they."""

    source: tuple[str, ...]
    names: tuple[str, ...] = ()
    """To the tests: what the answer defines."""
    candidate: str = ""
    """To the tests: what `check(candidate)` is called with."""


class Try(msgspec.Struct, frozen=True, tag="try"):
    """To the tests: the test of this place."""

    place: int


class Listed(msgspec.Struct, frozen=True, tag="listed"):
    """From the tests: what there is to try."""

    names: tuple[str, ...]


class Tried(msgspec.Struct, frozen=True, tag="tried"):
    passed: bool
    why: str = ""
    fault: str = ""
    """Why it could not be tried, by no fault of the answer's."""


ToAnswer: TypeAlias = Load | Do
ToTests: TypeAlias = Load | Try | Done
FromTests: TypeAlias = Listed | Tried | Do
