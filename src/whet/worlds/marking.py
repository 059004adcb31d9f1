"""The mark that makes an author's class or function a world. It changes nothing else: the class stays what it is."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import msgspec

from whet.core import Json

_MARK = "__whet_world__"

Author = TypeVar("Author", bound=Callable[..., Any])


class Marked(msgspec.Struct, frozen=True):
    name: str
    defaults: dict[str, Any]


def world(name: str, **defaults: Json) -> Callable[[Author], Author]:
    """Mark a class or function as a world. `defaults` are settings that whet.toml can still change.

    A class becomes a world by its methods (see `authoring`). A function that yields dicts becomes a world of questions
    and answers, with the settings of `jsonl`. A function that returns an object, returns the world. Parameters are the
    settings: `def sums(count: int = 100)` is `count = 100` in whet.toml.
    """

    def mark(author: Author) -> Author:
        setattr(author, _MARK, Marked(name, dict(defaults)))
        return author

    return mark


def mark_of(author: object) -> Marked | None:
    mark: object = getattr(author, _MARK, None)
    return mark if isinstance(mark, Marked) else None
