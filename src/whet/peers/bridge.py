"""What a peer's process can reach: plays of the project's tasks, and the optimizer's model."""

from __future__ import annotations

import asyncio
import secrets
from collections import Counter
from types import TracebackType
from typing import Any, Self

import msgspec
from aiohttp import web

from whet.core import (
    Message,
    Model,
    ModelRequest,
    Purpose,
    Sampling,
    Skill,
    Speaker,
    Split,
    Task,
    Trajectory,
    WhetError,
    cause_of,
    content_key,
    seed_of,
)
from whet.training import Workshop

_LARGEST = 64 * 1024 * 1024


class PlayRequest(msgspec.Struct, frozen=True):
    skill: str
    tasks: list[str]


class _Said(msgspec.Struct, frozen=True):
    role: str
    content: str


class ChatRequest(msgspec.Struct, frozen=True):
    """The part of a chat completion that a peer may decide: which model answers is the project's business."""

    messages: list[_Said]


class Bridge:
    """`async with Bridge(...) as bridge:` serves on a free port of 127.0.0.1, below a path that only its peer knows."""

    def __init__(self, workshop: Workshop, optimizer: Model, sampling: Sampling) -> None:
        self._workshop = workshop
        self._optimizer = optimizer
        self._sampling = sampling
        project = workshop.project
        self._tasks: dict[str, Task] = {
            task.id: task for split in (Split.TRAIN, Split.SELECTION) for task in project.tasks(split)
        }
        self._asked: Counter[bytes] = Counter()
        self._runner: web.AppRunner | None = None
        self._path = f"/{secrets.token_urlsafe(16)}"
        self.url = ""
        self.failure: WhetError | None = None
        """The first error of ours that the peer was refused with: it says more than what the peer makes of it."""

    async def __aenter__(self) -> Self:
        app = web.Application(client_max_size=_LARGEST)
        app.router.add_post(f"{self._path}/play", self._play)
        app.router.add_post(f"{self._path}/v1/chat/completions", self._chat)
        app.router.add_get(f"{self._path}/spent", self._spent)
        self._runner = web.AppRunner(app, access_log=None, shutdown_timeout=0.0)
        await self._runner.setup()
        await web.TCPSite(self._runner, "127.0.0.1", 0).start()
        self.url = f"http://127.0.0.1:{self._runner.addresses[0][1]}{self._path}"
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._runner is not None:
            await self._runner.cleanup()

    async def _spent(self, _: web.Request) -> web.Response:
        return _answer({"calls": self._workshop.ledger.calls})

    async def _play(self, http: web.Request) -> web.Response:
        try:
            asked = msgspec.json.decode(await http.read(), type=PlayRequest)
            tasks = [self._tasks[name] for name in asked.tasks]
        except (msgspec.DecodeError, KeyError) as error:
            return _refusal(f"this cannot be played: {error}", status=400)
        policy = self._workshop.project.start.with_skill(Skill.from_text(asked.skill))
        samples = [self._again(policy.fingerprint, task.id) for task in tasks]
        engine = self._workshop.engine
        try:
            async with asyncio.TaskGroup() as playing:
                plays = [
                    playing.create_task(engine.play(policy, task, sample=sample))
                    for task, sample in zip(tasks, samples, strict=True)
                ]
        except BaseExceptionGroup as group:
            return self._refused(cause_of(group))
        return _answer([_shown(play.result()) for play in plays])

    async def _chat(self, http: web.Request) -> web.Response:
        try:
            asked = msgspec.json.decode(await http.read(), type=ChatRequest)
            messages = tuple(Message(Speaker(one.role), one.content) for one in asked.messages)
        except (msgspec.DecodeError, ValueError) as error:
            return _refusal(f"this cannot be asked: {error}", status=400)
        salt = content_key("peer", messages, self._again(messages))
        request = ModelRequest(messages, sampling=self._sampling, seed=seed_of(salt))
        try:
            reply = await self._optimizer.complete(request, purpose=Purpose.PEER, salt=salt)
        except WhetError as error:
            return self._refused(error)
        usage = reply.usage
        return _answer(
            {
                "id": salt.hex(),
                "object": "chat.completion",
                "created": 0,
                "model": str(self._optimizer.ref),
                "choices": [
                    {
                        "index": 0,
                        "message": {"role": "assistant", "content": reply.text},
                        "finish_reason": "length" if reply.finish == "length" else "stop",
                    }
                ],
                "usage": {
                    "prompt_tokens": usage.input_tokens if usage else 0,
                    "completion_tokens": usage.output_tokens if usage else 0,
                    "total_tokens": usage.input_tokens + usage.output_tokens if usage else 0,
                },
            }
        )

    def _again(self, *asked: Any) -> int:
        """How often the same was asked before: a peer that plays or asks again wants to see chance, not memory."""
        key = content_key("asked", *asked)
        self._asked[key] += 1
        return self._asked[key] - 1

    def _refused(self, error: BaseException) -> web.Response:
        if not isinstance(error, WhetError):
            raise error
        self.failure = self.failure or error
        return _refusal(str(error), status=402)


def _shown(played: Trajectory) -> dict[str, Any]:
    verdict = played.verdict
    return {
        "task": played.task,
        "kind": played.kind,
        "hard": int(played.hard),
        "soft": played.soft,
        "answer": played.answer,
        "feedback": verdict.feedback if verdict else "",
        "reference": verdict.reference if verdict else "",
        "conversation": [{"role": str(said.speaker), "content": said.text} for said in played.messages],
    }


def _answer(body: Any) -> web.Response:
    return web.Response(body=msgspec.json.encode(body), content_type="application/json")


def _refusal(message: str, *, status: int) -> web.Response:
    body = msgspec.json.encode({"error": {"message": message}})
    return web.Response(body=body, status=status, content_type="application/json")
