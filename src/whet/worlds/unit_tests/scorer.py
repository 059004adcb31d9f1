"""The scorer `unit_tests`: passed if all tests pass, with the share of those that do as `soft`."""

from __future__ import annotations

import asyncio
import math
import os
import re
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager

import msgspec

from whet.core import Json, Verdict, WorldFault
from whet.sandbox import Ending, Host, HostRaised, Limits, PoolOnDemand, Template, Worker, WorkerLost
from whet.worlds.scorers import Question
from whet.worlds.text import as_text
from whet.worlds.unit_tests.messages import Do, Done, FromTests, Listed, Load, ToTests, Tried, Try

_FENCED = re.compile(
    r"^[ \t]*```[ \t]*(?:python|py|python3)?[ \t]*\r?\n(.*?)^[ \t]*```[ \t]*$", re.DOTALL | re.MULTILINE
)
_ANSWER = Host("whet.worlds.unit_tests.answer:AnswerHost")
_TESTS = Host("whet.worlds.unit_tests.tests:TestsHost")
_PRELOAD = (
    "ast",
    "collections",
    "datetime",
    "functools",
    "itertools",
    "json",
    "math",
    "random",
    "re",
    "string",
    "typing",
)
_MOST_CALLS = 50_000
"""Between the tests and the answer, for one test."""
_PATIENCE = 4
"""The tests may wait this many times longer than the answer may work: what takes long is then always the answer's."""
_SHOWN = 3
_MOST_STARTS = 3
"""Of an answer that breaks down in its tests; what is left then has failed."""
_ENDINGS = {
    Ending.TIMEOUT: "the answer's code is too slow",
    Ending.DISK: "the answer's code writes too much",
    Ending.BAD_RESULT: "the answer's code returns too much",
}
_said: Callable[[bytes], FromTests] = msgspec.json.Decoder(FromTests).decode
_done = msgspec.json.Decoder(Done).decode


class UnitTests(msgspec.Struct, frozen=True, tag_field="use", tag="unit_tests", forbid_unknown_fields=True):
    """Tests run against the code in the reply, each apart from the other in a sandbox. The answer field holds them.

    A list is a test each; a text is a test file (functions `test_…`, TestCases, `check(candidate)`), or one test.
    """

    candidate: str = ""
    """The name of what `check(candidate)` is called with. Left out: the row's field `entry_point`."""
    solution: str = "solution"
    """The field of the row with code that must pass, if it has one; the check uses it."""
    seconds: float = 5.0
    """That the answer's code may take for one test."""
    memory_mb: int = 512
    """Megabytes that it may have."""

    def __post_init__(self) -> None:
        if not (self.seconds > 0 and self.memory_mb > 0):
            raise ValueError("seconds and memory_mb are above 0")


class UnitTestScorer:
    wants_row = True

    def __init__(self, settings: UnitTests) -> None:
        self._settings = settings
        self._sandbox = PoolOnDemand(_PRELOAD)
        self._templates: tuple[Template, Template] | None = None
        self._loading = asyncio.Lock()
        self._places = asyncio.Semaphore(2 * (os.cpu_count() or 1))
        self.content: Json = ["unit_tests 1", settings.candidate, settings.seconds, settings.memory_mb]

    def references(self, answer: Json) -> tuple[Json, ...]:
        return tuple(answer) if isinstance(answer, list) else () if answer is None else (answer,)

    def problem(self, references: tuple[Json, ...], choices: tuple[str, ...]) -> str:
        if not references:
            return "the tests are missing"
        for text in references:
            if not isinstance(text, str) or not text.strip():
                return "the tests must be text, or a list of texts"
            try:
                compile(text, "<tests>", "exec", dont_inherit=True)
            except (SyntaxError, ValueError) as error:
                return f"the tests are not Python: {error}"
        return ""

    async def score(self, question: Question, answer: str) -> Verdict:
        code = code_of(answer)
        tests = tuple(as_text(text) for text in question.references)
        candidate = self._settings.candidate or as_text(question.row.get("entry_point") or "")
        results = await self._results(code, Load(tests, candidate=candidate), question.task.id)
        passed = sum(result.passed for _, result in results)
        soft = passed / len(results)
        if passed == len(results):
            return Verdict(True, 1.0, facts={"tests": len(results)})
        failed = [f"{name}: {result.why}" for name, result in results if not result.passed]
        more = f"; and {len(failed) - _SHOWN} more" if len(failed) > _SHOWN else ""
        feedback = f"failed tests: {len(failed)} of {len(results)}. {'; '.join(failed[:_SHOWN])}{more}"
        return Verdict(False, soft, feedback, facts={"tests": len(results), "passed": passed})

    def known_good(self, question: Question) -> str | None:
        solution = question.row.get(self._settings.solution)
        return solution if isinstance(solution, str) else None

    async def aclose(self) -> None:
        self._templates = None
        await self._sandbox.aclose()

    async def _results(self, code: str, tests: Load, task: str) -> list[tuple[str, Tried]]:
        """By test. An answer that was lost in one is started anew for the next, a few times."""
        results: list[tuple[str, Tried]] = []
        names: tuple[str, ...] = ()
        async with self._places:
            for _ in range(_MOST_STARTS):
                async with self._bench(task, len(tests.source)) as bench:
                    listed = await bench.begin(code, tests)
                    if isinstance(listed, Tried):
                        return [*results, ("loading it", listed)]
                    if not listed.names:
                        raise WorldFault(f"task {task}: its tests define no test")
                    names = listed.names
                    while len(results) < len(names) and not bench.is_lost:
                        results.append((names[len(results)], await bench.ask(Try(len(results)))))
                if len(results) == len(names):
                    return results
        left = names[len(results) :]
        return [*results, *((name, Tried(False, "not tried: the answer's code broke down before")) for name in left)]

    @asynccontextmanager
    async def _bench(self, task: str, tests: int) -> AsyncGenerator[Bench]:
        answer_template, tests_template = await self._loaded()
        cpu = math.ceil(self._settings.seconds * max(tests, 4))
        limits = Limits(self._settings.seconds, cpu_seconds=cpu, memory=self._settings.memory_mb << 20)
        answer = await answer_template.fork(limits=limits)
        try:
            judge = await tests_template.fork(
                limits=msgspec.structs.replace(limits, seconds=limits.seconds * _PATIENCE)
            )
            try:
                yield Bench(answer, judge, task, self._settings.seconds)
            finally:
                await judge.close()
        finally:
            await answer.close()

    async def _loaded(self) -> tuple[Template, Template]:
        async with self._loading:
            if self._templates is None:
                pool = await self._sandbox.pool()
                self._templates = await pool.template(_ANSWER), await pool.template(_TESTS)
            return self._templates


