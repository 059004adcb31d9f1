"""One place at the table: whoever connects has one, plays one episode at a time in it, and everything goes in turn.

A seat knows nothing of sockets. Whatever a world does to it, from an exception to never coming back, costs its own
episode and nothing else.
"""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import AsyncGenerator, Callable, Coroutine
from contextlib import asynccontextmanager, suppress
from typing import Any, TypeVar

import msgspec

from whet.core import Clock, Json, Session, Task, ToolResult, ToolSpec, Verdict, WhetError, World
from whet.serving.worlds.tasks import TaskBook
from whet.serving.worlds.wire import Code, Refusal, Reset, tame
from whet.worlds.calling import faults

T = TypeVar("T")


class Limits(msgspec.Struct, frozen=True):
    """What one server gives to those who connect."""

    sessions: int = 256
    """Most at once; whoever comes next is told that the server is full."""
    idle_seconds: float = 1800.0
    """A session that is not used for so long is ended."""
    call_seconds: float = 120.0
    """The longest that one call of a world may take; after that its episode is lost."""
    waiting: int = 16
    """Calls of one session that may wait for their turn."""
    frame_bytes: int = 1 << 20
    """The longest frame or request that is read."""


class Table(msgspec.Struct, frozen=True):
    """What all seats share."""

    world: World
    book: TaskBook
    limits: Limits
    clock: Clock
    count: Callable[[], int]
    """Numbers the resets that name no seed."""
    tell: Callable[[str], None]
    """Where the server's own side reads what nobody else may: faults of the world, in full."""


class Episode:
    """One session of the world, from its reset to its verdict."""

    def __init__(self, name: str, task: Task, seed: int, session: Session, *, deferred: bool) -> None:
        self.name = name
        self.task = task
        self.seed = seed
        self.session = session
        self.deferred = deferred
        self.token = secrets.token_urlsafe(24)
        """Lets an agent reach this episode's tools, and nothing else."""
        self.steps = 0
        self.ended = False
        """The world said that it is over; only a verdict is missing."""
        self.verdict: Verdict | None = None
        self.lost = ""
        """Why there will be no verdict."""

    @property
    def done(self) -> bool:
        return self.verdict is not None or bool(self.lost)


