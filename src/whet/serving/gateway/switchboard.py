"""Follows the registry: what is activated there is made ready, and then the table is swapped.

Requests under way keep the route that they began with. What cannot be made ready is an error to whoever asks for it:
nothing answers in its place.
"""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import Callable, Iterable, Sequence

from whet.core import Clock, Policy, StoreBusy, WhetError
from whet.registry import Record, Registry, State
from whet.serving.gateway.refusal import Refusal
from whet.serving.gateway.routes import BASE, Chosen, Named, Place, Route, Table, parse
from whet.serving.gateway.upstreams import Upstream

LOOK_SECONDS = 0.2
_RETRY_SECONDS = 5.0
_MOST_SPARE = 32
"""Records that are kept ready though they are active nowhere: asked for by id, or what a rollback goes back to."""


class Switchboard:
    def __init__(
        self, registry: Registry, upstream: Upstream, bare: Policy, clock: Clock, tell: Callable[[str], None]
    ) -> None:
        """`bare` is the base model as it is asked without anything of ours."""
        self._registry = registry
        self._upstream = upstream
        self._clock = clock
        self._tell = tell
        self._seen: int | None = None
        self._wanted: dict[Place, str] = {}
        self._ready: OrderedDict[str, Route] = OrderedDict()
        self._worlds: frozenset[str] = frozenset()
        self._preparing: dict[str, asyncio.Task[Route]] = {}
        self._tried: dict[str, float] = {}
        self.table = Table(Route(upstream.base.name, BASE, bare))
        self.trouble = ""
        """What is wrong with the registry itself."""

    @property
    def ready(self) -> frozenset[str]:
        """Records that can answer at once."""
        return frozenset(record for record, route in self._ready.items() if not route.trouble)

    async def start(self) -> None:
        """Everything that is active is ready, or known to be in trouble, when this returns.

        Raises a WhetError where the base model itself cannot answer.
        """
        await self._upstream.prepare(self.table.base.policy, None)
        self._look()
        while self._preparing:
            await asyncio.wait(self._preparing.values())

    async def follow(self) -> None:
        """For ever."""
        while True:
            await self._clock.sleep(LOOK_SECONDS)
            self._look()

    async def close(self) -> None:
        for task in (tasks := list(self._preparing.values())):
            task.cancel()
        if tasks:
            await asyncio.wait(tasks)

    async def choose(self, model: str, key: str, canary: float) -> Chosen:
        """Who answers to this name. Raises Refusal."""
        named = parse(model)
        chosen = self.table.choose(named, key, canary)
        if chosen is None:
            chosen = Chosen(await self._by_record(named), "")
        if chosen.route.trouble:
            message = f"{model[:120]} is record {chosen.route.record}, which cannot be served: {chosen.route.trouble}"
            raise Refusal(503, message, code="policy_unusable", retry_after=_RETRY_SECONDS)
        return chosen

    def _look(self) -> None:
        try:
            # First the number: what changes while the rest is read is then seen the next time.
            version = self._registry.version()
            if version != self._seen:
                self._read()
                self._seen = version
            self.trouble = ""
        except WhetError as error:
            if str(error) != self.trouble and not isinstance(error, StoreBusy):
                self._tell(f"the registry cannot be read: {error}")
            self.trouble = str(error)
            return
        self._try_again()

    def _read(self) -> None:
        base = self._upstream.base.fingerprint
        active = [one for one in self._registry.active() if one.base == base]
        records = [record for record in self._registry.records() if record.base.fingerprint == base]
        self._worlds = frozenset(record.world for record in records)
        self._wanted = {Place(one.world, one.channel): one.record for one in active}
        wanted = {*self._wanted.values(), *_newest(records)}
        usable = {record.id for record in records if record.state is not State.REJECTED}
        for record in [record for record, route in self._ready.items() if record not in usable or route.trouble]:
            # It was rejected or deleted since, or may be whole by now.
            del self._ready[record]
        self._forget_some()
        for record in wanted - self._ready.keys():
            self._prepare(record)
        self._swap()

    def _prepare(self, record: str) -> asyncio.Task[Route]:
        task = self._preparing.get(record)
        if task is None:
            task = self._preparing[record] = asyncio.create_task(self._made_ready(record))
            task.add_done_callback(lambda done: self._prepared(record, done))
        return task

    async def _made_ready(self, id: str) -> Route:
        record = self._registry.record(id)
        try:
            policy, adapter = self._registry.policy(id), self._registry.adapter_file(id)
        except WhetError as error:
            return Route(record.world, id, Policy(self.table.base.policy.model), trouble=str(error))
        try:
            await self._upstream.prepare(policy, adapter)
        except WhetError as error:
            return Route(record.world, id, policy, adapter, trouble=str(error))
        return Route(record.world, id, policy, adapter)

    def _prepared(self, record: str, task: asyncio.Task[Route]) -> None:
        self._preparing.pop(record, None)
        self._tried[record] = self._clock.now()
        if task.cancelled():
            return
        if error := task.exception():
            self._tell(f"record {record} could not be made ready: {type(error).__name__}: {error}")
            return
        route = task.result()
        before = self._ready.get(record)
        self._ready[record] = route
        if route.trouble and (before is None or before.trouble != route.trouble):
            self._tell(f"record {record} for {route.world} cannot be served: {route.trouble}")
        self._swap()

    def _try_again(self) -> None:
        """A server that was away may be back."""
        now = self._clock.now()
        for record in set(self._wanted.values()):
            route = self._ready.get(record)
            failed = route is None or bool(route.trouble)
            if failed and record not in self._preparing and now - self._tried.get(record, now) >= _RETRY_SECONDS:
                self._prepare(record)

    def _swap(self) -> None:
        """Each place with what is wanted there; until that is ready, with what was there before."""
        before = self.table
        places: dict[Place, Route] = {}
        for place, record in self._wanted.items():
            route = self._ready.get(record) or before.places.get(place)
            places[place] = route or Route(place.world, record, before.base.policy, trouble="it is being loaded")
        self.table = Table(before.base, places, self._worlds)
        for place, route in places.items():
            was = before.places.get(place)
            if not route.trouble and (was is None or was.record != route.record):
                self._tell(f"{place.world} on {place.channel}: record {route.record} answers")

    async def _by_record(self, named: Named) -> Route:
        record = self._found(named)
        route = self._ready.get(record.id)
        if route is None:
            # Cancelling one who asks must not cancel it for the others.
            route = await asyncio.shield(self._prepare(record.id))
            self._forget_some()
        else:
            self._ready.move_to_end(record.id)
        return route

    def _found(self, named: Named) -> Record:
        unknown = Refusal(404, self._unknown(named), code="model_not_found", param="model")
        if not named.suffix or named.world not in self._worlds:
            raise unknown
        try:
            record = self._registry.record(named.suffix)
        except WhetError as error:
            raise unknown from error
        if record.world != named.world:
            raise unknown
        if record.base.fingerprint != self._upstream.base.fingerprint:
            raise Refusal(404, f"record {record.id} is for another base model: {record.base.name}", param="model")
        if record.state is State.REJECTED:
            raise Refusal(404, f"record {record.id} was rejected: {record.rejected}", param="model")
        return record

    def _unknown(self, named: Named) -> str:
        """What was asked for, and what there is."""
        asked = f"{named.world}@{named.suffix}" if named.suffix else named.world
        if named.world in self._worlds and not named.suffix:
            return f"nothing is active for {asked[:80]} on this base model: `whet registry activate` makes it so"
        names = ", ".join(name for name, _ in self.table.names())
        return f"there is no model {asked[:120]!r}; there are: {names[:400]}"

    def _forget_some(self) -> None:
        wanted = set(self._wanted.values())
        spare = [record for record in self._ready if record not in wanted]
        for record in spare[: max(0, len(spare) - _MOST_SPARE)]:
            del self._ready[record]


def _newest(records: Sequence[Record]) -> Iterable[str]:
    """Of each world the candidate that came last: it is likely to be activated next, and loading takes its time."""
    latest = {record.world: record for record in records if record.state is not State.REJECTED}
    return (record.id for record in latest.values() if record.state is State.CANDIDATE)
