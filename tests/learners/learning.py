"""Trajectories to learn from and an optimizer that answers as told."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable, Sequence
from typing import Any

from whet.core import (
    End,
    ModelRef,
    ModelReply,
    ModelRequest,
    Policy,
    Priority,
    Purpose,
    Sampling,
    Skill,
    Split,
    Step,
    Task,
    Trajectory,
    Verdict,
    assistant,
    user,
)
from whet.learners.skill import SkillLearner, SkillSettings, UpdateMode
from whet.learners.skill.optimizer import Advisor, Optimizer, Prompts

STEP = Step(1, 1, 1, b"step")


class ScriptedOptimizer:
    """A model that remembers what it was asked."""

    def __init__(self, answer: Callable[[Purpose, ModelRequest], str | Awaitable[str]]) -> None:
        self.ref = ModelRef("scripted", "optimizer")
        self._answer = answer
        self.asked: list[tuple[Purpose, ModelRequest, bytes]] = []

    async def complete(
        self, request: ModelRequest, *, purpose: Purpose, salt: bytes = b"", priority: Priority = Priority.CRITICAL
    ) -> ModelReply:
        self.asked.append((purpose, request, salt))
        answer = self._answer(purpose, request)
        return ModelReply(answer if isinstance(answer, str) else await answer)

    def purposes(self) -> list[str]:
        return [purpose.value for purpose, _, _ in self.asked]

    def prompts(self, purpose: Purpose) -> list[str]:
        return [request.messages[0].text for asked, request, _ in self.asked if asked is purpose]


def advisor(model: ScriptedOptimizer, mode: UpdateMode = UpdateMode.PATCH) -> Advisor:
    return Advisor(model, Sampling(), Prompts(), mode)


def optimizer(model: ScriptedOptimizer) -> Optimizer:
    return advisor(model).at(STEP.key)


def learner(model: ScriptedOptimizer, settings: SkillSettings) -> SkillLearner:
    async def play(policy: Policy, tasks: Sequence[Task], sample: int) -> Sequence[Trajectory]:
        raise AssertionError("one proposal is not screened")

    return SkillLearner(advisor(model, settings.update), settings, play)


def trajectory(number: int, *, hard: bool) -> Trajectory:
    kind = f"kind{number % 3}"
    messages = (user(f"Task {number} of category {kind}"), assistant("I do not know."))
    verdict = Verdict(hard, float(hard), "" if hard else f"wrong: {kind}")
    return Trajectory("p", f"task-{number}", Split.TRAIN, 0, messages, "", End.ANSWERED, verdict, kind=kind)


def policy(text: str = "# Skill\n") -> Policy:
    return Policy(ModelRef("scripted", "agent"), skill=Skill.from_text(text))


def reflection(*contents: str, summary: str = "") -> str:
    answer: dict[str, Any] = {"patch": {"reasoning": "because", "edits": [edit(content) for content in contents]}}
    if summary:
        answer["failure_summary"] = [{"failure_type": summary}]
    return json.dumps(answer)


def merged(*contents: str) -> str:
    return json.dumps({"reasoning": "joined", "edits": [edit(content) for content in contents]})


def edit(content: str) -> dict[str, str]:
    return {"op": "append", "target": "", "content": content}
