"""The ledger: no cap is ever exceeded, nobody waits for ever, and nothing stays reserved."""

from __future__ import annotations

import asyncio
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from whet.core import (
    BudgetExhausted,
    ConfigError,
    ImagePart,
    ModelReply,
    ModelRequest,
    RunStopped,
    Sampling,
    TextPart,
    ToolCall,
    ToolSpec,
    Usage,
    assistant,
    system,
    user,
)
from whet.models import Caps, Cost, Grant, Ledger, believable, input_bound
from whet.project import decode_settings
from whet.store import Spending
from whet.testing import FakeClock, settle


def ledger(caps: Caps, spent: Spending | None = None, clock: FakeClock | None = None) -> Ledger:
    return Ledger(caps, spent or Spending(), clock or FakeClock())


async def test_a_call_waits_for_room_and_gets_it_when_another_was_cheaper_than_feared() -> None:
    books = ledger(Caps(tokens=100))
    first = await books.reserve(Cost(80))
    waiting = asyncio.create_task(books.reserve(Cost(80)))
    await settle()
    assert not waiting.done()
    books.settle(first, Cost(10))
    grant = await waiting
    books.settle(grant, Cost(80))
    assert (books.tokens, books.calls, books.in_flight) == (90, 2, 0)


async def test_it_raises_only_when_nothing_is_in_flight_that_could_still_make_room() -> None:
    books = ledger(Caps(tokens=100))
    first = await books.reserve(Cost(80))
    waiting = asyncio.create_task(books.reserve(Cost(80)))
    await settle()
    assert not waiting.done()
    books.settle(first, Cost(80))
    with pytest.raises(BudgetExhausted, match=r"budget\.tokens is used up: 80 of 100"):
        await waiting
    grant = await books.reserve(Cost(20))
    assert grant.worst == Cost(20)


@pytest.mark.parametrize(
    ("caps", "spent", "worst", "text"),
    [
        (Caps(usd=0.001), Spending(nanodollars=900_000), Cost(1, 100_001), r"budget\.usd is used up: \$0\.0009"),
        (Caps(tokens=1000), Spending(tokens=991), Cost(10), r"budget\.tokens is used up: 991 of 1,000"),
        (Caps(calls=3), Spending(calls=3), Cost(), r"budget\.calls is used up: 3 of 3"),
        (Caps(seconds=60.0), Spending(seconds=60.0), Cost(), r"budget\.seconds is used up: 60 of 60"),
    ],
)
async def test_each_cap_counts_what_earlier_processes_spent(
    caps: Caps, spent: Spending, worst: Cost, text: str
) -> None:
    books = ledger(caps, spent)
    assert books.try_reserve(worst) is None
    with pytest.raises(BudgetExhausted, match=text) as raised:
        await books.reserve(worst)
    assert "--set budget." in str(raised.value)


@pytest.mark.parametrize(
    ("caps", "spent", "worst"),
    [
        (Caps(usd=0.001), Spending(nanodollars=900_000), Cost(1, 100_000)),
        (Caps(tokens=1000), Spending(tokens=990), Cost(10)),
        (Caps(calls=3), Spending(calls=2), Cost()),
        (Caps(seconds=60.0), Spending(seconds=59.9), Cost()),
        (Caps(usd=0.0), Spending(), Cost(1000, 0)),
    ],
)
async def test_what_fits_exactly_is_granted(caps: Caps, spent: Spending, worst: Cost) -> None:
    assert (await ledger(caps, spent).reserve(worst)).worst == worst


async def test_time_runs_out_by_the_clock() -> None:
    clock = FakeClock()
    books = ledger(Caps(seconds=10.0), Spending(seconds=4.0), clock)
    assert books.seconds_left == 6.0
    await books.reserve(Cost())
    await clock.advance(6.0)
    assert books.try_reserve(Cost()) is None


