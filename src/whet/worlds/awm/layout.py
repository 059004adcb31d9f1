"""The eight files of the format, read into structs. What is wrong with one scenario does not stop the others.

Nothing is executed here: SQL and Python stay texts.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterator
from pathlib import Path
from typing import Any, TypeVar

import msgspec

from whet.core import Act, InputError, Solution, fingerprint

SCENARIOS = "gen_scenario.jsonl"
TASKS = "gen_tasks.jsonl"
SCHEMAS = "gen_db.jsonl"
SAMPLES = "gen_sample.jsonl"
SPECS = "gen_spec.jsonl"
PROGRAMS = "gen_envs.jsonl"
JUDGED = "gen_verifier.jsonl"
CODED = "gen_verifier.pure_code.jsonl"
SOLUTIONS = "whet_solutions.jsonl"
"""Not of the format: scripted ways through tasks, where whoever made the folder knows one."""
NEEDED = (TASKS, SCHEMAS, SAMPLES, PROGRAMS)

T = TypeVar("T", bound=msgspec.Struct)


class Verifier(msgspec.Struct, frozen=True):
    code: str
    judged: bool
    """It gathers facts, and a model judges them; else its code alone says whether the task is complete."""


class Operation(msgspec.Struct, frozen=True):
    """What the specification promises as a tool."""

    name: str
    method: str
    path: str


class Scenario(msgspec.Struct, frozen=True):
    name: str
    """As names are matched: see `normal_name`."""
    title: str
    description: str
    tasks: tuple[str, ...]
    ddl: tuple[str, ...]
    inserts: tuple[str, ...]
    program: str
    operations: tuple[Operation, ...] = ()
    coded: dict[int, Verifier] = {}
    judged: dict[int, Verifier] = {}
    solutions: dict[int, Solution] = {}
    damaged: dict[int, tuple[Solution, ...]] = {}
    """By task: solutions with something wrong in each, which must fail."""

    @property
    def fingerprint(self) -> str:
        """Of all that a session's course depends on; verifiers are named by their tasks."""
        return fingerprint("awm scenario", self.name, self.ddl, self.inserts, self.program)


class Layout(msgspec.Struct, frozen=True):
    folder: Path
    scenarios: dict[str, Scenario]
    problems: dict[str, tuple[str, ...]]
    """By the name of a scenario that cannot be had: why. "" for lines that name none."""


class _Named(msgspec.Struct):
    scenario: str


class _Scenario(msgspec.Struct):
    name: str
    description: str = ""


class _Tasks(msgspec.Struct):
    scenario: str
    tasks: list[str]


class _Table(msgspec.Struct):
    ddl: str
    name: str = ""
    indexes: list[str] = []


class _Tables(msgspec.Struct):
    tables: list[_Table]


class _Schema(msgspec.Struct):
    scenario: str
    db_schema: _Tables


class _Rows(msgspec.Struct):
    insert_statements: list[str] = []
    table_name: str = ""


class _Inserts(msgspec.Struct):
    tables: list[_Rows]


class _Sample(msgspec.Struct):
    scenario: str
    sample_data: _Inserts


class _Endpoint(msgspec.Struct):
    path: str
    method: str
    operation_id: str = ""


class _Group(msgspec.Struct):
    endpoints: list[_Endpoint] = []


class _Api(msgspec.Struct):
    api_groups: list[_Group] = []


class _Spec(msgspec.Struct):
    scenario: str
    api_spec: _Api


class _Program(msgspec.Struct):
    scenario: str
    full_code: str


class _Code(msgspec.Struct):
    code: str


class _Verification(msgspec.Struct):
    scenario: str
    task_idx: int
    verification: _Code


class SolutionLine(msgspec.Struct):
    """One line of `whet_solutions.jsonl`."""

    scenario: str
    task_idx: int
    acts: tuple[Act, ...] = ()
    answer: str = ""
    damaged: tuple[Solution, ...] = ()


def normal_name(name: str) -> str:
    """How names of scenarios are matched across files: lower case, every run of other characters one underscore."""
    return re.sub(r"[^a-z0-9]+", "_", name.lower())


def read_layout(folder: Path, only: Collection[str] = ()) -> Layout:
    """All scenarios of a folder, or `only` those of these names."""
    missing = [name for name in NEEDED if not (folder / name).is_file()]
    if missing or not any((folder / name).is_file() for name in (JUDGED, CODED)):
        lacks = ", ".join(missing) or f"{CODED} (or {JUDGED})"
        hint = "It must be a folder in the format of AgentWorldModel: see docs/worlds.md."
        raise InputError(f"{folder} lacks {lacks}", hint=hint)
    return _Reader(folder, frozenset(map(normal_name, only))).layout()


