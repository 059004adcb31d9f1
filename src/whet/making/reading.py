"""What can be seen to be wrong with an answer by reading it. Pure: each gives problems in words for the model."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence

from whet.making.answers import Api, Endpoint, Sample, Schema, Sketch, TaskList
from whet.making.nearness import nearest_of, overlap, words
from whet.worlds.awm.operations import METHODS

PLACES = ("path", "query", "body")
_SAME_TASK = 0.9
_FEWEST_TABLES = 2
_NAME = re.compile(r"[a-z][a-z0-9_]{2,63}")
_IN_PATH = re.compile(r"\{(\w+)\}")


def sketch_problems(sketch: Sketch, known: Sequence[Sketch]) -> Iterator[str]:
    if not _NAME.fullmatch(sketch.name):
        yield f"`name` must be snake_case, of 3 to 64 letters, digits and underscores, not {sketch.name!r}"
    if len(words(sketch.description)) < 8:
        yield "`description` says too little: three to six sentences are asked for"
    if len(set(sketch.tables)) < _FEWEST_TABLES:
        yield f"`tables` must name at least {_FEWEST_TABLES} tables"
    near = nearest_of(sketch, known)
    if near is not None:
        yield f"it is not new: {near}, which is there already. Think of another workplace, with other things in it"


def task_problems(answer: TaskList, count: int) -> Iterator[str]:
    if len(answer.tasks) < count:
        yield f"{count} tasks are asked for, and these are {len(answer.tasks)}"
    said = [words(task) for task in answer.tasks]
    for place, task in enumerate(answer.tasks):
        if len(task.split()) < 4:
            yield f"task {place + 1} says too little: {task!r}"
        twin = next((n for n in range(place) if _same_task(answer.tasks[n], task, said[n], said[place])), None)
        if twin is not None:
            yield f"task {place + 1} is task {twin + 1} in nearly the same words"


def _same_task(one: str, other: str, said: frozenset[str], also: frozenset[str]) -> bool:
    # Tasks of one kind about other numbers are other tasks.
    numbers = re.findall(r"\d+", one), re.findall(r"\d+", other)
    return numbers[0] == numbers[1] and overlap(said, also) >= _SAME_TASK


def schema_problems(schema: Schema, planned: Sequence[str]) -> Iterator[str]:
    names = [table.name for table in schema.tables]
    yield from (f"the table {name} stands there {count} times" for name, count in _doubles(names))
    for name in planned:
        if name not in names:
            yield f"the table {name} is planned, and missing"
    for table in schema.tables:
        if not re.match(r"\s*CREATE\s+TABLE\b", table.ddl, re.IGNORECASE):
            yield f"the `ddl` of {table.name} must be one CREATE TABLE statement"
        if any(not re.match(r"\s*CREATE\s+(UNIQUE\s+)?INDEX\b", index, re.IGNORECASE) for index in table.indexes):
            yield f"the `indexes` of {table.name} must be CREATE INDEX statements"


def sample_problems(sample: Sample, tables: Sequence[str]) -> Iterator[str]:
    for rows in sample.tables:
        if rows.table_name not in tables:
            yield f"there is no table {rows.table_name}"
        other = next((line for line in rows.insert_statements if not re.match(r"\s*INSERT\s", line, re.IGNORECASE)), "")
        if other:
            yield f"rows of {rows.table_name} must be INSERT statements, not {other[:80]!r}"
    if not sample.statements:
        yield "there are no rows"


def api_problems(api: Api) -> Iterator[str]:
    ids = [one.operation_id for one in api.endpoints]
    places = [f"{one.method.upper()} {one.path}" for one in api.endpoints]
    yield from (f"the operation_id {name} stands there {count} times" for name, count in _doubles(ids))
    yield from (f"{count} operations are on {place}" for place, count in _doubles(places))
    if not api.endpoints:
        yield "there are no operations"
    for endpoint in api.endpoints:
        yield from (f"{endpoint.operation_id}: {problem}" for problem in _endpoint_problems(endpoint))


def _endpoint_problems(endpoint: Endpoint) -> Iterator[str]:
    if not _NAME.fullmatch(endpoint.operation_id):
        yield "the operation_id must be snake_case, of 3 to 64 letters, digits and underscores"
    if endpoint.method.lower() not in METHODS:
        yield f"the method must be one of {', '.join(METHODS).upper()}, not {endpoint.method}"
    if not endpoint.path.startswith("/"):
        yield f"the path must begin with /, not {endpoint.path!r}"
    in_path = set(_IN_PATH.findall(endpoint.path))
    for name, parameter in endpoint.request_params.items():
        if parameter.param_type not in PLACES:
            yield f"the param_type of {name} must be one of {', '.join(PLACES)}, not {parameter.param_type!r}"
        if (parameter.param_type == "path") != (name in in_path):
            yield f"{name} must stand in the path in braces if its param_type is path, and only then"
        if parameter.required and name not in endpoint.example:
            yield f"the example lacks {name}, which is required"
    for name in sorted(in_path - endpoint.request_params.keys()):
        yield f"{{{name}}} stands in the path, and is no parameter"
    for name in sorted(endpoint.example.keys() - endpoint.request_params.keys()):
        yield f"the example has {name}, which is no parameter"


def _doubles(names: Iterable[str]) -> Iterator[tuple[str, int]]:
    return ((name, count) for name, count in Counter(names).items() if count > 1)