async def test_stopping_lets_calls_in_flight_end_and_then_tells_everyone() -> None:
    books = ledger(Caps())
    grants = [await books.reserve(Cost(1)) for _ in range(2)]
    books.stop(RunStopped("stopped by you"))
    waiting = [asyncio.create_task(books.reserve(Cost(1))) for _ in range(3)]
    await settle()
    assert not any(task.done() for task in waiting)
    books.settle(grants[0], Cost(1))
    await settle()
    assert not any(task.done() for task in waiting)
    books.settle(grants[1], Cost(1))
    for task in waiting:
        with pytest.raises(RunStopped, match="stopped by you"):
            await task
    with pytest.raises(RunStopped):
        await books.reserve(Cost())
    assert books.calls == 2


async def test_the_first_reason_to_stop_is_the_one_that_is_told() -> None:
    books = ledger(Caps())
    books.stop(RunStopped("first"))
    books.stop(RunStopped("second"))
    with pytest.raises(RunStopped, match="first"):
        await books.reserve(Cost())


async def test_those_who_wait_are_served_in_their_order() -> None:
    books = ledger(Caps(tokens=1000))
    blocking = await books.reserve(Cost(1000))
    served: list[int] = []

    async def ask(number: int) -> None:
        grant = await books.reserve(Cost(100))
        served.append(number)
        books.settle(grant, Cost(1))

    asking = [asyncio.create_task(ask(number)) for number in range(8)]
    await settle()
    books.settle(blocking, Cost(1))
    await asyncio.gather(*asking)
    assert served == list(range(8))


async def test_a_large_call_is_not_passed_by_small_ones_for_ever() -> None:
    books = ledger(Caps(tokens=100))
    running = [await books.reserve(Cost(50)), await books.reserve(Cost(50))]
    large = asyncio.create_task(books.reserve(Cost(90)))
    await settle()
    small = [asyncio.create_task(books.reserve(Cost(50))) for _ in range(4)]
    await settle()
    books.settle(running[0], Cost(0))
    await settle()
    assert books.try_reserve(Cost(1)) is None
    books.settle(running[1], Cost(0))
    await settle()
    assert large.done()
    assert not any(task.done() for task in small)
    books.settle(await large, Cost(0))
    await settle()
    assert [task.done() for task in small] == [True, True, False, False]
    for task in small:
        task.cancel()


async def test_a_cancelled_waiter_leaves_nothing_reserved() -> None:
    books = ledger(Caps(tokens=100))
    first = await books.reserve(Cost(100))
    waiting = asyncio.create_task(books.reserve(Cost(100)))
    await settle()
    waiting.cancel()
    await settle()
    books.settle(first, Cost(0))
    assert books.in_flight == 0
    assert (await books.reserve(Cost(100))).worst == Cost(100)


async def test_a_waiter_that_is_cancelled_at_its_turn_hands_the_turn_on() -> None:
    books = ledger(Caps(tokens=100))
    first = await books.reserve(Cost(100))
    unlucky = asyncio.create_task(books.reserve(Cost(100)))
    next_one = asyncio.create_task(books.reserve(Cost(100)))
    await settle()
    books.settle(first, Cost(0))
    unlucky.cancel()
    async with asyncio.timeout(5):
        await next_one
    assert books.in_flight == 1


async def test_a_cancelled_head_that_was_too_large_frees_the_way() -> None:
    books = ledger(Caps(tokens=100))
    await books.reserve(Cost(50))
    large = asyncio.create_task(books.reserve(Cost(100)))
    await settle()
    small = asyncio.create_task(books.reserve(Cost(50)))
    await settle()
    assert not small.done()
    large.cancel()
    async with asyncio.timeout(5):
        await small


async def test_attempts_are_numbered_on_from_those_before() -> None:
    books = ledger(Caps(), Spending(last_attempt=41))
    assert [(await books.reserve(Cost())).attempt for _ in range(3)] == [42, 43, 44]


