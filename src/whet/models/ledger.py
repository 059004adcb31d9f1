"""What a run may spend and has spent. A call's worst case is reserved before it is sent, so no cap is ever exceeded."""

from __future__ import annotations

import asyncio
import math
from collections import deque

import msgspec

from whet.core import (
    BudgetExhausted,
    Clock,
    ModelReply,
    ModelRequest,
    Nanodollars,
    TextPart,
    Usage,
    WhetError,
    dollars,
    nanodollars,
)
from whet.store import Spending

_MESSAGE_OVERHEAD = 16
_IMAGE_BOUND = 16_384
_REQUEST_OVERHEAD = 256


class Caps(msgspec.Struct, frozen=True, omit_defaults=True, forbid_unknown_fields=True):
    """What a run may use, over all the times it is started. Absent: no limit."""

    usd: float | None = None
    """Dollars, by the price table and `[prices]`."""
    calls: int | None = None
    """Calls sent, retries included."""
    tokens: int | None = None
    """Tokens in and out."""
    seconds: float | None = None
    """Seconds of work, over all the times the run is started."""

    def __post_init__(self) -> None:
        for name in self.__struct_fields__:
            value = getattr(self, name)
            if value is not None and not 0 <= value < math.inf:
                raise ValueError(f"`{name}` is a number that is not negative")

    @property
    def any(self) -> bool:
        return self != Caps()


class Cost(msgspec.Struct, frozen=True, gc=False):
    tokens: int = 0
    nanodollars: Nanodollars = 0


class Grant(msgspec.Struct, frozen=True, gc=False):
    """Leave to send one call that costs at most `worst`."""

    attempt: int
    worst: Cost


class Ledger:
    """Grants calls while their worst cases fit under the caps together with what is spent and reserved."""

    def __init__(self, caps: Caps, spent: Spending, clock: Clock) -> None:
        self.caps = caps
        self.calls = spent.calls
        self.tokens = spent.tokens
        self.nanodollars = spent.nanodollars
        self.in_flight = 0
        self.doubted = 0
        """Replies whose reported usage could not be true; they count at what is possible."""
        self._cap_nanodollars = None if caps.usd is None else nanodollars(caps.usd)
        self._reserved_tokens = 0
        self._reserved_nanodollars = 0
        self._attempts = spent.last_attempt
        self._clock = clock
        self._began = clock.now() - spent.seconds
        self._queue: deque[tuple[asyncio.Future[Grant], Cost]] = deque()
        self._stopped: WhetError | None = None

    @property
    def seconds(self) -> float:
        return self._clock.now() - self._began

    @property
    def seconds_left(self) -> float | None:
        return None if self.caps.seconds is None else self.caps.seconds - self.seconds

    def stop(self, reason: WhetError) -> None:
        """Grant nothing more. Calls in flight end and are kept; then everyone who asks gets `reason`."""
        self._stopped = self._stopped or reason
        self._admit()

    async def reserve(self, worst: Cost) -> Grant:
        """Wait until `worst` fits, first come, first served: a large call is not passed by small ones for ever.

        Raises only when nothing is in flight any more that could still make room.
        """
        if not self._queue and self._obstacle(worst) is None:
            return self._grant(worst)
        turn: asyncio.Future[Grant] = asyncio.get_running_loop().create_future()
        self._queue.append((turn, worst))
        self._admit()
        try:
            return await turn
        except asyncio.CancelledError:
            if turn.done() and not turn.cancelled() and turn.exception() is None:
                self._release(turn.result())
            self._admit()
            raise

    def try_reserve(self, worst: Cost) -> Grant | None:
        """For calls that are only worth making when there is room."""
        return None if self._queue or self._obstacle(worst) is not None else self._grant(worst)

    def settle(self, grant: Grant, actual: Cost) -> None:
        """Book what a call cost; it cannot be more than was reserved."""
        self._release(grant)
        self.calls += 1
        self.tokens += min(actual.tokens, grant.worst.tokens)
        self.nanodollars += min(actual.nanodollars, grant.worst.nanodollars)
        self._admit()

    def _grant(self, worst: Cost) -> Grant:
        self.in_flight += 1
        self._attempts += 1
        self._reserved_tokens += worst.tokens
        self._reserved_nanodollars += worst.nanodollars
        return Grant(self._attempts, worst)

    def _release(self, grant: Grant) -> None:
        self.in_flight -= 1
        self._reserved_tokens -= grant.worst.tokens
        self._reserved_nanodollars -= grant.worst.nanodollars

    def _admit(self) -> None:
        """Answer those who wait, in their order, as far as it can be said now."""
        while self._queue:
            turn, worst = self._queue[0]
            if not turn.done():
                obstacle = self._obstacle(worst)
                if obstacle is None:
                    turn.set_result(self._grant(worst))
                elif self.in_flight == 0:
                    turn.set_exception(obstacle)
                else:
                    return
            self._queue.popleft()

    def _obstacle(self, worst: Cost) -> WhetError | None:
        """Why a call of this worst case may not be sent now."""
        if self._stopped is not None:
            return self._stopped
        caps = self.caps
        if self._cap_nanodollars is not None:
            committed = self.nanodollars + self._reserved_nanodollars
            if committed + worst.nanodollars > self._cap_nanodollars:
                return _exhausted("usd", f"${dollars(self.nanodollars):.4f} of ${caps.usd:g} spent")
        if caps.tokens is not None and self.tokens + self._reserved_tokens + worst.tokens > caps.tokens:
            return _exhausted("tokens", f"{self.tokens:,} of {caps.tokens:,} used")
        if caps.calls is not None and self.calls + self.in_flight + 1 > caps.calls:
            return _exhausted("calls", f"{self.calls:,} of {caps.calls:,} made")
        if caps.seconds is not None and self.seconds >= caps.seconds:
            return _exhausted("seconds", f"{self.seconds:.3g} of {caps.seconds:g} used")
        return None


