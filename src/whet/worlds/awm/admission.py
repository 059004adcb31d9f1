"""Which scenarios of a folder are sound, task by task, and why others are not.

A scenario is admitted if all of its statements load and every promised operation is a tool; a task, if its verifier
works, fails an agent that does nothing, and says the same twice and on another date. What was found is kept in the
folder, so that a world is loaded without running anything.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection, Iterable
from pathlib import Path

import msgspec

from whet.core import InputError, Solution, WorldFault, fingerprint
from whet.worlds.awm.layout import Layout, Scenario, Verifier, read_layout
from whet.worlds.awm.stages import MOMENT, Ready, Stages
from whet.worlds.awm.verifying import States, read_result, run_verifier
from whet.worlds.database import RewardType

ADMISSION_FILE = "whet_admission.json"
ANOTHER_DATE = MOMENT + 1000.5 * 86_400
_AT_ONCE = 4


class TaskReport(msgspec.Struct, frozen=True):
    index: int
    problems: tuple[str, ...] = ()


class ScenarioReport(msgspec.Struct, frozen=True):
    name: str
    fingerprint: str
    admitted: bool
    problems: tuple[str, ...]
    tasks: tuple[TaskReport, ...]
    tools: int = 0
    statements: int = 0
    repaired: int = 0


class Admission(msgspec.Struct, frozen=True):
    lenient: bool
    """What can be played was kept, sound or not."""
    scenarios: dict[str, ScenarioReport]

    @property
    def admitted(self) -> list[str]:
        return [name for name, report in self.scenarios.items() if report.admitted]

    def tasks_of(self, scenario: Scenario) -> list[int]:
        """The tasks of a scenario that may be played. Raises if it is not as it was when it was admitted."""
        report = self.scenarios.get(scenario.name)
        if report is None or not report.admitted:
            why = f": {report.problems[0]}" if report and report.problems else ""
            hint = "See `whet world import awm DIR`; --lenient keeps what can still be played."
            raise InputError(f"scenario {scenario.name} is not admitted{why}", hint=hint)
        if report.fingerprint != content_of(scenario):
            hint = "Run `whet world import awm DIR` again."
            raise InputError(f"scenario {scenario.name} has changed since it was admitted", hint=hint)
        return [task.index for task in report.tasks if self.lenient or not task.problems]

    def problems(self, only: Collection[str] = ()) -> Iterable[str]:
        for name, report in self.scenarios.items():
            if not only or name in only:
                yield from (f"scenario {name}: {problem}" for problem in report.problems)
                yield from (
                    f"task {name}/{task.index}: {problem}" for task in report.tasks for problem in task.problems
                )


def content_of(scenario: Scenario) -> str:
    return fingerprint(
        "awm admission", scenario.fingerprint, scenario.tasks, *_verifiers(scenario), *scenario.solutions.items()
    )


def _verifiers(scenario: Scenario) -> Iterable[tuple[int, str, bool]]:
    for kind in (scenario.coded, scenario.judged):
        yield from ((index, verifier.code, verifier.judged) for index, verifier in sorted(kind.items()))


def read_admission(folder: Path) -> Admission:
    path = folder / ADMISSION_FILE
    if not path.is_file():
        hint = f"Run `whet world import awm {folder}` once: it says what is sound."
        raise InputError(f"{folder} has not been admitted", hint=hint)
    try:
        return msgspec.json.decode(path.read_bytes(), type=Admission)
    except msgspec.DecodeError as error:
        hint = f"Run `whet world import awm {folder}` again."
        raise InputError(f"{path} cannot be read: {error}", hint=hint) from error


async def admit(
    folder: Path,
    *,
    only: Collection[str] = (),
    lenient: bool = False,
    done: Callable[[ScenarioReport], None] = lambda report: None,
) -> Admission:
    """Try every scenario and write down what was found, beside what was found before of others."""
    layout = read_layout(folder, only)
    now, then = Stages(MOMENT), Stages(ANOTHER_DATE)
    places = asyncio.Semaphore(_AT_ONCE)

    async def one(scenario: Scenario) -> ScenarioReport:
        async with places:
            report = await _Trial(scenario, now, then, lenient=lenient).report()
        done(report)
        return report

    try:
        async with asyncio.TaskGroup() as trying:
            tried = [trying.create_task(one(scenario)) for scenario in layout.scenarios.values()]
    finally:
        await now.aclose()
        await then.aclose()
    reports = [trial.result() for trial in tried] + _unread(layout)
    for report in reports[len(tried) :]:
        done(report)
    before = _before(folder) if only else {}
    found = {**before, **{report.name: report for report in reports}}
    admission = Admission(lenient, {name: found[name] for name in sorted(found)})
    _write(folder / ADMISSION_FILE, admission)
    return admission


def _unread(layout: Layout) -> list[ScenarioReport]:
    return [
        ScenarioReport(name or "(unnamed lines)", "", admitted=False, problems=problems, tasks=())
        for name, problems in layout.problems.items()
        if name not in layout.scenarios
    ]


def _before(folder: Path) -> dict[str, ScenarioReport]:
    return read_admission(folder).scenarios if (folder / ADMISSION_FILE).is_file() else {}


def _write(path: Path, admission: Admission) -> None:
    beside = path.with_suffix(".new")
    beside.write_bytes(msgspec.json.format(msgspec.json.encode(admission), indent=1) + b"\n")
    beside.replace(path)


class _Trial:
    """One scenario, on two dates."""

    def __init__(self, scenario: Scenario, now: Stages, then: Stages, *, lenient: bool) -> None:
        self._scenario = scenario
        self._now = now
        self._then = then
        self._lenient = lenient

    async def report(self) -> ScenarioReport:
        scenario = self._scenario
        try:
            ready, later = await self._now.ready(scenario), await self._then.ready(scenario)
        except WorldFault as fault:
            return ScenarioReport(scenario.name, content_of(scenario), False, (fault.message,), ())
        problems = tuple(program_problems(scenario, ready))
        tasks = [await self._task(index, ready, later) for index in range(len(scenario.tasks))]
        playable = any(self._lenient or not task.problems for task in tasks)
        return ScenarioReport(
            name=scenario.name,
            fingerprint=content_of(scenario),
            admitted=playable and (self._lenient or not problems),
            problems=problems,
            tasks=tuple(tasks),
            tools=len(ready.tools),
            statements=ready.described.built.statements,
            repaired=ready.described.built.repaired,
        )

    async def _task(self, index: int, ready: Ready, later: Ready) -> TaskReport:
        coded, judged = self._scenario.coded.get(index), self._scenario.judged.get(index)
        if coded is None and judged is None:
            return TaskReport(index, ("it has no verifier",))
        problems: list[str] = []
        for verifier in filter(None, (coded, judged)):
            problems += await self._verifier(verifier, ready, later)
        if coded is not None and not problems:
            problems += await self._solution(index, coded)
        return TaskReport(index, tuple(problems))

    async def _solution(self, index: int, verifier: Verifier) -> list[str]:
        """A known way through must pass, on both dates."""
        solution = self._scenario.solutions.get(index)
        if solution is None:
            return []
        passed: list[bool] = []
        for stages, moment in ((self._now, MOMENT), (self._then, ANOTHER_DATE)):
            try:
                passed.append(await self._passes(stages, moment, solution, verifier))
            except WorldFault as fault:
                return [f"its known solution cannot be played: {fault.message}"]
        if passed == [True, True]:
            return []
        when = "" if not any(passed) else " on this date" if passed[1] else " on another date"
        return [f"its known solution does not pass{when}"]

    async def _passes(self, stages: Stages, moment: float, solution: Solution, verifier: Verifier) -> bool:
        playing = await stages.open(self._scenario, 0)
        try:
            for act in solution.acts:
                tool = playing.ready.tools.get(act.tool)
                if tool is None:
                    raise WorldFault(f"it calls {act.tool}, which is no tool")
                await playing.do(tool.request(act.arguments))
            end = stages.place((await playing.state())[0])
        finally:
            await playing.close()
        try:
            said = await run_verifier(
                await stages.pool(), verifier, States(playing.ready.start, end, moment), solution.answer
            )
            return read_result(said).result is RewardType.COMPLETE
        finally:
            end.unlink()

    async def _verifier(self, verifier: Verifier, ready: Ready, later: Ready) -> list[str]:
        """Run on a session in which nothing was done: twice, and on another date."""
        which = "the judged verifier" if verifier.judged else "the verifier"
        here = States(ready.start, ready.start, MOMENT)
        there = States(later.start, later.start, ANOTHER_DATE)
        try:
            pool = await self._now.pool()
            first = await run_verifier(pool, verifier, here, "")
            second = await run_verifier(pool, verifier, here, "")
            elsewhere = await run_verifier(await self._then.pool(), verifier, there, "")
            if verifier.judged:
                return [f"{which} says other things when asked again"] if first != second else []
            results = [read_result(said).result for said in (first, second, elsewhere)]
        except WorldFault as fault:
            return [f"{which} does not work: {fault.message}"]
        if results[0] is not results[1]:
            return [f"{which} says other things when asked again"]
        if results[0] is RewardType.COMPLETE:
            return ["an agent that does nothing passes"]
        if results[0] is not results[2]:
            return [f"{which} says other things on another date"]
        return []


def program_problems(scenario: Scenario, ready: Ready) -> Iterable[str]:
    """What is wrong with a scenario as a whole, once it is loaded."""
    built = ready.described.built
    if built.failed:
        yield f"{len(built.failed)} of {built.statements} statements do not load, such as {built.failed[0]}"
    for double in ready.described.doubled:
        yield f"two handlers are on {double}: the later one is hidden"
    yield from ready.problems
    places = {(tool.method, tool.path) for tool in ready.tools.values()}
    for operation in scenario.operations:
        if operation.name not in ready.tools and (operation.method, operation.path) not in places:
            yield f"the specification promises {operation.name} ({operation.method} {operation.path}), which is no tool"
    if not ready.tools:
        yield "the program has no operations"
