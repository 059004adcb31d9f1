"""The stages by which a scenario is made, one after another, and how each answer is tried.

A stage that fails for good ends its scenario; a task that cannot be solved or verified ends alone.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TypeVar

import msgspec

from whet.core import Solution, fingerprint
from whet.core.prompts import load_prompt
from whet.making.answers import Api, Code, Sample, Schema, Sketch, TaskList
from whet.making.asking import PROMPTS, Answered, Asker, Stage, Trial, Try
from whet.making.nearness import most_alike
from whet.making.parts import Parts, SoundTask, listed
from whet.making.reading import api_problems, sample_problems, schema_problems, sketch_problems, task_problems
from whet.making.trying import Bench
from whet.training import Monitor

A = TypeVar("A", bound=msgspec.Struct)

SCENARIO = Stage("scenario", Sketch)
TASKS = Stage("tasks", TaskList)
SCHEMA = Stage("schema", Schema)
SAMPLE = Stage("sample", Sample)
SPEC = Stage("spec", Api)
PROGRAM = Stage("program", Code)
SOLUTION = Stage("solution", Solution)
VERIFIER = Stage("verifier", Code)
STAGES = (SCENARIO, TASKS, SCHEMA, SAMPLE, SPEC, PROGRAM, SOLUTION, VERIFIER)
_MOST_KNOWN = 40


class LeftOut(msgspec.Struct, frozen=True):
    """A task that did not come about."""

    text: str
    reason: str


def prompts_content() -> str:
    """Changes with every prompt."""
    return fingerprint("make prompts", [load_prompt(PROMPTS, name) for name in (*(s.name for s in STAGES), "correct")])


class Line:
    """The assembly line of one making."""

    def __init__(self, asker: Asker, bench: Bench, monitor: Monitor, corrections: int) -> None:
        self._asker = asker
        self._bench = bench
        self._monitor = monitor
        self._corrections = corrections

    async def sketch(self, theme: str, number: int, known: Sequence[Sketch]) -> Sketch:
        alike = most_alike(theme, known, _MOST_KNOWN)
        told = "\n".join(f"- {one.name}: {one.description}" for one in alike) or "(nothing)"
        what = f"scenario {number}"

        async def trying(answer: Sketch) -> Trial:
            return Trial.of(list(sketch_problems(answer, known)))

        inputs = {"theme": theme, "known": told}
        given = fingerprint("known", msgspec.to_builtins(known))
        return (await self._ask(SCENARIO, what, f"{theme} {number}", inputs, trying, given)).answer

    async def parts(self, sketch: Sketch, count: int) -> tuple[Parts, tuple[str, ...], str]:
        """All of a scenario but its sound tasks; the tasks to try; and its tools, as prompts tell them."""
        parts = Parts(sketch)
        tasks = await self._tasks(parts, count)
        parts = _with(parts, schema=await self._schema(parts, tasks))
        parts = _with(parts, sample=await self._sample(parts, tasks))
        parts = _with(parts, api=await self._spec(parts, tasks))
        code, tools = await self._program(parts)
        return _with(parts, code=code), tasks, tools

    async def task(self, parts: Parts, tools: str, text: str) -> SoundTask:
        """A way through the task, then a verifier that tells it from others."""
        name = parts.sketch.name
        schema = parts.told_schema()

        async def solving(answer: Solution) -> Trial:
            return await self._bench.solution(parts, answer)

        inputs = {**parts.told(), "schema": schema, "sample": parts.told_sample(), "tools": tools, "task": text}
        solved = await self._ask(SOLUTION, name, f"{name} {text}", inputs, solving, parts.content)
        solution = solved.answer
        told, changes = msgspec.json.decode(solved.trial.found, type=tuple[str, str])

        async def verifying(answer: Code) -> Trial:
            return await self._bench.verifier(parts, solution, answer.code)

        seen = {"solution": told, "changes": changes or "(none)", "answer": solution.answer or "(none)"}
        inputs = {**parts.told(), "schema": schema, "task": text, **seen}
        given = fingerprint("solved", parts.content, msgspec.to_builtins(solution))
        verified = await self._ask(VERIFIER, name, f"{name} {text}", inputs, verifying, given)
        return SoundTask(text, solution, verified.trial.damaged, verified.answer.code)

    async def _tasks(self, parts: Parts, count: int) -> tuple[str, ...]:
        async def trying(answer: TaskList) -> Trial:
            return Trial.of(list(task_problems(answer, count)))

        inputs = {**parts.told(), "tables": ", ".join(parts.sketch.tables), "count": str(count)}
        answered = await self._made(TASKS, parts, inputs, trying, str(count))
        return answered.answer.tasks[:count]

    async def _schema(self, parts: Parts, tasks: Sequence[str]) -> Schema:
        async def trying(answer: Schema) -> Trial:
            problems = list(schema_problems(answer, parts.sketch.tables))
            return Trial.of(problems) if problems else await self._bench.data(_with(parts, schema=answer))

        inputs = {**parts.told(), "tables": ", ".join(parts.sketch.tables), "tasks": listed(tasks)}
        return (await self._made(SCHEMA, parts, inputs, trying)).answer

    async def _sample(self, parts: Parts, tasks: Sequence[str]) -> Sample:
        tables = [table.name for table in parts.schema.tables]

        async def trying(answer: Sample) -> Trial:
            problems = list(sample_problems(answer, tables))
            return Trial.of(problems) if problems else await self._bench.data(_with(parts, sample=answer))

        inputs = {**parts.told(), "schema": parts.told_schema(), "tasks": listed(tasks)}
        return (await self._made(SAMPLE, parts, inputs, trying)).answer

    async def _spec(self, parts: Parts, tasks: Sequence[str]) -> Api:
        async def trying(answer: Api) -> Trial:
            return Trial.of(list(api_problems(answer)), f"{len(answer.endpoints)} operations")

        told = {"schema": parts.told_schema(), "sample": parts.told_sample(), "tasks": listed(tasks)}
        return (await self._made(SPEC, parts, {**parts.told(), **told}, trying)).answer

    async def _program(self, parts: Parts) -> tuple[str, str]:
        async def trying(answer: Code) -> Trial:
            return await self._bench.program(_with(parts, code=answer.code))

        inputs = {**parts.told(), "schema": parts.told_schema(), "spec": parts.told_api()}
        answered = await self._made(PROGRAM, parts, inputs, trying)
        return answered.answer.code, answered.trial.found

    async def _made(
        self, stage: Stage[A], parts: Parts, inputs: Mapping[str, str], trying: Try[A], given: str = ""
    ) -> Answered[A]:
        name = parts.sketch.name
        answered = await self._ask(stage, name, name, inputs, trying, f"{parts.content} {given}")
        self._monitor.line(f"{name}: {stage.name} {_after(answered.asked)}")
        return answered

    async def _ask(
        self, stage: Stage[A], what: str, place: str, inputs: Mapping[str, str], trying: Try[A], given: str
    ) -> Answered[A]:
        shown = self._monitor.stage(f"{what}: {stage.name}", self._corrections + 1)

        def again(problem: str) -> None:
            shown.done += 1
            first = problem.removeprefix("- ").splitlines()[0][:160]
            self._monitor.line(f"{what}: {stage.name} asked again ({shown.done} of {self._corrections}): {first}")

        try:
            return await self._asker.ask(stage, place, inputs, trying, given=given, again=again)
        finally:
            self._monitor.ended(shown)


def _with(parts: Parts, **more: object) -> Parts:
    return msgspec.structs.replace(parts, **more)


def _after(asked: int) -> str:
    return "done" if asked == 1 else f"done after {asked} answers"
