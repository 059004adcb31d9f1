"""The model that everything else calls: each answer is looked up first, paid for once, and kept.

Order of a call: known? → a place at the endpoint → the ledger's grant → (under a cap, a row that it is open) → send →
the row of its answer, committed → the ledger settled. A kill between any two of these loses no stored answer and lets
no spent money be forgotten.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Protocol

import msgspec

from whet.core import (
    BadReply,
    Clock,
    CredentialsError,
    EndpointBusy,
    EndpointError,
    EndpointTimeout,
    EndpointUnreachable,
    ModelRef,
    ModelReply,
    ModelRequest,
    Nanodollars,
    Priority,
    Purpose,
    Usage,
    content_key,
    seed_from,
)
from whet.models.lateness import Lateness
from whet.models.ledger import Cost, Grant, Ledger, believable, input_bound
from whet.models.limits import Places
from whet.models.once import Once
from whet.models.race import Race
from whet.models.roles import CallSettings
from whet.store import AttemptRow, AttemptStatus, CallRow, RunStore


class Sender(Protocol):
    """One sending of one request, without retries or memory."""

    async def send(self, request: ModelRequest, timeout: float, headers: dict[str, str]) -> ModelReply: ...

    async def aclose(self) -> None: ...


class RecordedModel:
    """See the module's text. One instance a role."""

    def __init__(
        self,
        role: str,
        ref: ModelRef,
        sender: Sender,
        *,
        store: RunStore,
        ledger: Ledger,
        places: Places,
        clock: Clock,
        price: Callable[[Usage], Nanodollars],
        settings: CallSettings = CallSettings(),  # noqa: B008 (frozen)
        keep_requests: frozenset[Purpose] = frozenset(Purpose) - {Purpose.ROLLOUT, Purpose.ASSESS},
    ) -> None:
        self.role = role
        self._ref = ref
        self._sender = sender
        self._store = store
        self._ledger = ledger
        self._places = places
        self._clock = clock
        self._price = price
        self._settings = settings
        self._keep_requests = keep_requests
        self._lateness = Lateness()
        self._asked: Once[ModelReply] = Once()

    @property
    def ref(self) -> ModelRef:
        return self._ref

    async def complete(
        self,
        request: ModelRequest,
        *,
        purpose: Purpose,
        salt: bytes = b"",
        priority: Priority = Priority.CRITICAL,
    ) -> ModelReply:
        key = content_key("call", self._ref.provider, self._ref.name, request, salt)
        known = self._store.reply(key)
        if known is not None:
            return known
        return await self._asked.do(key, lambda: self._persist(_Call(key, request, purpose, priority)))

    async def aclose(self) -> None:
        await self._sender.aclose()

    async def _persist(self, call: _Call) -> ModelReply:
        """Try until answered, or until trying has not helped for long enough."""
        for retry in range(self._settings.retries + 1):
            race = Race(self._clock, self._patience(call), lambda: self._second(call))
            try:
                return await race.run(self._first(call, race.sent))
            except EndpointError as error:
                if not error.retryable or retry == self._settings.retries:
                    raise
                await self._clock.sleep(self._pause(call.key, retry, error.retry_after))
        raise AssertionError("the last retry returns or raises")

    def _patience(self, call: _Call) -> float | None:
        return self._lateness.patience(call.purpose) if self._settings.send_late_again else None

    async def _first(self, call: _Call, sent: Callable[[], None]) -> ModelReply:
        await self._places.take(call.priority)
        try:
            grant = await self._ledger.reserve(self._worst(call))
            return await self._send(call, grant, sent)
        finally:
            self._places.give_back()

    async def _second(self, call: _Call) -> ModelReply | None:
        """A late call once more, if that keeps nobody else waiting."""
        if not self._places.free or not self._lateness.allow_second():
            return None
        await self._places.take(call.priority)
        try:
            grant = self._ledger.try_reserve(self._worst(call))
            return None if grant is None else await self._send(call, grant, _nothing)
        finally:
            self._places.give_back()

    async def _send(self, call: _Call, grant: Grant, sent: Callable[[], None]) -> ModelReply:
        at, started = self._clock.wall(), self._clock.now()

        def row(status: AttemptStatus, cost: Cost, seconds: float, note: str = "") -> AttemptRow:
            return AttemptRow(
                grant.attempt,
                call.key,
                self.role,
                call.purpose,
                status,
                cost.tokens,
                cost.nanodollars,
                at,
                seconds,
                note,
            )

        spent = grant.worst
        try:
            if self._ledger.caps.any:
                await self._store.write(row(AttemptStatus.OPEN, spent, 0.0))
            sent()
            reply = await self._sender.send(call.request, self._timeout(), self._headers(call))
            seconds = self._clock.now() - started
            self._places.answered(seconds)
            self._lateness.answered(call.purpose, seconds)
            reply, spent = self._book(call, reply)
            done = row(AttemptStatus.ANSWERED, spent, seconds)
            if call.reply is None:
                call.reply, call.cost = reply, spent
                await self._store.write(self._answer(call, reply), done)
            else:
                await self._store.write(msgspec.structs.replace(done, status=AttemptStatus.ABANDONED))
            return call.reply
        except (EndpointError, CredentialsError) as error:
            if isinstance(error, EndpointBusy | EndpointTimeout):
                self._places.pushed_back(error.retry_after)
            spent = grant.worst if _may_have_worked(error) else Cost()
            self._store.add(row(AttemptStatus.FAILED, spent, self._clock.now() - started, error.message))
            raise
        except asyncio.CancelledError:
            # Overtaken: it will have cost about what the other cost. Broken off: nobody knows, so the worst.
            spent = grant.worst if call.reply is None else call.cost
            self._store.add(row(AttemptStatus.ABANDONED, spent, self._clock.now() - started))
            raise
        finally:
            self._ledger.settle(grant, spent)

    def _book(self, call: _Call, reply: ModelReply) -> tuple[ModelReply, Cost]:
        usage, doubted = believable(reply.usage, call.most_in, call.request.sampling.max_tokens, reply)
        self._ledger.doubted += doubted
        cost = Cost(usage.input_tokens + usage.output_tokens, self._price(usage))
        return reply if usage is reply.usage else msgspec.structs.replace(reply, usage=usage), cost

    def _answer(self, call: _Call, reply: ModelReply) -> CallRow:
        usage = reply.usage or Usage()
        return CallRow(
            call.key,
            self.role,
            call.purpose,
            str(self._ref),
            usage.input_tokens,
            usage.output_tokens,
            call.cost.nanodollars,
            reply,
            call.request if call.purpose in self._keep_requests else None,
        )

    def _worst(self, call: _Call) -> Cost:
        tokens_in, tokens_out = call.most_in, call.request.sampling.max_tokens
        return Cost(tokens_in + tokens_out, self._price(Usage(tokens_in, tokens_out)))

    def _timeout(self) -> float:
        left = self._ledger.seconds_left
        return self._settings.timeout if left is None else min(self._settings.timeout, max(0.001, left))

    def _pause(self, key: bytes, retry: int, asked: float | None) -> float:
        """Doubling, spread by the call's own key, never sooner than the endpoint asked nor past the end of the time."""
        spread = 0.5 + seed_from(key, retry) / 2**31
        pause = max(asked or 0.0, min(60.0, 0.5 * 2.0**retry) * spread)
        left = self._ledger.seconds_left
        return pause if left is None else min(pause, max(0.0, left))

    def _headers(self, call: _Call) -> dict[str, str]:
        if not self._settings.send_purpose:
            return {}
        return {"x-whet-purpose": call.purpose.value, "x-whet-key": call.key.hex()}


class _Call:
    """One call under way. Its answer is the first that arrives from any of its sendings."""

    def __init__(self, key: bytes, request: ModelRequest, purpose: Purpose, priority: Priority) -> None:
        self.key = key
        self.request = request
        self.most_in = input_bound(request)
        self.purpose = purpose
        self.priority = priority
        self.reply: ModelReply | None = None
        self.cost = Cost()


def _may_have_worked(error: EndpointError | CredentialsError) -> bool:
    """What timed out, answered rubbish or broke off after sending may be charged for; a refusal is not."""
    if isinstance(error, EndpointUnreachable):
        return error.worked
    return isinstance(error, EndpointTimeout | BadReply)


def _nothing() -> None:
    pass
