"""Questions and answers from files, or from a function that yields them: one row is one task.

The agent is shown what the brief is made of and nothing else of the row; the answer goes to the judge only.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from hashlib import blake2b
from pathlib import Path
from typing import cast

import msgspec

from whet.core import Brief, ConfigError, ImagePart, Json, Model, Split, Task, Verdict, World
from whet.worlds.authoring import AuthoredWorld
from whet.worlds.marking import world
from whet.worlds.reading import BadRow, Found, Row, read_rows
from whet.worlds.scorers import HoldingScorer, Question, Scorer
from whet.worlds.scoring import AnyScorer, build_scorer
from whet.worlds.splits import Listed, SplitSettings, as_split, raise_problems
from whet.worlds.text import as_text

_QUESTION_NAMES = ("question", "input", "prompt", "problem", "query")
_ANSWER_NAMES = ("answer", "answers", "expected", "target", "output")
_MEDIA_TYPES = {
    ".png": "image/png",
    ".jpg": "image/jpeg",
    ".jpeg": "image/jpeg",
    ".gif": "image/gif",
    ".webp": "image/webp",
}
_PLACE = re.compile(r"\{\{|\}\}|\{([A-Za-z_][A-Za-z0-9_]*)\}")
_LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"


class QuestionSettings(SplitSettings, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """How rows become tasks, and how answers are scored."""

    question: str = ""
    """The field with the question. Left out: question, input, prompt, problem or query, as the first row has it."""
    answer: str = ""
    """The field with the right answer or a list of them. Left out: answer, answers, expected, target or output."""
    id: str = "id"
    """The field with the task's id. A row without one is named by its content."""
    kind: str = "kind"
    """The field with the task's type, for scores by type."""
    split: str = "split"
    """The field that says train, selection, test or confirm. A row without one is drawn by `split_ratio`."""
    choices: str = "choices"
    """The field with the list of choices, for multiple choice."""
    images: str = "images"
    """The field with one image file or a list of them, relative to the task file."""
    template: str = ""
    """The brief, with `{field}` where a field goes; `{{` and `}}` are braces. Left out: the question alone."""
    instructions: str = ""
    """Put before every question."""
    scorer: str | AnyScorer = ""
    """The scorer's name, or a table: `{use = "numeric", relative = 0.01}`.

    Left out: multiple_choice for rows with choices, else normalised.
    """
    show_reference: bool = True
    """Whether learners are shown the right answer of a finished task. The agent never is."""


