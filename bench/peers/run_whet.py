"""whet: one episode a question, judged by its world and written to the store."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from measuring import KEY, MODEL, SYSTEM_PROMPT, Asked, Question, read_arguments, report

from whet.core import (
    Brief,
    Json,
    ModelRef,
    Policy,
    Skill,
    Split,
    SystemClock,
    Task,
    ToolFault,
    ToolResult,
    ToolSpec,
    Trajectory,
    Verdict,
    WorldFault,
    fingerprint,
)
from whet.models import Caps, Ledger, Models, Prices, RoleSettings
from whet.rollout import Engine
from whet.store import open_run
from whet.training import Stage
from whet.training.judging import play_all


class OneAnswer:
    """A session of one question: no tools, the answer compared as it stands."""

    def __init__(self, text: str, key: str) -> None:
        self.brief = Brief(text)
        self.tools: Sequence[ToolSpec] = ()
        self.key = key

    async def call(self, name: str, arguments: dict[str, Json]) -> ToolResult:
        return ToolResult(f"there is no tool called {name}", fault=ToolFault.UNKNOWN_TOOL)

    async def judge(self, answer: str) -> Verdict:
        right = answer.strip() == self.key
        return Verdict(hard=right, soft=float(right), reference=self.key)

    async def close(self) -> None:
        return None


class Questions:
    """The questions as a world; the answers stay on its side."""

    name = "next_number"

    def __init__(self, questions: Sequence[Question]) -> None:
        self.keys = {each.text: each.answer for each in questions}
        self.listed = [Task(each.text, Split.TRAIN, {"question": each.text}) for each in questions]
        self.fingerprint = fingerprint("world", self.name, sorted(self.keys.items()))

    def tasks(self, split: Split) -> Sequence[Task]:
        return [task for task in self.listed if task.split is split]

    async def open(self, task: Task, seed: int) -> OneAnswer:
        if task.id not in self.keys:
            raise WorldFault(f"{task.id!r} is not a question of this world")
        return OneAnswer(task.id, self.keys[task.id])


def policy() -> Policy:
    return Policy(model=ModelRef(provider="openai", name=MODEL), skill=Skill.from_text(SYSTEM_PROMPT))


class Workplace:
    """Store, model and ledger, opened once and used for the warm-up and for what is measured."""

    def __init__(self, asked: Asked) -> None:
        self.asked = asked
        self.policy = policy()
        self.clock = SystemClock()

    async def open(self) -> None:
        folder = self.asked.folder
        self.store = open_run(folder / "run.db", self.clock)
        ledger = Ledger(Caps(), self.store.spending(), self.clock)
        self.models = Models(environ={"OPENAI_API_KEY": KEY}, base_dir=folder, prices=Prices(), clock=self.clock)
        role = RoleSettings(model=f"openai/{MODEL}", base_url=self.asked.base_url, max_in_flight=self.asked.in_flight)
        self.model = self.models.open("target", role, self.store, ledger)

    async def play(self, world: Questions, tasks: Sequence[Task]) -> Sequence[Trajectory]:
        engine = Engine(world, self.model, self.store, self.clock, seed=0, max_episodes=self.asked.in_flight)
        return await play_all(engine, self.policy, tasks, Stage("play", len(tasks)))

    async def close(self) -> None:
        await self.models.aclose()
        await self.store.aclose()


async def evaluate(engine: Workplace, questions: Sequence[Question]) -> int:
    world = Questions(questions)
    played = await engine.play(world, world.tasks(Split.TRAIN))
    return sum(each.verdict is not None and each.verdict.hard for each in played)


def main() -> None:
    asked = read_arguments()
    with asyncio.Runner() as runner:
        engine = Workplace(asked)
        runner.run(engine.open())
        report(
            asked,
            name="whet",
            distribution="whet",
            evaluate=lambda questions: runner.run(evaluate(engine, questions)),
        )
        runner.run(engine.close())


if __name__ == "__main__":
    main()
