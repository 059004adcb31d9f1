"""A model as the judge: a rubric in, a score out. What it says is read leniently around its JSON and strictly in it."""

from __future__ import annotations

import math
from importlib.resources import files
from pathlib import Path
from typing import Any

import msgspec

from whet.core import (
    ConfigError,
    Json,
    Message,
    Model,
    ModelRequest,
    Purpose,
    Sampling,
    Verdict,
    WorldFault,
    assistant,
    content_key,
    fingerprint,
    user,
)
from whet.worlds.replies import objects_in
from whet.worlds.scorers import Question
from whet.worlds.text import as_text

_SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {"reason": {"type": "string"}, "score": {"type": "number", "minimum": 0, "maximum": 1}},
    "required": ["reason", "score"],
    "additionalProperties": False,
}


class LlmJudge(msgspec.Struct, frozen=True, tag_field="use", tag="llm_judge", forbid_unknown_fields=True):
    """A model scores the answer by a rubric."""

    rubric: str = ""
    """What makes an answer good, in your words."""
    rubric_file: str = ""
    """The same from a file."""
    pass_mark: float = 0.5
    """Passed at this score or more."""
    max_tokens: int = 1024
    """How long the judge's reply may be."""

    def __post_init__(self) -> None:
        if bool(self.rubric.strip()) == bool(self.rubric_file):
            raise ValueError("give either rubric or rubric_file")
        if not 0 < self.pass_mark <= 1:
            raise ValueError("pass_mark is above 0 and at most 1")


class Judgement(msgspec.Struct, frozen=True):
    score: float
    reason: str


class JudgeScorer:
    wants_row = False

    def __init__(self, settings: LlmJudge, base_dir: Path, model: Model | None) -> None:
        if model is None:
            hint = 'Add one to whet.toml: [judge] model = "provider/name"'
            raise ConfigError("world.scorer: llm_judge needs a model that judges", hint=hint)
        self._model = model
        self._rubric = _rubric(settings, base_dir)
        self._pass_mark = settings.pass_mark
        self._sampling = Sampling(max_tokens=settings.max_tokens, temperature=0.0)
        self._prompt = _prompt()
        self.content: Json = ["llm_judge 1", self._prompt, self._rubric, settings.pass_mark, str(model.ref)]

    def references(self, answer: Json) -> tuple[Json, ...]:
        if answer is None:
            return ()
        return tuple(answer) if isinstance(answer, list) else (answer,)

    def problem(self, references: tuple[Json, ...], choices: tuple[str, ...]) -> str:
        return ""

    async def score(self, question: Question, answer: str) -> Verdict:
        judgement = await self._judgement(question, answer)
        feedback = f"judged {judgement.score:g}: {judgement.reason}"
        facts: dict[str, Json] = {"judge": str(self._model.ref)}
        return Verdict(judgement.score >= self._pass_mark, judgement.score, feedback, facts)

    def known_good(self, question: Question) -> str | None:
        return as_text(question.references[0]) if question.references else None

    async def _judgement(self, question: Question, answer: str) -> Judgement:
        asked = user(judge_prompt(self._prompt, self._rubric, question, answer))
        reply = await self._ask((asked,), question, answer)
        read = read_judgement(reply)
        if isinstance(read, str):
            again = user(f"That could not be used: {read}. Reply with the JSON object alone.")
            read = read_judgement(await self._ask((asked, assistant(reply), again), question, answer))
        if isinstance(read, str):
            raise WorldFault(f"task {question.task.id}: the judge's reply could not be used twice: {read}")
        return read

    async def _ask(self, messages: tuple[Message, ...], question: Question, answer: str) -> str:
        request = ModelRequest(messages, sampling=self._sampling, schema=_SCHEMA)
        salt = content_key("judge", question.task.id, answer)
        return (await self._model.complete(request, purpose=Purpose.JUDGE, salt=salt)).text


def judge_prompt(prompt: str, rubric: str, question: Question, answer: str) -> str:
    # A line made of the content cannot be written by the one whose answer it encloses.
    mark = f"=== {fingerprint('judge', question.text, answer)[:12]} ==="
    rights = "\n".join(as_text(right) for right in question.references)
    reference = f"\n# Reference answer\n{mark}\n{rights}\n{mark}\n" if rights else ""
    return prompt.format(rubric=rubric, brief=question.text, reference=reference, answer=answer, mark=mark)


def read_judgement(reply: str) -> Judgement | str:
    """The one object with a score in a reply, or why there is none."""
    found = [value for value in objects_in(reply) if "score" in value]
    if len(found) != 1:
        return f"there must be one JSON object with a score, not {len(found)}"
    score, reason = found[0]["score"], found[0].get("reason", "")
    if isinstance(score, bool) or not isinstance(score, int | float):
        return "the score is not a number"
    if not (0 <= score <= 1 and math.isfinite(score)):
        return "the score is not from 0 to 1"
    if not isinstance(reason, str):
        return "the reason is not text"
    return Judgement(float(score), " ".join(reason.encode("utf-8", "replace").decode().split()))


def _rubric(settings: LlmJudge, base_dir: Path) -> str:
    if settings.rubric_file:
        try:
            return (base_dir / settings.rubric_file).read_text("utf-8").strip()
        except OSError as error:
            path = "world.scorer.rubric_file"
            raise ConfigError(f"{path}: {settings.rubric_file} cannot be read: {error.strerror}") from error
    return settings.rubric.strip()


def _prompt() -> str:
    """The text below the header of the prompt file."""
    whole = files("whet.worlds").joinpath("prompts/judge.md").read_text("utf-8")
    return whole.split("---\n", 2)[2].strip()
