"""What an OpenEnv server says of itself when a world is loaded: its name, its actions, and its tasks if it lists them.

This runs before there is an event loop, so it asks by plain requests.
"""

from __future__ import annotations

import urllib.error
import urllib.request
from collections.abc import Iterator
from typing import Any, cast
from urllib.parse import quote, urlsplit, urlunsplit

import msgspec

from whet.core import InputError, Json, Split
from whet.worlds.splits import Listed

_LONGEST = 1 << 26
_NOT_THERE = (404, 405, 501)
_PLACES = {"train": Split.TRAIN, "validation": Split.SELECTION, "test": Split.TEST}


class Catalogue(msgspec.Struct, frozen=True):
    """An environment as its server describes it."""

    name: str
    description: str
    version: str
    action: dict[str, Any]
    """The JSON schema of its actions."""

    @property
    def calls_tools(self) -> bool:
        return "tool_name" in self._properties

    @property
    def takes_answers(self) -> bool:
        """Whether it is a server of ours, which judges by an answer."""
        return "answer" in self._properties and self.calls_tools

    @property
    def text_fields(self) -> list[str]:
        return [
            name
            for name, schema in self._properties.items()
            if name != "metadata"
            and isinstance(schema, dict)
            and cast("dict[str, Any]", schema).get("type") == "string"
        ]

    @property
    def _properties(self) -> dict[str, Any]:
        properties: object = self.action.get("properties")
        return cast("dict[str, Any]", properties) if isinstance(properties, dict) else {}


class Server:
    """The requests of one server."""

    def __init__(self, url: str, headers: dict[str, str], seconds: float) -> None:
        parts = urlsplit(url)
        schemes = {"ws": "http", "wss": "https", "http": "http", "https": "https"}
        if parts.scheme not in schemes or not parts.netloc:
            raise InputError(f"world.url: {url!r} is no address", hint='Such as "http://127.0.0.1:8000"')
        self._base = urlunsplit((schemes[parts.scheme], parts.netloc, parts.path.rstrip("/"), "", ""))
        self._where = parts.netloc
        self._headers = {"Content-Type": "application/json", **headers}
        self._seconds = seconds
        self._opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))

    @property
    def socket_url(self) -> str:
        return f"ws{self._base.removeprefix('http')}/ws"

    def catalogue(self) -> Catalogue:
        about = _object(self._ask("/metadata"))
        schema = _object(_object(self._ask("/schema")).get("action"))
        if not schema:
            raise InputError(f"{self._where} does not say what its actions are", hint="Is it an OpenEnv server?")
        name, said, version = (str(about.get(field) or "") for field in ("name", "description", "version"))
        return Catalogue(name or self._where, said, version, schema)

    def tasks(self) -> Iterator[Listed]:
        """The tasks that the server lists; none, if it is of those that list none."""
        for environment in _list(self._ask("/list_environments"))[:1]:
            base = f"/{quote(str(environment), safe='')}"
            for split in _list(self._ask(f"{base}/splits")):
                name, kind = (str(_object(split).get(field)) for field in ("name", "type"))
                place = _place(name, kind)
                asked = _object(self._ask(f"{base}/tasks", {"split": name}))
                for index, task in enumerate(_list(asked.get("tasks"))):
                    yield _listed(task, place, {"split": name, "index": index})

    def _ask(self, path: str, body: object = None) -> object:
        """The JSON at a path; None where the server has nothing there."""
        sent = None if body is None else msgspec.json.encode(body)
        request = urllib.request.Request(self._base + path, data=sent, headers=self._headers)
        try:
            with self._opener.open(request, timeout=self._seconds) as reply:
                return msgspec.json.decode(reply.read(_LONGEST))
        except urllib.error.HTTPError as error:
            with error:
                if error.code in _NOT_THERE:
                    return None
                hint = "Set world.token_env" if error.code in (401, 403) else "See the server's log"
                raise InputError(f"{self._where}{path} answers {error.code}", hint=hint) from error
        except OSError as error:
            hint = "Start it, and check world.url"
            raise InputError(f"the OpenEnv server {self._where} cannot be reached: {error}", hint=hint) from error
        except (ValueError, RecursionError) as error:
            raise InputError(
                f"{self._where}{path} does not answer with JSON", hint="Is it an OpenEnv server?"
            ) from error


def _place(name: str, kind: str) -> Split:
    return Split(name) if name in set(Split) else _PLACES.get(kind, Split.SELECTION)


def _listed(task: object, place: Split, reset: dict[str, Json]) -> Listed:
    spec = cast("Json", task)
    named: object = spec.get("id") if isinstance(spec, dict) else None
    kind: object = spec.get("kind") if isinstance(spec, dict) else None
    return Listed(
        {"task": spec},
        str(named) if isinstance(named, str | int) else f"{reset['split']}-{reset['index']}",
        place,
        kind if isinstance(kind, str) else "",
        {"reset": reset},
    )


def _object(value: object) -> dict[str, Any]:
    return cast("dict[str, Any]", value) if isinstance(value, dict) else {}


def _list(value: object) -> list[Any]:
    return cast("list[Any]", value) if isinstance(value, list) else []