class Seat:
    def __init__(self, name: str, table: Table) -> None:
        self.name = name
        self.episode: Episode | None = None
        self.used = table.clock.now()
        self.attached = False
        """Whether a socket uses it; a second one may not."""
        self.on_gone: Callable[[], None] = _nothing
        """Called once when the seat is taken away."""
        self._table = table
        self._turn = asyncio.Lock()
        self._waiting = 0
        self._gone = ""

    @property
    def idle_seconds(self) -> float:
        """How long nothing has happened here; a call under way is something."""
        return 0.0 if self._turn.locked() else self._table.clock.now() - self.used

    async def reset(self, reset: Reset) -> Episode:
        async with self._in_turn():
            return await self._begin(reset)

    async def tools(self) -> tuple[ToolSpec, ...]:
        async with self._in_turn():
            return tuple((await self._playing()).session.tools)

    async def call(self, name: str, arguments: dict[str, Json], *, token: str = "") -> ToolResult:
        """A call of a tool. With a token it is an agent's, which cannot outlive its episode nor begin one."""
        async with self._in_turn():
            if token:
                self.check_token(token)
            episode = await self._playing()
            if episode.ended:
                raise Refusal(Code.SESSION_ERROR, "the episode is over")
            episode.steps += 1
            work = episode.session.call(name, arguments)
            answer = await self._at_work(work, episode.task, f"the tool {name[:100]}", episode)
            if answer.ends:
                episode.ended = True
                if not episode.deferred:
                    await self._judge(episode, "")
            return answer

    async def judge(self, answer: str) -> Episode:
        """Ends the episode; its verdict is in what is returned."""
        async with self._in_turn():
            episode = await self._playing()
            await self._judge(episode, answer)
            return episode

    def state(self) -> dict[str, Json]:
        episode = self.episode
        if episode is None:
            return {"episode_id": None, "step_count": 0}
        return {
            "episode_id": episode.name,
            "step_count": episode.steps,
            "task_id": episode.task.id,
            "split": episode.task.split.value,
            "done": episode.done,
            "lost": episode.lost,
            "verdict": None if episode.verdict is None else as_facts(episode.verdict),
        }

    def check_token(self, token: str) -> Episode:
        if self.episode is None or self.episode.token != token or self.episode.done:
            raise Refusal(Code.SESSION_ERROR, "the episode is over")
        return self.episode

    def dismiss(self, why: str) -> None:
        """From now on no call begins here."""
        if not self._gone:
            self._gone = why
            self.on_gone()

    async def leave(self, why: str) -> None:
        """Lets go of the world's session, after the call that is under way."""
        self.dismiss(why)
        async with self._turn:
            await self._drop()

    async def _begin(self, reset: Reset) -> Episode:
        table = self._table
        task, seed = table.book.chosen(reset, table.count() if reset.seed is None else 0)
        await self._drop()
        session = await self._at_work(table.world.open(task, seed), task, "open")
        name = reset.episode_id or secrets.token_hex(8)
        self.episode = Episode(name, task, seed, session, deferred=reset.deferred)
        return self.episode

    async def _playing(self) -> Episode:
        """The episode that is under way; whoever has not asked for one gets the next."""
        episode = self.episode or await self._begin(Reset())
        if episode.lost:
            raise Refusal(Code.EXECUTION_ERROR, f"the episode is lost: {episode.lost}")
        if episode.verdict is not None:
            raise Refusal(Code.SESSION_ERROR, "the episode is over")
        return episode

    async def _judge(self, episode: Episode, answer: str) -> None:
        verdict = await self._at_work(episode.session.judge(answer), episode.task, "judge", episode)
        if not verdict.scored:
            self._table.tell(f"task {episode.task.id} could not be judged: {verdict.feedback or 'no reason given'}")
            episode.lost = "it could not be judged"
            raise Refusal(Code.EXECUTION_ERROR, "the episode is lost: it could not be judged")
        episode.verdict = verdict
        await self._close(episode)

    async def _drop(self) -> None:
        if self.episode is not None:
            episode, self.episode = self.episode, None
            await self._close(episode)

    async def _close(self, episode: Episode) -> None:
        # What goes wrong has been told to the server's side by then; nobody waits for a session that is closed.
        with suppress(Refusal):
            await self._at_work(episode.session.close(), episode.task, "close")

    @asynccontextmanager
    async def _in_turn(self) -> AsyncGenerator[None]:
        if self._waiting > self._table.limits.waiting:
            raise Refusal(Code.EXECUTION_ERROR, f"{self._waiting} calls of this session are waiting already")
        self._waiting += 1
        try:
            async with self._turn:
                if self._gone:
                    raise Refusal(Code.SESSION_ERROR, f"the session has ended: {self._gone}")
                yield
        finally:
            self._waiting -= 1
            self.used = self._table.clock.now()

    async def _at_work(self, work: Coroutine[Any, Any, T], task: Task, doing: str, episode: Episode | None = None) -> T:
        """Whatever the world does is done in here: what goes wrong is told in full to us, in short to the caller."""
        table = self._table
        try:
            async with asyncio.timeout(table.limits.call_seconds):
                with faults(table.world.name, doing, task.id):
                    return await work
        except TimeoutError:
            short = f"the world took longer than {table.limits.call_seconds:g} s"
            table.tell(f"world {table.world.name}, task {task.id}: {doing} took longer than that")
        except WhetError as fault:
            name = secrets.token_hex(3)
            short = f"the world broke (fault {name} in the server's log)"
            table.tell(f"fault {name}: {fault}")
        if episode is not None:
            episode.lost = short
            await self._close(episode)
        raise Refusal(Code.EXECUTION_ERROR, short)


def as_facts(verdict: Verdict) -> dict[str, Json]:
    """A verdict for the control plane; numbers that JSON has no form for are told as text."""
    return {
        "hard": verdict.hard,
        "soft": verdict.soft,
        "feedback": verdict.feedback,
        "facts": tame(verdict.facts),
        "reference": verdict.reference,
    }


def _nothing() -> None:
    pass


def begun(episode: Episode, agent_url: str) -> tuple[dict[str, Any], dict[str, Json]]:
    """What a reset shows: the brief for the agent, and what only the trainer is told."""
    brief = episode.session.brief
    seen: dict[str, Any] = {"brief": brief.text}
    if brief.images:
        seen["images"] = brief.images
    if brief.answer_schema is not None:
        seen["answer_schema"] = brief.answer_schema
    about: dict[str, Json] = {
        "episode_id": episode.name,
        "task_id": episode.task.id,
        "split": episode.task.split.value,
        "seed": episode.seed,
        # The tool clients of openenv-core keep nothing of a reset but this.
        "brief": brief.text,
    }
    if agent_url:
        about["agent_url"] = agent_url
    return seen, about