async def test_sums_do_not_depend_on_the_order_of_ends() -> None:
    costs = [Cost(number * 7, number * 333_333_333_333) for number in range(1, 200)]
    totals: set[tuple[int, int]] = set()
    for seed in range(5):
        books = ledger(Caps())
        grants = [await books.reserve(Cost(10**6, 10**18)) for _ in costs]
        pairs = list(zip(grants, costs, strict=True))
        Random(seed).shuffle(pairs)
        for grant, cost in pairs:
            books.settle(grant, cost)
        totals.add((books.tokens, books.nanodollars))
    assert totals == {(7 * 19900, 333_333_333_333 * 19900)}


COSTS = st.builds(Cost, st.integers(0, 60), st.integers(0, 60))
CAPS = st.builds(
    lambda tokens, nano, calls: Caps(tokens=tokens, usd=None if nano is None else nano / 1e9, calls=calls),
    st.none() | st.integers(0, 200),
    st.none() | st.integers(0, 200),
    st.none() | st.integers(0, 12),
)
OPERATIONS = st.lists(
    st.one_of(
        st.tuples(st.just("ask"), COSTS),
        st.tuples(st.just("try"), COSTS),
        st.tuples(st.just("end"), st.tuples(st.integers(0, 9), COSTS)),
        st.tuples(st.just("cancel"), st.integers(0, 9)),
        st.tuples(st.just("turn"), st.none()),
        st.tuples(st.just("stop"), st.none()),
    ),
    max_size=40,
)


class Spender:
    """Asks, ends, cancels and lies about usage, and checks the books after each."""

    def __init__(self, caps: Caps) -> None:
        self.caps = caps
        self.books = ledger(caps)
        self.asking: list[asyncio.Task[None]] = []
        self.granted: list[Grant] = []

    async def ask(self, worst: Cost) -> None:
        try:
            self.granted.append(await self.books.reserve(worst))
        except (BudgetExhausted, RunStopped):
            assert not self.granted, "it gave up while a call in flight could still make room"

    async def do(self, name: str, value: object) -> None:
        match name, value:
            case "ask", Cost():
                self.asking.append(asyncio.create_task(self.ask(value)))
            case "try", Cost():
                grant = self.books.try_reserve(value)
                self.granted += [grant] if grant else []
            case "end", (int(number), Cost() as claimed) if self.granted:
                self.books.settle(self.granted.pop(number % len(self.granted)), claimed)
            case "cancel", int(number) if self.asking:
                self.asking[number % len(self.asking)].cancel()
            case "stop", _:
                self.books.stop(RunStopped("enough"))
            case _:
                await settle(5)
        self.check()

    def check(self) -> None:
        books, caps = self.books, self.caps
        reserved = sum(grant.worst.tokens for grant in self.granted)
        assert caps.tokens is None or books.tokens + reserved <= caps.tokens
        money = sum(grant.worst.nanodollars for grant in self.granted)
        assert caps.usd is None or books.nanodollars + money <= round(caps.usd * 1e9)
        assert caps.calls is None or books.calls + books.in_flight <= caps.calls
        assert books.in_flight >= len(self.granted)

    async def end(self) -> None:
        """Let all calls end: then everybody has an answer, and nothing is reserved."""
        await settle()
        while self.granted:
            self.books.settle(self.granted.pop(), Cost(10**9, 10**9))
            await settle(5)
            self.check()
        assert all(task.done() for task in self.asking), "somebody waits for ever"
        assert self.books.in_flight == 0
        for task in self.asking:
            assert task.cancelled() or task.exception() is None


@settings(max_examples=150, deadline=None)
@given(caps=CAPS, operations=OPERATIONS)
def test_no_cap_is_exceeded_and_nobody_waits_for_ever(caps: Caps, operations: list[tuple[str, object]]) -> None:
    async def run() -> None:
        spender = Spender(caps)
        for name, value in operations:
            await spender.do(name, value)
        await spender.end()

    asyncio.run(run())