class JsonlSettings(QuestionSettings, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Task files: one for all splits, or one for each."""

    path: str = ""
    """One .jsonl, .json or .csv file with the tasks of all splits."""
    train: str = ""
    """The file of the tasks that are learned from."""
    selection: str = ""
    """The file of the tasks that the gate compares on."""
    test: str = ""
    """The file of the tasks kept for the final report."""
    confirm: str = ""
    """The file of the tasks that confirm a certificate."""

    def __post_init__(self) -> None:
        if bool(self.path) == any((self.train, self.selection, self.test, self.confirm)):
            raise ValueError(
                'give either one file (path = "tasks.jsonl") or a file for each split (train, selection, …)'
            )


class QuestionAuthor:
    """Rows as an author of tasks."""

    def __init__(self, rows: Iterable[Found], settings: QuestionSettings, scorer: Callable[[bool], Scorer]) -> None:
        self._settings = settings
        self._images: dict[str, Path] = {}
        self._rows = iter(rows)
        self._first = next(self._rows, None)
        fields: dict[str, Json] = self._first.fields if isinstance(self._first, Row) else {}
        self._scorer = scorer(settings.choices in fields)
        self._question_field = _field(settings.question, _QUESTION_NAMES, fields) or "question"
        self._answer_field = _field(settings.answer, _ANSWER_NAMES, fields)
        self._shown = _places(settings.template) if settings.template else [self._question_field]
        if not self._shown:
            raise ConfigError("world.template: it has no {field}, so every task would read the same")
        if self._answer_field and self._answer_field in self._shown:
            raise ConfigError(f"world.template: it shows the answer field '{self._answer_field}' to the agent")

    @property
    def content(self) -> Json:
        settings = self._settings
        return ["questions 1", settings.instructions, settings.template, self._scorer.content]

    def tasks(self) -> Iterator[Listed]:
        problems: list[str] = []
        for row in self._all_rows():
            listed = row.problem if isinstance(row, BadRow) else self._listed(row)
            if isinstance(listed, str):
                problems.append(listed)
            elif not problems:
                yield listed
        raise_problems(problems, "the task files")

    def brief(self, task: Task) -> Brief:
        text = self._text(task.inputs)
        return Brief(text, tuple(self._image(task, name) for name in _strings(task.inputs.get("images"))))

    async def judge(self, task: Task, key: dict[str, Json], answer: str) -> Verdict:
        question = self._as_question(task, key, self._text(task.inputs))
        if not answer.strip():
            verdict = Verdict(False, 0.0, "no answer: the reply is empty")
        else:
            verdict = await self._scorer.score(question, answer)
        if not self._settings.show_reference or not question.references:
            return verdict
        reference = " | ".join(as_text(right) for right in question.references)
        return msgspec.structs.replace(verdict, reference=verdict.reference or reference)

    def known_good(self, task: Task, key: dict[str, Json]) -> str | None:
        return self._scorer.known_good(self._as_question(task, key, ""))

    async def aclose(self) -> None:
        if isinstance(self._scorer, HoldingScorer):
            await self._scorer.aclose()

    def _all_rows(self) -> Iterator[Found]:
        if self._first is not None:
            yield self._first
        yield from self._rows

    def _listed(self, row: Row) -> Listed | str:
        """The row as a task, or where it stands and what is wrong with it."""
        try:
            inputs = self._inputs(row)
            split = row.split or as_split(row.fields.get(self._settings.split))
            name, kind = _name(row.fields.get(self._settings.id)), row.fields.get(self._settings.kind)
            key = self._key(row, inputs)
        except ValueError as error:
            return f"{row.where}: {error}"
        problem = self._scorer.problem(self._scorer.references(key["answer"]), _choices(inputs))
        if problem:
            return f"{row.where}: {problem}"
        return Listed(inputs, name, split, "" if kind is None else as_text(kind), key, row.where)

    def _key(self, row: Row, inputs: dict[str, Json]) -> dict[str, Json]:
        key: dict[str, Json] = {"answer": row.fields.get(self._answer_field)}
        if self._scorer.wants_row:
            key["row"] = {name: value for name, value in row.fields.items() if name not in inputs}
        if "images" in inputs:
            key["images"] = [self._digest(name) for name in _strings(inputs["images"])]
        return key

    def _inputs(self, row: Row) -> dict[str, Json]:
        missing = [name for name in self._shown if name not in row.fields]
        if missing:
            what = f"the template's '{{{missing[0]}}}'" if self._settings.template else f"the field '{missing[0]}'"
            raise ValueError(f"{what} is missing (the row has {', '.join(row.fields) or 'nothing'})")
        inputs = {name: row.fields[name] for name in self._shown}
        if not any(as_text(value).strip() for value in inputs.values()):
            raise ValueError("the question is empty")
        choices = row.fields.get(self._settings.choices)
        if choices is not None:
            if not isinstance(choices, list) or not 2 <= len(choices) <= len(_LETTERS):
                raise ValueError(f"choices must be a list of 2 to {len(_LETTERS)}")
            inputs["choices"] = [as_text(choice) for choice in choices]
        images = row.fields.get(self._settings.images)
        if images is not None:
            inputs["images"] = [self._found_image(name, row.folder) for name in _strings(images)]
        return inputs

    def _text(self, inputs: dict[str, Json]) -> str:
        settings = self._settings
        choices = "\n".join(
            f"{letter}) {text}" for letter, text in zip(_LETTERS, _strings(inputs.get("choices")), strict=False)
        )
        if settings.template:
            body = _filled(settings.template, {**inputs, settings.choices: choices} if choices else inputs)
        else:
            asked = f"{choices}\n\nAnswer with the letter of one choice." if choices else ""
            body = "\n\n".join(part for part in (as_text(inputs[self._question_field]), asked) if part)
        return f"{settings.instructions.rstrip()}\n\n{body}" if settings.instructions.strip() else body

    def _as_question(self, task: Task, key: dict[str, Json], text: str) -> Question:
        row = key.get("row")
        return Question(
            task,
            text,
            self._scorer.references(key.get("answer")),
            _choices(task.inputs),
            row if isinstance(row, dict) else {},
        )

    def _found_image(self, name: str, folder: Path) -> str:
        path = (folder / name).resolve()
        if path.suffix.lower() not in _MEDIA_TYPES:
            raise ValueError(f"the image {name} is not one of {', '.join(_MEDIA_TYPES)}")
        if not path.is_relative_to(folder.resolve()) or not path.is_file():
            raise ValueError(f"there is no image {name} in {folder}")
        self._images[name] = path
        return name

    def _digest(self, name: str) -> str:
        return blake2b(self._images[name].read_bytes(), digest_size=16).hexdigest()

    def _image(self, task: Task, name: str) -> ImagePart:
        path = self._images[name]
        return ImagePart(_MEDIA_TYPES[path.suffix.lower()], path.read_bytes())


@world("jsonl")
class JsonlWorld(QuestionAuthor):
    """Questions and answers from .jsonl, .json or .csv files."""

    def __init__(self, settings: JsonlSettings, base_dir: Path, judge: Model | None) -> None:
        super().__init__(_file_rows(settings, base_dir), settings, _scorer_for(settings, base_dir, judge))


def questions(
    name: str, rows: Iterable[object], settings: QuestionSettings, *, base_dir: Path, judge: Model | None
) -> World:
    """A world of the rows that a function yields."""
    found = _yielded_rows(rows, name, base_dir)
    author = QuestionAuthor(found, settings, _scorer_for(settings, base_dir, judge))
    return AuthoredWorld(name, author, splits=settings)


def _scorer_for(settings: QuestionSettings, base_dir: Path, judge: Model | None) -> Callable[[bool], Scorer]:
    return lambda has_choices: build_scorer(settings.scorer, has_choices=has_choices, base_dir=base_dir, judge=judge)


def _file_rows(settings: JsonlSettings, base_dir: Path) -> Iterator[Found]:
    if settings.path:
        yield from read_rows(base_dir / settings.path, settings.path)
        return
    files = (settings.train, settings.selection, settings.test, settings.confirm)
    for split, shown in zip(Split, files, strict=True):
        if shown:
            yield from read_rows(base_dir / shown, shown, split)


def _yielded_rows(rows: Iterable[object], name: str, base_dir: Path) -> Iterator[Found]:
    for number, row in enumerate(rows, start=1):
        where = f"world {name}, row number {number}"
        if isinstance(row, dict):
            yield Row(cast("dict[str, Json]", row), where, base_dir)
        else:
            yield BadRow(f"{where} is {type(row).__name__}, not a dict")


def _field(named: str, usual: tuple[str, ...], fields: dict[str, Json]) -> str:
    """The field as set, else the first usual one that the first row has."""
    return named or next((name for name in usual if name in fields), "")


def _places(template: str) -> list[str]:
    return list(dict.fromkeys(match[1] for match in _PLACE.finditer(template) if match[1]))


def _filled(template: str, fields: dict[str, Json]) -> str:
    def fill(match: re.Match[str]) -> str:
        return match[0][0] if match[1] is None else as_text(fields[match[1]])

    return _PLACE.sub(fill, template)


def _name(value: Json) -> str:
    if isinstance(value, bool) or not isinstance(value, str | int | None):
        raise ValueError(f"the id must be text or a whole number, not {as_text(value)}")
    return "" if value is None else str(value)


def _choices(inputs: dict[str, Json]) -> tuple[str, ...]:
    return tuple(_strings(inputs.get("choices")))


def _strings(value: Json) -> list[str]:
    if value is None:
        return []
    return [as_text(item) for item in value] if isinstance(value, list) else [as_text(value)]
