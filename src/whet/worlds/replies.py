"""JSON in an agent's reply, read strictly: the whole reply is one value, at most in one code fence."""

from __future__ import annotations

import json
import re
from typing import Any, NoReturn, cast

import msgspec

_FENCE = re.compile(r"\A```(?:json)?[ \t]*\r?\n(?P<inside>.*?)\r?\n?[ \t]*```\Z", re.DOTALL | re.IGNORECASE)


def read_json(reply: str) -> Any:
    """The JSON value of a reply. Raises ValueError, in words for whoever wrote it, unless the reply is exactly one."""
    text = reply.strip()
    fenced = _FENCE.match(text)
    if fenced and "```" not in fenced["inside"]:
        text = fenced["inside"].strip()
    if not text:
        raise ValueError("the reply is empty")
    try:
        return _whole(json.loads(text, object_pairs_hook=_members, parse_constant=_no_constant))
    except json.JSONDecodeError as error:
        if error.msg == "Extra data":
            raise ValueError("the reply goes on after its JSON value; it must be that value alone") from error
        raise ValueError(f"the reply is not JSON ({error.msg} at character {error.pos})") from error
    except RecursionError as error:
        raise ValueError("the reply is nested too deeply") from error


def read_object(reply: str) -> dict[str, Any]:
    value = read_json(reply)
    if not isinstance(value, dict):
        raise ValueError("the reply must be a JSON object")
    return cast("dict[str, Any]", value)


def objects_in(text: str) -> list[dict[str, Any]]:
    """Every JSON object in a text, outermost only: for models that put words around what they were asked for."""
    decoder = json.JSONDecoder()
    found: list[dict[str, Any]] = []
    place = text.find("{")
    while place >= 0:
        try:
            value, end = decoder.raw_decode(text, place)
        except (ValueError, RecursionError):
            end = place + 1
        else:
            found.append(cast("dict[str, Any]", value))
        place = text.find("{", end)
    return found


def _whole(value: Any) -> Any:
    """Refuses escapes that stand for half a character: no file or database could keep them."""
    try:
        msgspec.json.encode(value)
    except UnicodeEncodeError as error:
        raise ValueError("the reply holds half of a character") from error
    return value


def _members(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    members = dict(pairs)
    if len(members) < len(pairs):
        names = [name for name, _ in pairs]
        raise ValueError(f"the name '{next(name for name in names if names.count(name) > 1)}' stands there twice")
    return members


def _no_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is not a JSON number")
