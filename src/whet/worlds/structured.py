"""Answers that are JSON: they follow a schema, or equal the right value, or both."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec

from whet.core import ConfigError, Json, Verdict
from whet.worlds.replies import read_json
from whet.worlds.schema import problems_of, same_json, schema_problems
from whet.worlds.scorers import Question, right_answer, wrong


class JsonSchema(msgspec.Struct, frozen=True, tag_field="use", tag="json_schema", forbid_unknown_fields=True):
    """The reply is one JSON value, at most in one code fence, that follows the schema and equals the task's answer."""

    schema: dict[str, Any] | str = {}
    """The schema as a table, or the file that holds it."""
    compare: bool = True
    """Whether the value must equal the answer of the task, where it has one."""


class JsonScorer:
    wants_row = False

    def __init__(self, settings: JsonSchema, base_dir: Path) -> None:
        self._schema = _schema(settings.schema, base_dir)
        self._compare = settings.compare
        self.content: Json = ["json_schema 1", self._schema, settings.compare]

    def references(self, answer: Json) -> tuple[Json, ...]:
        """One value: a list is a JSON list here, not several acceptable answers."""
        return () if answer is None or not self._compare else (_parsed(answer),)

    def problem(self, references: tuple[Json, ...], choices: tuple[str, ...]) -> str:
        if not references:
            return "" if self._schema else "it has no answer, and there is no schema either"
        wrong_in = problems_of(references[0], self._schema)
        return f"the answer does not follow the schema: {wrong_in[0]}" if wrong_in else ""

    async def score(self, question: Question, answer: str) -> Verdict:
        try:
            value = read_json(answer)
        except ValueError as error:
            return Verdict(False, 0.0, f"not JSON: {error}")
        problems = problems_of(value, self._schema)
        if problems:
            return Verdict(False, 0.0, f"schema: {'; '.join(problems)}")
        if question.references and not same_json(value, question.references[0]):
            return wrong(_difference(value, question.references[0]))
        return right_answer()

    def known_good(self, question: Question) -> str | None:
        return msgspec.json.encode(question.references[0]).decode() if question.references else None


def _parsed(answer: Json) -> Json:
    """Tables hold JSON as text (a .csv can do no other), and text that is JSON is meant as such."""
    if not isinstance(answer, str):
        return answer
    try:
        return read_json(answer)
    except ValueError:
        return answer


def _difference(value: Json, right: Json) -> str:
    """Where two values part, without telling the right one."""
    if isinstance(value, dict) and isinstance(right, dict):
        names = [name for name in (*value, *right) if not _same_member(value, right, name)]
        return f"these members differ: {', '.join(dict.fromkeys(names))}"
    if isinstance(value, list) and isinstance(right, list) and len(value) != len(right):
        return f"the list has {len(value)} items"
    return "the value differs"


def _same_member(value: dict[str, Json], right: dict[str, Json], name: str) -> bool:
    return name in value and name in right and same_json(value[name], right[name])


def _schema(setting: dict[str, Any] | str, base_dir: Path) -> dict[str, Any]:
    where = "world.scorer.schema"
    if isinstance(setting, str):
        try:
            setting = msgspec.json.decode((base_dir / setting).read_bytes(), type=dict[str, Any])
        except OSError as error:
            raise ConfigError(f"{where}: {setting} cannot be read: {error.strerror}") from error
        except msgspec.DecodeError as error:
            raise ConfigError(f"{where}: {setting} is not a JSON object ({error})") from error
    problems = schema_problems(setting, where)
    if problems:
        raise ConfigError(problems[0])
    return setting
