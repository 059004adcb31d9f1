"""Plays episodes, many at once, each at most once: a rollout that is in the store is not played again."""

from __future__ import annotations

from whet.core import (
    Clock,
    Failure,
    FailureKind,
    Model,
    ModelReply,
    ModelRequest,
    Policy,
    Priority,
    Purpose,
    Task,
    Trajectory,
    Verdict,
    World,
    WorldFault,
    content_key,
    seed_from,
)
from whet.models import Once, Places
from whet.rollout.episode import Ask, Episode
from whet.store import FailureRow, PolicyRow, RolloutRow, RunStore

TRIES = 3
"""How often a world may break at one rollout before the run stops."""


class Engine:
    """Binds a world, the model that acts in it and the store that remembers."""

    def __init__(
        self, world: World, model: Model, store: RunStore, clock: Clock, *, seed: int, max_episodes: int = 256
    ) -> None:
        self._world = world
        self._model = model
        self._store = store
        self._clock = clock
        self._seed = seed
        self.width = max_episodes
        """Episodes under way at once at most."""
        self._places = Places(max_episodes, clock)
        self._playing: Once[Trajectory] = Once()
        self._kept_policies: set[str] = set()
        self.finished = 0

    async def play(
        self,
        policy: Policy,
        task: Task,
        *,
        sample: int = 0,
        purpose: Purpose = Purpose.ROLLOUT,
        priority: Priority = Priority.CRITICAL,
    ) -> Trajectory:
        """One try at `task`, with a verdict. Raises if the model or the world keeps failing; never scores a failure."""
        key = content_key(
            "rollout", self._world.fingerprint, task.id, task.fingerprint, policy.fingerprint, sample, self._seed
        )
        known = self._store.rollout(key)
        if known is not None:
            return known
        return await self._playing.do(key, lambda: self._in_turn(key, policy, task, sample, purpose, priority))

    async def _in_turn(
        self, key: bytes, policy: Policy, task: Task, sample: int, purpose: Purpose, priority: Priority
    ) -> Trajectory:
        await self._places.take(priority)
        try:
            trajectory = await self._try(key, policy, task, sample, purpose, priority)
        finally:
            self._places.give_back()
        self.finished += 1
        return trajectory

    async def _try(
        self, key: bytes, policy: Policy, task: Task, sample: int, purpose: Purpose, priority: Priority
    ) -> Trajectory:
        async def ask(request: ModelRequest, salt: bytes) -> ModelReply:
            return await self._model.complete(request, purpose=purpose, salt=salt, priority=priority)

        for attempt in range(1, TRIES + 1):
            at, started = self._clock.wall(), self._clock.now()
            try:
                trajectory = await self._episode(key, policy, task, sample, ask)
            except WorldFault as fault:
                failure = Failure(FailureKind.WORLD, str(fault))
                await self._store.write(FailureRow(key, failure.kind, task.id, failure.message, at))
                if attempt == TRIES:
                    raise WorldFault(
                        f"{self._world.name} broke {TRIES} times at task {task.id}: {fault.message}",
                        hint=fault.hint or "See `whet world check`; the same command goes on.",
                    ) from fault
                continue
            self._keep(policy, RolloutRow(key, trajectory, at, self._clock.now() - started))
            return trajectory
        raise AssertionError("the last try returns or raises")

    def _keep(self, policy: Policy, row: RolloutRow) -> None:
        """Not waited for: its calls are stored, so a kill in the next moments costs no more than judging again."""
        if policy.fingerprint not in self._kept_policies:
            self._kept_policies.add(policy.fingerprint)
            self._store.add(PolicyRow(policy))
        self._store.add(row)

    async def _episode(self, key: bytes, policy: Policy, task: Task, sample: int, ask: Ask) -> Trajectory:
        # The same task and sample meet the same chance whoever plays, so two policies differ by what they do.
        session = await self._world.open(task, seed_from(task.fingerprint, sample, self._seed))
        try:
            episode = Episode(policy, session, key)
            end = await episode.play(ask)
            verdict = await session.judge(episode.answer)
        finally:
            await session.close()
        _require_scored(verdict, task)
        return Trajectory(
            policy=policy.fingerprint,
            task=task.id,
            split=task.split,
            sample=sample,
            messages=episode.messages,
            answer=episode.answer,
            end=end,
            verdict=verdict,
            usage=episode.usage,
            turns=episode.turns,
            tool_faults=episode.tool_faults,
            kind=task.kind,
        )


def _require_scored(verdict: Verdict, task: Task) -> None:
    if not verdict.scored:
        raise WorldFault(f"task {task.id} could not be judged: {verdict.feedback or 'no reason given'}")