class _Reader:
    def __init__(self, folder: Path, only: frozenset[str]) -> None:
        self._folder = folder
        self._only = only
        self._problems: dict[str, list[str]] = {}

    def layout(self) -> Layout:
        tasks = self._by_scenario(TASKS, _Tasks)
        schemas = self._by_scenario(SCHEMAS, _Schema)
        samples = self._by_scenario(SAMPLES, _Sample)
        programs = self._by_scenario(PROGRAMS, _Program)
        specs = self._by_scenario(SPECS, _Spec)
        described = {normal_name(one.name): one for one in self._lines(SCENARIOS, _Scenario, lambda one: one.name)}
        coded, judged = self._verifiers(CODED, judged=False), self._verifiers(JUDGED, judged=True)
        solutions = self._solutions()
        found: dict[str, Scenario] = {}
        for name, listed in tasks.items():
            parts = {SCHEMAS: schemas.get(name), SAMPLES: samples.get(name), PROGRAMS: programs.get(name)}
            lacking = [file for file, part in parts.items() if part is None]
            schema, sample, program = schemas.get(name), samples.get(name), programs.get(name)
            if schema is None or sample is None or program is None:
                self._problem(name, f"it is not in {', '.join(lacking)}")
                continue
            spec, about = specs.get(name), described.get(name)
            found[name] = Scenario(
                name=name,
                title=listed.scenario,
                description=about.description if about else "",
                tasks=tuple(listed.tasks),
                ddl=tuple(_statements(schema)),
                inserts=tuple(line for rows in sample.sample_data.tables for line in rows.insert_statements),
                program=program.full_code,
                operations=tuple(_operations(spec)) if spec else (),
                coded=coded.get(name, {}),
                judged=judged.get(name, {}),
                solutions={line.task_idx: Solution(line.acts, line.answer) for line in solutions.get(name, [])},
                damaged={line.task_idx: line.damaged for line in solutions.get(name, [])},
            )
        for wanted in self._only - found.keys() - self._problems.keys():
            self._problem(wanted, f"it is not in {TASKS}")
        return Layout(self._folder, found, {name: tuple(said) for name, said in self._problems.items()})

    def _by_scenario(self, file: str, kind: type[T]) -> dict[str, T]:
        """The first line of each scenario: where the format repeats one, its own readers take the first."""
        found: dict[str, T] = {}
        for one in self._lines(file, kind, _scenario_of):
            found.setdefault(normal_name(_scenario_of(one)), one)
        return found

    def _verifiers(self, file: str, *, judged: bool) -> dict[str, dict[int, Verifier]]:
        found: dict[str, dict[int, Verifier]] = {}
        for one in self._lines(file, _Verification, _scenario_of):
            mine = found.setdefault(normal_name(one.scenario), {})
            mine.setdefault(one.task_idx, Verifier(one.verification.code, judged))
        return found

    def _solutions(self) -> dict[str, list[SolutionLine]]:
        found: dict[str, list[SolutionLine]] = {}
        for one in self._lines(SOLUTIONS, SolutionLine, _scenario_of):
            found.setdefault(normal_name(one.scenario), []).append(one)
        return found

    def _lines(self, file: str, kind: type[T], name_of: Callable[[T], str]) -> Iterator[T]:
        path = self._folder / file
        if not path.is_file():
            return
        decode = msgspec.json.Decoder(kind).decode
        with path.open("rb") as lines:
            for number, line in enumerate(lines, start=1):
                if not line.strip():
                    continue
                try:
                    one = decode(line)
                except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
                    self._problem(_name_in(line), f"{file}:{number}: {error}")
                    continue
                if not self._only or normal_name(name_of(one)) in self._only:
                    yield one

    def _problem(self, name: str, said: str) -> None:
        if not self._only or not name or name in self._only:
            self._problems.setdefault(name, []).append(said)


def _scenario_of(one: Any) -> str:
    return one.scenario


def _name_in(line: bytes) -> str:
    """The scenario of a line that is wrong elsewhere."""
    try:
        return normal_name(msgspec.json.decode(line, type=_Named).scenario)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return ""


def _statements(schema: _Schema) -> Iterator[str]:
    for table in schema.db_schema.tables:
        yield table.ddl
        yield from table.indexes


def _operations(spec: _Spec) -> Iterator[Operation]:
    for group in spec.api_spec.api_groups:
        for endpoint in group.endpoints:
            yield Operation(endpoint.operation_id, endpoint.method.upper(), endpoint.path)
