"""A scenario written out as a program: a FastAPI application over SQLAlchemy that serves its tools, one path each.

The tools' own source is in it, behind thin handlers whose parameters follow the tools' schemas.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from whet.core import InputError, ToolSpec
from whet.worlds.database import Scenario, State
from whet.worlds.database.scenario import functions_of, tools_of_scenario
from whet.worlds.database.world import LARGEST_NUMBER, LONGEST_TEXT
from whet.worlds.pack.sources import collect

_HEAD = '''\
"""{about}

A self-contained program: it serves the tools of the scenario over the SQLite database that DATABASE_PATH names.
"""

import os
{imports}
from typing import Literal, Optional

from fastapi import FastAPI, HTTPException
from pydantic import BaseModel, ConfigDict, Field
from sqlalchemy import create_engine
from sqlalchemy.pool import NullPool

DATABASE_PATH = os.environ.get("DATABASE_PATH", "sqlite:///{name}.db")
DATABASE_URL = DATABASE_PATH if "://" in DATABASE_PATH else "sqlite:///" + DATABASE_PATH
engine = create_engine(DATABASE_URL, connect_args={{"check_same_thread": False}}, poolclass=NullPool)
app = FastAPI(title={title!r}, description={about!r}, version="1.0.0")


{code}


def run(function, arguments):
    """A call that is refused is rolled back."""
    with engine.begin() as connection:
        try:
            return function(State(connection.connection.driver_connection), **arguments)
        except ToolRefusal as refusal:
            raise HTTPException(status_code=409, detail=str(refusal)) from refusal
'''

_TAIL = """
if __name__ == "__main__":
    import uvicorn

    uvicorn.run(app, host="127.0.0.1", port=int(os.environ.get("PORT", "8001")))
"""

_TYPES = {"integer": "int", "string": "str", "boolean": "bool", "number": "float", "null": "None"}
_BOUNDS = {
    "minimum": "ge",
    "maximum": "le",
    "exclusiveMinimum": "gt",
    "exclusiveMaximum": "lt",
    "minLength": "min_length",
    "maxLength": "max_length",
    "minItems": "min_length",
    "maxItems": "max_length",
    "pattern": "pattern",
    "description": "description",
}


_LIMITS: dict[str, dict[str, int]] = {
    "string": {"maxLength": LONGEST_TEXT},
    "integer": {"minimum": -LARGEST_NUMBER, "maximum": LARGEST_NUMBER},
}
"""What SQLite is spared in here, it is spared in the program too."""


def program(scenario: Scenario) -> str:
    collected = collect([State, *functions_of(scenario)])
    head = _HEAD.format(
        about=scenario.about,
        name=scenario.name,
        title=scenario.name.capitalize(),
        imports="\n".join(sorted(collected.imports)),
        code=collected.text(),
    )
    handlers = [_handler(tool.spec) for tool in tools_of_scenario(scenario).values()]
    return "\n\n".join([head, *handlers, _TAIL.lstrip()])


def endpoints(scenario: Scenario) -> list[dict[str, Any]]:
    """The same tools as a specification lists them."""
    return [_endpoint(tool.spec) for tool in tools_of_scenario(scenario).values()]


def _handler(spec: ToolSpec) -> str:
    fields = list(_fields(spec.parameters))
    summary = spec.description.partition("\n")[0]
    told = f"summary={summary!r}, description={spec.description!r}"
    route = f'@app.post("/{spec.name}", operation_id="{spec.name}", {told})'
    if not fields:
        return f"{route}\ndef call_{spec.name}():\n    return run({spec.name}, {{}})\n"
    model = f"{spec.name.title().replace('_', '')}Arguments"
    body = "\n".join(f"    {field}" for field in fields)
    return (
        f'class {model}(BaseModel):\n    model_config = ConfigDict(extra="forbid", strict=True)\n\n{body}\n\n\n'
        f"{route}\ndef call_{spec.name}(arguments: {model}):\n    return run({spec.name}, arguments.model_dump())\n"
    )


def _fields(parameters: dict[str, Any]) -> Iterator[str]:
    for name, schema in parameters["properties"].items():
        default = [] if name in parameters["required"] else [f"default={schema.get('default')!r}"]
        limits = {**_LIMITS.get(str(_merged(schema).get("type")), {}), **_merged(schema)}
        bounds = [f"{_BOUNDS[key]}={value!r}" for key, value in limits.items() if key in _BOUNDS]
        yield f"{name}: {_type(schema)} = Field({', '.join([*default, *bounds])})"


def _merged(schema: dict[str, Any]) -> dict[str, Any]:
    """The bounds of a value that may also be null stand in one of its forms."""
    inner: dict[str, Any] = {}
    for form in schema.get("anyOf", ()):
        inner |= form
    return {**inner, **schema}


def _type(schema: dict[str, Any]) -> str:
    if "anyOf" in schema:
        forms = [_type(form) for form in schema["anyOf"] if form.get("type") != "null"]
        if len(forms) == 1:
            return f"Optional[{forms[0]}]"
    if "enum" in schema:
        values = [value for value in schema["enum"] if value is not None]
        literal = f"Literal[{', '.join(map(repr, values))}]"
        return f"Optional[{literal}]" if len(values) < len(schema["enum"]) else literal
    if schema.get("type") == "array":
        return f"list[{_type(schema['items'])}]"
    if schema.get("type") in _TYPES:
        return _TYPES[schema["type"]]
    raise InputError(f"a parameter's schema has no form in an exported program: {schema}", hint="Use a simpler type")


def _endpoint(spec: ToolSpec) -> dict[str, Any]:
    required = spec.parameters["required"]
    return {
        "path": f"/{spec.name}",
        "method": "POST",
        "summary": spec.description.partition("\n")[0],
        "description": spec.description,
        "operation_id": spec.name,
        "tags": [],
        "request_params": {
            name: {
                "type": _type(schema),
                "param_type": "body",
                "required": name in required,
                "description": schema.get("description", ""),
            }
            for name, schema in spec.parameters["properties"].items()
        },
        "response": {},
    }
