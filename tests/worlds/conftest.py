"""Fakes of the worlds' tests: a folder to write task files in, and a judge that says what it is told to."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import settings

from whet.core import ModelRef, ModelReply, ModelRequest, Priority, Purpose, Split, Task, Verdict, World
from whet.worlds import load_world

# A machine under load may take long over one example; what is promised here is never about time.
settings.register_profile("worlds", deadline=None)
settings.load_profile("worlds")


class ScriptedJudge:
    """Answers with its replies in order, and keeps what it was asked."""

    def __init__(self, *replies: str) -> None:
        self.ref = ModelRef("scripted", "judge")
        self.replies = list(replies)
        self.asked: list[tuple[ModelRequest, Purpose, bytes]] = []

    async def complete(
        self,
        request: ModelRequest,
        *,
        purpose: Purpose,
        salt: bytes = b"",
        priority: Priority = Priority.CRITICAL,
    ) -> ModelReply:
        self.asked.append((request, purpose, salt))
        return ModelReply(self.replies.pop(0))


class Project:
    """A folder with task files and worlds."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def write(self, name: str, content: str | bytes) -> None:
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content.encode() if isinstance(content, str) else content)

    def rows(self, name: str, *rows: dict[str, Any]) -> None:
        self.write(name, b"".join(msgspec.json.encode(row) + b"\n" for row in rows))

    def load(self, use: str = "jsonl", judge: Any = None, **settings: Any) -> World:
        return load_world(use, settings, base_dir=self.folder, judge=judge)

    def questions(self, *rows: dict[str, Any], judge: Any = None, **settings: Any) -> World:
        """A jsonl world whose rows are all training tasks."""
        self.rows("train.jsonl", *rows)
        return self.load(train="train.jsonl", judge=judge, **settings)


@pytest.fixture
def project(tmp_path: Path) -> Project:
    return Project(tmp_path)


async def judged(world: World, answer: str, task: Task | None = None) -> Verdict:
    session = await world.open(task or world.tasks(Split.TRAIN)[0], seed=1)
    try:
        return await session.judge(answer)
    finally:
        await session.close()


@pytest.fixture
def judge_answer() -> Callable[..., Any]:
    return judged


@pytest.fixture
def scripted_judge() -> Callable[..., ScriptedJudge]:
    return ScriptedJudge