@given(st.lists(st.tuples(COSTS, COSTS), max_size=20))
def test_a_settled_call_never_counts_more_than_was_reserved(pairs: list[tuple[Cost, Cost]]) -> None:
    async def run() -> None:
        books = ledger(Caps())
        for worst, claimed in pairs:
            before = books.tokens, books.nanodollars
            books.settle(await books.reserve(worst), claimed)
            assert books.tokens - before[0] <= worst.tokens
            assert books.nanodollars - before[1] <= worst.nanodollars

    asyncio.run(run())


@pytest.mark.parametrize(
    ("usage", "booked", "doubted"),
    [
        (Usage(50, 20), Usage(50, 20), False),
        (Usage(50, 20, 30, 10), Usage(50, 20, 30, 10), False),
        (Usage(10**12, 10**12), Usage(900, 100), True),
        (Usage(50, 101), Usage(50, 100), True),
        (Usage(0, 0), Usage(301, 5), True),
        (Usage(-5, -5), Usage(301, 5), True),
        (Usage(50, 0), Usage(50, 5), True),
        (Usage(50, 20, cached_tokens=60, reasoning_tokens=30), Usage(50, 20, 50, 20), True),
        (Usage(50, 20, cached_tokens=-1), Usage(50, 20), True),
        (None, Usage(301, 5), False),
    ],
)
def test_usage_that_cannot_be_true_is_booked_at_what_can(usage: Usage | None, booked: Usage, doubted: bool) -> None:
    reply = ModelReply("x" * 6, reasoning="y" * 6)
    assert believable(usage, most_in=900, most_out=100, reply=reply) == (booked, doubted)


def test_an_empty_answer_without_usage_of_its_own_costs_no_output() -> None:
    assert believable(Usage(10, 0), 900, 100, ModelReply("")) == (Usage(10, 0), False)


@given(
    usage=st.none() | st.builds(Usage, *[st.integers(-(10**15), 10**15)] * 4),
    most_in=st.integers(256, 10**6),
    most_out=st.integers(0, 10**6),
    text=st.text(),
)
def test_what_is_booked_is_never_more_than_was_reserved(
    usage: Usage | None, most_in: int, most_out: int, text: str
) -> None:
    booked, _ = believable(usage, most_in, most_out, ModelReply(text))
    assert 0 <= booked.input_tokens <= most_in
    assert 0 <= booked.output_tokens <= most_out
    assert 0 <= booked.cached_tokens <= booked.input_tokens
    assert 0 <= booked.reasoning_tokens <= booked.output_tokens


@given(st.lists(st.text(), min_size=1, max_size=5))
def test_the_bound_of_an_input_is_at_least_its_bytes(texts: list[str]) -> None:
    request = ModelRequest(tuple(user(text) for text in texts))
    assert input_bound(request) >= sum(len(text.encode()) for text in texts)


def test_the_bound_counts_everything_that_is_sent() -> None:
    bare = ModelRequest((system("s"), user("u")))
    tool = ToolSpec("find", "Finds things. " * 20, {"type": "object"})
    image = ImagePart("image/png", b"\x89PNG")
    call = ToolCall("1", "find", '{"what": "' + "x" * 300 + '"}')
    for request in (
        ModelRequest(bare.messages, tools=(tool,)),
        ModelRequest(bare.messages, schema={"type": "object", "description": "long " * 50}),
        ModelRequest((*bare.messages, assistant("", (call,)))),
        ModelRequest((system("s"), user((TextPart("u"), image)))),
    ):
        assert input_bound(request) > input_bound(bare) + 100
    assert input_bound(ModelRequest(bare.messages, sampling=Sampling(max_tokens=9))) == input_bound(bare)


@pytest.mark.parametrize("key", ["usd", "calls", "tokens", "seconds"])
@pytest.mark.parametrize("value", [-1, float("nan"), float("inf")])
def test_a_cap_that_is_no_amount_is_a_mistake_of_the_configuration(key: str, value: float) -> None:
    with pytest.raises(ConfigError, match="budget"):
        decode_settings(Caps, {key: value}, where="budget")
