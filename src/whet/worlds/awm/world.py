"""A folder of generated programs as a World. What it plays was admitted before: see `admission`."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Sequence
from contextlib import asynccontextmanager
from enum import StrEnum
from pathlib import Path

import msgspec

from whet.core import (
    Brief,
    InputError,
    Json,
    Model,
    Session,
    Solution,
    Split,
    Task,
    ToolFault,
    ToolResult,
    ToolSpec,
    Verdict,
    cause_of,
    fingerprint,
)
from whet.worlds.authoring import SessionOver
from whet.worlds.awm.admission import Admission, read_admission
from whet.worlds.awm.inside.messages import Changes
from whet.worlds.awm.layout import Layout, Scenario, Verifier, read_layout
from whet.worlds.awm.stages import MOMENT, Playing, Stages
from whet.worlds.awm.verifying import (
    FactsJudge,
    Found,
    States,
    read_result,
    run_verifier,
)
from whet.worlds.database import RewardType, reward_type
from whet.worlds.database.rewards import FACT
from whet.worlds.marking import world
from whet.worlds.schema import problems_of
from whet.worlds.splits import Arranged, Listed, SplitSettings, arrange
from whet.worlds.tools import invalid_arguments, unknown_tool

CONDUCT = """\
You work in this application through its tools alone, as the signed-in user (id 1 where a user id is asked for).
Look up what you need, do what the task asks and nothing beyond it, and end with a short reply that says what you did
or found."""

_SHOWN = 1500


class VerifierKind(StrEnum):
    CODE = "code"
    JUDGED = "judged"


class AwmSettings(SplitSettings, frozen=True, kw_only=True, forbid_unknown_fields=True):
    path: str
    """The folder with gen_tasks.jsonl and its like; `whet world import awm DIR` admits what is sound in it."""
    scenarios: tuple[str, ...] = ()
    """Which scenarios; none named means all that were admitted."""
    verifier: VerifierKind = VerifierKind.CODE
    """`code`: the verifiers that judge by code alone; `judged`: those that gather facts for the model of [judge]."""


@world("awm")
class AwmWorld:
    """Worlds of generated tools over SQLite, in the format of AgentWorldModel, played in the sandbox."""

    def __init__(self, settings: AwmSettings, base_dir: Path, judge: Model | None) -> None:
        folder = base_dir / settings.path
        admission = read_admission(folder)
        wanted = settings.scenarios or tuple(admission.admitted)
        layout = read_layout(folder, wanted)
        self._judge = FactsJudge(judge) if settings.verifier is VerifierKind.JUDGED else None
        self._setup(layout, admission, settings, MOMENT)

    def _setup(self, layout: Layout, admission: Admission, settings: AwmSettings, moment: float) -> None:
        self._layout, self._admission, self._settings = layout, admission, settings
        self._scenarios = layout.scenarios
        self._stages = Stages(moment)
        self._moment = moment
        self._arranged: Arranged = arrange(list(_listed(layout, admission, settings)), settings)
        judged = self._judge.content if self._judge else ""
        used = [one.fingerprint for one in layout.scenarios.values()]
        self._fingerprint = fingerprint("awm 1", used, self._arranged.content, moment, judged)

    @property
    def name(self) -> str:
        return "awm"

    @property
    def fingerprint(self) -> str:
        return self._fingerprint

    @property
    def left_out(self) -> Sequence[str]:
        """What was not admitted, and why; or was all the same, and what is wrong with it."""
        return list(self._admission.problems(self._settings.scenarios))

    def tasks(self, split: Split) -> Sequence[Task]:
        return self._arranged.tasks[split]

    def on_date(self, moment: float) -> AwmWorld:
        """The same world as if on another day; it is let go of on its own."""
        other = object.__new__(AwmWorld)
        other._judge = self._judge
        other._setup(self._layout, self._admission, self._settings, moment)
        return other

    async def open(self, task: Task, seed: int) -> Session:
        scenario, verifier = self._place(task)
        playing = await self._stages.open(scenario, seed)
        return AwmSession(self, task, scenario, verifier, playing)

    def known_good(self, task: Task) -> Solution | None:
        """A scripted way through the task, where the folder holds one."""
        scenario, _ = self._place(task)
        return scenario.solutions.get(int(task.id.rpartition("/")[2]))

    def damaged(self, task: Task) -> Sequence[Solution]:
        """The same with something wrong, which must fail, where the folder holds such."""
        scenario, index = self._place(task)[0], int(task.id.rpartition("/")[2])
        return scenario.damaged.get(index, ())

    async def aclose(self) -> None:
        await self._stages.aclose()

    async def forked(self, session: AwmSession) -> AwmSession:
        image, _ = await session.playing.state()
        playing = await self._stages.open(session.scenario, 0, image)
        return AwmSession(self, session.task, session.scenario, session.verifier, playing, session.malformed)

    async def verified(self, session: AwmSession, answer: str) -> Verdict:
        image, changes = await session.playing.state()
        pool = await self._stages.pool()
        async with self._states(session, image) as states:
            try:
                async with asyncio.TaskGroup() as ending:
                    # What is judged is a copy: the session's process may end meanwhile.
                    ending.create_task(session.playing.close())
                    said = ending.create_task(run_verifier(pool, session.verifier, states, answer))
            except BaseExceptionGroup as group:
                raise cause_of(group) from group
        if session.verifier.judged and self._judge is not None:
            task = str(session.task.inputs["text"])
            found = await self._judge.judge(session.scenario, task, changes, said.result(), answer)
        else:
            found = read_result(said.result())
        return verdict_of(found, changes, session)

    @asynccontextmanager
    async def _states(self, session: AwmSession, image: bytes):
        end = self._stages.place(image)
        try:
            yield States(session.playing.ready.start, end, self._moment)
        finally:
            end.unlink()

    def _place(self, task: Task) -> tuple[Scenario, Verifier]:
        key = self._arranged.keys.get(task.id)
        scenario = self._scenarios.get(str(task.inputs.get("scenario", "")))
        if key is None or scenario is None:
            raise InputError(f"world awm has no task {task.id}", hint="Take tasks from world.tasks(split)")
        return scenario, Verifier(str(key["code"]), bool(key["judged"]))


class AwmSession:
    """One try at one task, in a process of its own on a database of its own."""

    def __init__(
        self,
        world: AwmWorld,
        task: Task,
        scenario: Scenario,
        verifier: Verifier,
        playing: Playing,
        malformed: int = 0,
    ) -> None:
        self._world = world
        self.task = task
        self.scenario = scenario
        self.verifier = verifier
        self.playing = playing
        self.malformed = malformed
        self.errors = 0
        """Calls at which the program itself failed."""
        self._over = False

    @property
    def brief(self) -> Brief:
        about = self.scenario.description or self.scenario.title
        return Brief(f"{about}\n\n{CONDUCT}\n\n{self.task.inputs['text']}")

    @property
    def tools(self) -> Sequence[ToolSpec]:
        return [tool.spec for tool in self.playing.ready.tools.values()]

    async def call(self, name: str, arguments: dict[str, Json]) -> ToolResult:
        self._must_be_open()
        tool = self.playing.ready.tools.get(name)
        if tool is None:
            self.malformed += 1
            return unknown_tool(name, list(self.playing.ready.tools))
        problems = problems_of(arguments, tool.spec.parameters)
        if problems:
            self.malformed += 1
            return invalid_arguments(name, problems)
        try:
            call = tool.request(arguments)
        except UnicodeEncodeError:
            self.malformed += 1
            return invalid_arguments(name, ["a text holds half of a character"])
        reply = await self.playing.do(call)
        return self._result(name, reply.status, reply.body)

    def _result(self, name: str, status: int, body: str) -> ToolResult:
        if status == 422:
            self.malformed += 1
            return ToolResult(f"{name} was not called: {body}", ToolFault.INVALID_ARGUMENTS)
        if status >= 500:
            # What a program says of its own faults is not the agent's to read.
            self.errors += 1
            return ToolResult(f"{name} failed: internal error", ToolFault.REFUSED)
        return ToolResult(body, ToolFault.REFUSED if status >= 400 else None)

    async def fork(self) -> AwmSession:
        self._must_be_open()
        return await self._world.forked(self)

    async def judge(self, answer: str) -> Verdict:
        self._must_be_open()
        self._over = True
        return await self._world.verified(self, answer)

    async def close(self) -> None:
        self._over = True
        await self.playing.close()

    def _must_be_open(self) -> None:
        if self._over:
            raise SessionOver(f"this session of task {self.task.id} is over; open another")


def verdict_of(found: Found, changes: Changes, session: AwmSession) -> Verdict:
    passed = found.result is RewardType.COMPLETE
    soft = {RewardType.COMPLETE: 1.0, RewardType.INCOMPLETE: 0.1}.get(found.result, 0.0)
    shown = changes.text[:_SHOWN] or "(none)"
    reason = "nothing was changed" if not changes.count else "not complete"
    because = f" {found.reason}" if found.reason else ""
    facts: dict[str, Json] = {
        "malformed_calls": session.malformed,
        "program_errors": session.errors,
        "changes": changes.count,
        "difference": changes.text,
    }
    verdict = Verdict(passed, soft, "" if passed else f"{reason}:{because} Rows that differ: {shown}", facts)
    return msgspec.structs.replace(
        verdict, facts={**facts, FACT: str(reward_type(verdict, malformed=session.malformed))}
    )


def _listed(layout: Layout, admission: Admission, settings: AwmSettings) -> Iterator[Listed]:
    for name in layout.problems:
        if name in map(str, settings.scenarios):
            raise InputError(f"scenario {name}: {layout.problems[name][0]}")
    for scenario in layout.scenarios.values():
        admitted = admission.tasks_of(scenario)
        by_index = scenario.judged if settings.verifier is VerifierKind.JUDGED else scenario.coded
        for index in admitted:
            verifier = by_index.get(index)
            if verifier is not None:
                yield Listed(
                    {"scenario": scenario.name, "text": scenario.tasks[index]},
                    id=f"{scenario.name}/{index}",
                    kind=scenario.name,
                    key={"code": verifier.code, "judged": verifier.judged},
                )