class Bench:
    """The tests of one task and one answer, each behind walls of its own; what one wants of the other is carried."""

    def __init__(self, answer: Worker, tests: Worker, task: str, seconds: float) -> None:
        self._answer = answer
        self._tests = tests
        self._task = task
        self._seconds = seconds
        self.is_lost = False

    async def begin(self, code: str, tests: Load) -> Listed | Tried:
        done = await self._of_answer(msgspec.json.encode(Load((code,))), self._seconds)
        if isinstance(done, Tried):
            return done
        if done[0].raised is not None:
            return Tried(False, f"the answer's code raises {done[0].raised_kind}")
        return await self._carried(msgspec.structs.replace(tests, names=_names(done[0].value)), Listed)

    async def ask(self, order: Try) -> Tried:
        found = await self._carried(order, Tried)
        return found if isinstance(found, Tried) else Tried(False, "it cannot be read")

    async def _carried(self, order: ToTests, wanted: type[Listed] | type[Tried]) -> Listed | Tried:
        """Goes on with the tests until they have come to an end, and brings them what they want of the answer."""
        left, request, calls = self._seconds, msgspec.json.encode(order), 0
        while True:
            said = await self._of_tests(request, calls)
            if isinstance(said, Do):
                calls += 1
                began = asyncio.get_running_loop().time()
                if calls > _MOST_CALLS:
                    self.is_lost = True
                    return Tried(False, f"more than {_MOST_CALLS:,} calls of the answer's code")
                done = await self._of_answer(msgspec.json.encode(said), left)
                if isinstance(done, Tried):
                    return done
                left -= asyncio.get_running_loop().time() - began
                request = done[1]
                continue
            if isinstance(said, Tried) and said.fault:
                raise WorldFault(f"task {self._task}: {said.fault}")
            if isinstance(said, Tried | wanted):
                return said
            raise WorldFault(f"task {self._task}: its tests lost their place")

    async def _of_answer(self, request: bytes, left: float) -> tuple[Done, bytes] | Tried:
        """Whatever goes wrong there is the answer's own failure."""
        try:
            reply = await self._answer.ask(request, seconds=max(left, 0.01))
            return _done(reply), reply
        except WorkerLost as lost:
            self.is_lost = True
            return Tried(False, _ENDINGS.get(lost.kind, "the answer's code ended its process"))
        except (HostRaised, msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
            self.is_lost = True
            return Tried(False, "the answer's code broke what calls it")

    async def _of_tests(self, request: bytes, calls: int) -> FromTests:
        """Tests that break before the answer has said anything break by themselves."""
        try:
            return _said(await self._tests.ask(request))
        except (WorkerLost, HostRaised, msgspec.MsgspecError) as error:
            if calls == 0:
                raise WorldFault(f"task {self._task}: its tests broke: {error}") from error
            self.is_lost = True
            return Tried(False, "the tests do not get over what the answer's code returned")


def _names(packed: Json) -> tuple[str, ...]:
    match packed:
        case ["list", [*names]]:
            return tuple(name for name in names if isinstance(name, str))
        case _:
            return ()


def code_of(answer: str) -> str:
    """The last fenced block of a reply, or all of it where there is none."""
    blocks = _FENCED.findall(answer)
    return blocks[-1] if blocks else answer
