"""A world as far as it is made, and how its parts are put into prompts. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import msgspec

from whet.core import Solution, fingerprint
from whet.making.answers import Api, Sample, Schema, Sketch
from whet.worlds.awm.layout import Operation, Scenario, normal_name
from whet.worlds.awm.operations import Tool

_MOST_DATA = 60_000
"""Characters of statements that a prompt holds; more than a model writes in one answer."""


class SoundTask(msgspec.Struct, frozen=True):
    text: str
    solution: Solution
    damaged: tuple[Solution, ...]
    verifier: str


class Parts(msgspec.Struct, frozen=True):
    """Grows by one part a stage."""

    sketch: Sketch
    schema: Schema = Schema(())
    sample: Sample = Sample(())
    api: Api = Api(())
    code: str = ""
    tasks: tuple[SoundTask, ...] = ()

    @property
    def content(self) -> str:
        return fingerprint("made parts", msgspec.to_builtins(self))

    @property
    def scenario(self) -> Scenario:
        """As the rest of whet plays it; its verifiers are tried one by one."""
        return Scenario(
            name=normal_name(self.sketch.name),
            title=self.sketch.name,
            description=self.sketch.description,
            tasks=(),
            ddl=self.schema.statements,
            inserts=self.sample.statements,
            program=self.code,
            operations=tuple(Operation(one.operation_id, one.method.upper(), one.path) for one in self.api.endpoints),
        )

    def told(self) -> dict[str, str]:
        """What every prompt says of the application."""
        return {"scenario": self.sketch.name, "description": self.sketch.description}

    def told_schema(self) -> str:
        return "\n".join(self.schema.statements)

    def told_sample(self) -> str:
        """All of the data, or of each table as much as there is room for."""
        room = _MOST_DATA // max(1, len(self.sample.tables))
        return "\n".join(line for rows in self.sample.tables for line in _shortened(rows.insert_statements, room))

    def told_api(self) -> str:
        return "\n".join(msgspec.json.encode(endpoint).decode() for endpoint in self.api.endpoints)


def listed(texts: Iterable[str]) -> str:
    return "\n".join(f"{number}. {text}" for number, text in enumerate(texts, start=1))


def told_tools(tools: Mapping[str, Tool]) -> str:
    return "\n".join(
        msgspec.json.encode(
            {"name": one.spec.name, "description": one.spec.description, "arguments": one.spec.parameters}
        ).decode()
        for one in tools.values()
    )


def _shortened(lines: Sequence[str], room: int) -> Iterable[str]:
    for place, line in enumerate(lines):
        room -= len(line)
        if room < 0:
            yield f"-- and {len(lines) - place} rows more"
            return
        yield line