def _exhausted(cap: str, state: str) -> BudgetExhausted:
    return BudgetExhausted(
        f"budget.{cap} is used up: {state}, and the next call might not fit",
        hint=f"Raise it (--set budget.{cap}=…); the same command goes on.",
    )


def input_bound(request: ModelRequest) -> int:
    """No tokenizer makes more tokens than there are bytes; images and framing are bounded apart."""
    bound = _REQUEST_OVERHEAD
    for message in request.messages:
        bound += _MESSAGE_OVERHEAD
        if isinstance(message.content, str):
            bound += _bytes(message.content)
        else:
            bound += sum(_bytes(p.text) if isinstance(p, TextPart) else _IMAGE_BOUND for p in message.content)
        bound += sum(_MESSAGE_OVERHEAD + _bytes(call.name) + _bytes(call.arguments) for call in message.tool_calls)
    if request.tools:
        bound += len(msgspec.json.encode(request.tools))
    if request.schema is not None:
        bound += len(msgspec.json.encode(request.schema))
    return bound


def _bytes(text: str) -> int:
    return len(text) if text.isascii() else len(text.encode())


def believable(usage: Usage | None, most_in: int, most_out: int, reply: ModelReply) -> tuple[Usage, bool]:
    """The usage to book, and whether the reported one had to be doubted.

    An endpoint that reports none or impossibly little is booked at an estimate, one that reports more than the
    request allows at the most that is possible.
    """
    if usage is not None and 0 < usage.input_tokens <= most_in and 0 < usage.output_tokens <= most_out:
        usual = 0 <= usage.cached_tokens <= usage.input_tokens and 0 <= usage.reasoning_tokens <= usage.output_tokens
        if usual:
            return usage, False
    said = len(reply.text) + len(reply.reasoning) + sum(len(call.arguments) for call in reply.tool_calls)
    if usage is None:
        return Usage(min(most_in, most_in // 3 + 1), min(most_out, said // 3 + 1)), False
    input_tokens = min(usage.input_tokens, most_in) if usage.input_tokens > 0 else most_in // 3 + 1
    output_tokens = min(max(usage.output_tokens, 0), most_out)
    if output_tokens == 0 and said:
        output_tokens = min(most_out, said // 3 + 1)
    booked = Usage(
        input_tokens,
        output_tokens,
        min(max(usage.cached_tokens, 0), input_tokens),
        min(max(usage.reasoning_tokens, 0), output_tokens),
    )
    return booked, booked != usage
