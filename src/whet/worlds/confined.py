"""A scorer that is a Python function which is not trusted: it runs in the sandbox, and is never imported."""

from __future__ import annotations

import ast
from pathlib import Path

import msgspec

from whet.core import ConfigError, Json, Verdict, WorldFault
from whet.sandbox import PRELOAD, Limits, PoolOnDemand, Program
from whet.worlds.functions import OFFERED, PythonFunction
from whet.worlds.scorers import Question
from whet.worlds.verdicts import as_verdict, source_of

_LIMITS = Limits(seconds=30.0, cpu_seconds=30)
_PROGRAM = """
import inspect
import msgspec
from whet.core import Task, Verdict

async def judge(source, function, offered):
    names = {"__name__": "scorer"}
    exec(compile(source, "<program>", "exec", dont_inherit=True), names)
    if "task" in offered:
        offered["task"] = msgspec.convert(offered["task"], Task)
    judged = names[function](**offered)
    if inspect.isawaitable(judged):
        judged = await judged
    return {"verdict": msgspec.to_builtins(judged)} if isinstance(judged, Verdict) else {"judged": judged}
"""


class ConfinedScorer:
    """The same as `FunctionScorer` from outside. What the function raises is its own fault, and no verdict."""

    wants_row = True

    def __init__(self, settings: PythonFunction, base_dir: Path) -> None:
        place, _, self._function = settings.function.rpartition(":")
        path = base_dir / place
        if not place.endswith(".py"):
            hint = 'Write it as "file.py:function"; a package would have to be imported to be found'
            raise ConfigError("world.scorer.function: with trusted = false it must be in a file", hint=hint)
        try:
            self._source = path.read_text("utf-8")
            wanted = _parameters(self._source, self._function)
        except (OSError, SyntaxError, ValueError) as error:
            raise ConfigError(f"world.scorer.function: {settings.function} cannot be read: {error}") from error
        unknown = [name for name in wanted if name not in OFFERED]
        if unknown:
            hint = f"It can ask for {', '.join(OFFERED)}, each by its name"
            raise ConfigError(f"world.scorer.function: {settings.function} asks for '{unknown[0]}'", hint=hint)
        self._wants = wanted
        self._where = settings.function
        self._pass_mark = settings.pass_mark
        self._sandbox = PoolOnDemand((*PRELOAD, "msgspec", "whet.core"))
        self.content: Json = ["python 1", source_of(str(path)), self._function, settings.pass_mark]

    def references(self, answer: Json) -> tuple[Json, ...]:
        return () if answer is None else (answer,)

    def problem(self, references: tuple[Json, ...], choices: tuple[str, ...]) -> str:
        return "the answer is missing" if "reference" in self._wants and not references else ""

    async def score(self, question: Question, answer: str) -> Verdict:
        reference = question.references[0] if question.references else None
        task: Json = msgspec.to_builtins(question.task)
        all_offered: dict[str, Json] = {"answer": answer, "reference": reference, "task": task, "row": question.row}
        offered: Json = {name: all_offered[name] for name in self._wants}
        pool = await self._sandbox.pool()
        arguments: dict[str, Json] = {"source": self._source, "function": self._function, "offered": offered}
        outcome = await pool.run(Program(_PROGRAM, "judge"), arguments, limits=_LIMITS)
        if not outcome.done or not isinstance(outcome.value, dict):
            raise WorldFault(f"{self._where} gave no verdict: {outcome.error or outcome.kind}")
        if "verdict" in outcome.value:
            return msgspec.convert(outcome.value["verdict"], Verdict)
        return as_verdict(outcome.value["judged"], self._pass_mark)

    def known_good(self, question: Question) -> str | None:
        return None

    async def aclose(self) -> None:
        await self._sandbox.aclose()


def _parameters(source: str, function: str) -> list[str]:
    """Read off the text, because what is not trusted is not imported."""
    for each in ast.parse(source).body:
        if isinstance(each, ast.FunctionDef | ast.AsyncFunctionDef) and each.name == function:
            return [argument.arg for argument in (*each.args.posonlyargs, *each.args.args, *each.args.kwonlyargs)]
    raise ValueError(f"it has no function {function}")
