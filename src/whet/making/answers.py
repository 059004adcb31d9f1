"""What the optimizer answers at each stage: read leniently around the JSON, strictly inside it."""

from __future__ import annotations

from typing import Any, TypeVar

import msgspec

from whet.core import Json
from whet.worlds.replies import objects_in, read_object

A = TypeVar("A", bound=msgspec.Struct)
Form = dict[str, Any]


class Sketch(msgspec.Struct, frozen=True):
    """A scenario before there is anything of it."""

    name: str
    description: str
    tables: tuple[str, ...]
    """What it is about: the tables that its database will at least have."""


class TaskList(msgspec.Struct, frozen=True):
    tasks: tuple[str, ...]


class Table(msgspec.Struct, frozen=True):
    name: str
    ddl: str
    indexes: tuple[str, ...] = ()


class Schema(msgspec.Struct, frozen=True):
    tables: tuple[Table, ...]

    @property
    def statements(self) -> tuple[str, ...]:
        return tuple(line for table in self.tables for line in (table.ddl, *table.indexes))


class Rows(msgspec.Struct, frozen=True):
    table_name: str
    insert_statements: tuple[str, ...]


class Sample(msgspec.Struct, frozen=True):
    tables: tuple[Rows, ...]

    @property
    def statements(self) -> tuple[str, ...]:
        return tuple(line for rows in self.tables for line in rows.insert_statements)


class Parameter(msgspec.Struct, frozen=True):
    type: str
    param_type: str
    required: bool = True
    description: str = ""


class Endpoint(msgspec.Struct, frozen=True):
    operation_id: str
    method: str
    path: str
    summary: str
    description: str = ""
    request_params: dict[str, Parameter] = {}
    example: dict[str, Json] = {}
    """Arguments of a call that works on the sample data."""


class Api(msgspec.Struct, frozen=True):
    endpoints: tuple[Endpoint, ...]


class Code(msgspec.Struct, frozen=True):
    code: str


def read_answer(reply: str, kind: type[A]) -> A:
    """The JSON object of a reply as a `kind`. Raises ValueError that tells the model what is wrong."""
    problem = ""
    try:
        candidates = [read_object(reply)]
    except ValueError as error:
        candidates = sorted(objects_in(reply), key=lambda one: -len(one))
        # Of a broken object only scraps are found, and what is wrong with these helps nobody.
        if not candidates or reply.lstrip().startswith(("{", "```")):
            problem = str(error)
    for candidate in candidates:
        try:
            return msgspec.convert(candidate, kind)
        except msgspec.ValidationError as error:
            problem = problem or str(error)
    raise ValueError(problem)


def _object(properties: Form) -> Form:
    return {"type": "object", "properties": properties, "required": list(properties), "additionalProperties": False}


def _list(items: Form) -> Form:
    return {"type": "array", "items": items}


_TEXT: Form = {"type": "string"}
_TEXTS = _list(_TEXT)
FORMS: dict[type[msgspec.Struct], Form] = {
    Sketch: _object({"name": _TEXT, "description": _TEXT, "tables": _TEXTS}),
    TaskList: _object({"tasks": _TEXTS}),
    Schema: _object({"tables": _list(_object({"name": _TEXT, "ddl": _TEXT, "indexes": _TEXTS}))}),
    Sample: _object({"tables": _list(_object({"table_name": _TEXT, "insert_statements": _TEXTS}))}),
    Code: _object({"code": _TEXT}),
}
"""For providers that can hold a model to a form. Answers whose objects have free names have none here."""
