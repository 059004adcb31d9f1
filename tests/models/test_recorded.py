"""A recorded model: every answer is paid for once, kept, and never more is spent than may be."""

from __future__ import annotations

import asyncio
import sqlite3
import traceback
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from typing import Any

import msgspec
import pytest

from whet.core import (
    BadReply,
    BudgetExhausted,
    CredentialsError,
    EndpointBusy,
    EndpointError,
    EndpointTimeout,
    EndpointUnreachable,
    ModelRef,
    ModelReply,
    ModelRequest,
    Purpose,
    RequestRefused,
    RunStopped,
    Sampling,
    SystemClock,
    Usage,
    WhetError,
    user,
)
from whet.models import (
    CallSettings,
    Caps,
    Cost,
    Ledger,
    Models,
    Places,
    Prices,
    RecordedModel,
    RoleSettings,
    Script,
    ScriptedSender,
    input_bound,
)
from whet.store import AttemptStatus, RunReader, RunStore, open_run
from whet.testing import FakeClock, settle
from whet.testing.endpoint import StandInEndpoint, StandInFault

CAPS = Caps(tokens=10**9)


def ask(text: str = "hello", max_tokens: int = 50) -> ModelRequest:
    return ModelRequest((user(text),), sampling=Sampling(max_tokens=max_tokens))


def worst(request: ModelRequest) -> int:
    return input_bound(request) + request.sampling.max_tokens


def price(usage: Usage) -> int:
    return usage.input_tokens * 1000 + usage.output_tokens * 2000


class Endpoint:
    """A sender whose answers are given by the test, one sending at a time."""

    def __init__(self) -> None:
        self.sendings: list[Sending] = []

    async def send(self, request: ModelRequest, timeout: float, headers: dict[str, str]) -> ModelReply:
        sending = Sending(request, timeout, headers)
        self.sendings.append(sending)
        return await sending.outcome

    async def aclose(self) -> None:
        pass


class Sending:
    def __init__(self, request: ModelRequest, timeout: float, headers: dict[str, str]) -> None:
        self.request = request
        self.timeout = timeout
        self.headers = headers
        self.outcome: asyncio.Future[ModelReply] = asyncio.get_running_loop().create_future()

    def answer(self, text: str = "hi", usage: Usage | None = Usage(10, 5)) -> None:  # noqa: B008 (frozen)
        self.outcome.set_result(ModelReply(text, usage=usage))

    def fail(self, error: Exception) -> None:
        self.outcome.set_exception(error)


class Desk:
    """A recorded model with everything that it stands on."""

    def __init__(self, path: Path, caps: Caps = CAPS, settings: CallSettings | None = None, ceiling: int = 8) -> None:
        self.tasks_before = asyncio.all_tasks()
        self.clock = FakeClock()
        self.store: RunStore = open_run(path, self.clock)
        self.ledger = Ledger(caps, self.store.spending(), self.clock)
        self.places = Places(ceiling, self.clock)
        self.endpoint = Endpoint()
        self.model = self.another(settings or CallSettings(timeout=60.0))

    def another(self, settings: CallSettings) -> RecordedModel:
        return RecordedModel(
            "target",
            ModelRef("test", "model"),
            self.endpoint,
            store=self.store,
            ledger=self.ledger,
            places=self.places,
            clock=self.clock,
            price=price,
            settings=settings,
        )

    def begin(self, request: ModelRequest | None = None, salt: bytes = b"") -> asyncio.Task[ModelReply]:
        return asyncio.create_task(self.model.complete(request or ask(), purpose=Purpose.ROLLOUT, salt=salt))

    async def sent(self, count: int) -> Sending:
        """The last sending, once there are so many."""
        await settle()
        assert len(self.endpoint.sendings) == count
        return self.endpoint.sendings[-1]

    async def answered(
        self, request: ModelRequest | None = None, salt: bytes = b"", seconds: float = 0.0
    ) -> ModelReply:
        asking = self.begin(request, salt)
        await settle()
        await self.clock.advance(seconds)
        self.endpoint.sendings[-1].answer()
        return await asking

    async def warm_up(self) -> None:
        """Calls of one second each, so that three seconds are late."""
        for number in range(8):
            await self.answered(ask("warm"), salt=b"warm %d" % number, seconds=1.0)
        self.endpoint.sendings.clear()

    def attempts(self) -> list[tuple[str, int, int]]:
        db = sqlite3.connect(self.store.path)
        rows = db.execute("SELECT status, tokens, nanodollars FROM attempts ORDER BY id").fetchall()
        db.close()
        return rows

    async def at_rest(self) -> None:
        """Nothing is reserved, nothing runs, and the books agree with the file."""
        await self.clock.advance(1.0)
        assert (self.ledger.in_flight, self.places.in_flight) == (0, 0)
        spent = self.store.spending()
        assert (self.ledger.calls, self.ledger.tokens) == (spent.calls, spent.tokens)
        assert self.ledger.nanodollars == spent.nanodollars
        if self.ledger.caps.tokens is not None:
            left = self.ledger.try_reserve(Cost(self.ledger.caps.tokens - self.ledger.tokens))
            assert left is not None, "something is still reserved"
            raise_nothing_left(left, self.ledger)
        assert not any(status == AttemptStatus.OPEN for status, _, _ in self.attempts())
        assert asyncio.all_tasks() <= self.tasks_before


def raise_nothing_left(grant: Any, ledger: Ledger) -> None:
    """Undo a probe of the ledger: booked at nothing it still counts as a call."""
    ledger.settle(grant, Cost())
    ledger.calls -= 1


async def test_an_answer_that_is_known_is_not_asked_for_again(tmp_path: Path) -> None:
    desk = Desk(tmp_path / "run.db")
    first = await desk.answered()
    again = await desk.model.complete(ask(), purpose=Purpose.ROLLOUT)
    assert (first, len(desk.endpoint.sendings)) == (again, 1)
    await desk.store.aclose()
    reopened = Desk(tmp_path / "run.db")
    assert await reopened.model.complete(ask(), purpose=Purpose.ROLLOUT) == first
    assert reopened.endpoint.sendings == []
    assert reopened.ledger.tokens == 15
    await reopened.store.aclose()


async def test_the_same_call_made_at_once_is_sent_once(tmp_path: Path) -> None:
    desk = Desk(tmp_path / "run.db")
    asking = [desk.begin() for _ in range(5)]
    (await desk.sent(1)).answer("one")
    assert {reply.text for reply in await asyncio.gather(*asking)} == {"one"}
    await desk.at_rest()
    await desk.store.aclose()


async def test_another_salt_another_request_and_another_model_are_other_calls(tmp_path: Path) -> None:
    desk = Desk(tmp_path / "run.db")
    await desk.answered()
    await desk.answered(salt=b"again")
    await desk.answered(ask("other"))
    await desk.answered(ask(max_tokens=51))
    assert len(desk.endpoint.sendings) == 4
    other = RecordedModel(
        "target",
        ModelRef("test", "other model"),
        ScriptedSender(lambda request: "from the other"),
        store=desk.store,
        ledger=desk.ledger,
        places=desk.places,
        clock=desk.clock,
        price=price,
    )
    assert (await other.complete(ask(), purpose=Purpose.ROLLOUT)).text == "from the other"
    await desk.store.aclose()


async def test_an_answer_is_stored_before_it_is_given(tmp_path: Path) -> None:
    desk = Desk(tmp_path / "run.db")
    await desk.answered()
    db = sqlite3.connect(desk.store.path)
    assert db.execute("SELECT input_tokens, output_tokens, nanodollars FROM calls").fetchall() == [(10, 5, 20_000)]
    assert desk.attempts() == [("answered", 15, 20_000)]
    await desk.store.aclose()


@pytest.mark.parametrize(("caps", "rows"), [(CAPS, 1), (Caps(), 0)])
async def test_under_a_cap_a_call_is_on_the_books_before_it_is_sent(tmp_path: Path, caps: Caps, rows: int) -> None:
    desk = Desk(tmp_path / "run.db", caps)
    asking = desk.begin()
    await desk.sent(1)
    expected = ("open", worst(ask()), price(Usage(input_bound(ask()), 50)))
    assert desk.attempts() == [expected] * rows
    desk.endpoint.sendings[0].answer()
    await asking
    assert desk.attempts() == [("answered", 15, 20_000)]
    await desk.store.aclose()


async def test_requests_are_kept_where_no_trajectory_says_them(tmp_path: Path) -> None:
    desk = Desk(tmp_path / "run.db")
    for purpose in (Purpose.ROLLOUT, Purpose.RANK):
        asking = asyncio.create_task(desk.model.complete(ask(), purpose=purpose, salt=purpose.encode()))
        await settle()
        desk.endpoint.sendings[-1].answer()
        await asking
    with RunReader(desk.store.path) as reader:
        assert [(call.purpose, call.request) for call in reader.calls()] == [("rollout", None), ("rank", ask())]
    await desk.store.aclose()


async def test_a_late_call_is_sent_again_and_the_first_answer_counts(tmp_path: Path) -> None:
    desk = Desk(tmp_path / "run.db")
    await desk.warm_up()
    asking = desk.begin()
    await desk.sent(1)
    await desk.clock.advance(2.9)
    await desk.sent(1)
    await desk.clock.advance(0.1)
    (await desk.sent(2)).answer("second", Usage(10, 7))
    assert (await asking).text == "second"
    assert desk.endpoint.sendings[0].outcome.cancelled()
    await desk.at_rest()
    assert desk.attempts()[8:] == [("abandoned", 17, 24_000), ("answered", 17, 24_000)]
    assert (await desk.model.complete(ask(), purpose=Purpose.ROLLOUT)).text == "second"
    await desk.store.aclose()


async def test_the_loser_of_a_race_does_not_change_the_answer(tmp_path: Path) -> None:
    desk = Desk(tmp_path / "run.db")
    await desk.warm_up()
    asking = desk.begin()
    await desk.sent(1)
    await desk.clock.advance(3.0)
    await desk.sent(2)
    # Both arrive in one turn of the loop.
    desk.endpoint.sendings[0].answer("first", Usage(10, 1))
    desk.endpoint.sendings[1].answer("second", Usage(10, 2))
    assert (await asking).text == "first"
    await desk.at_rest()
    assert [status for status, _, _ in desk.attempts()[8:]] == ["answered", "abandoned"]
    stored = await desk.model.complete(ask(), purpose=Purpose.ROLLOUT)
    assert stored.text == "first"
    await desk.store.aclose()


async def test_a_second_sending_needs_a_free_place_and_room_in_the_budget(tmp_path: Path) -> None:
    desk = Desk(tmp_path / "run.db", ceiling=1)
    await desk.warm_up()
    asking = desk.begin()
    await desk.clock.advance(50.0)
    (await desk.sent(1)).answer()
    await asking
    await desk.store.aclose()

    room = Caps(tokens=8 * 15 + worst(ask()) + worst(ask()) - 1)
    desk = Desk(tmp_path / "other.db", room)
    await desk.warm_up()
    asking = desk.begin()
    await desk.clock.advance(50.0)
    (await desk.sent(1)).answer()
    await asking
    await desk.store.aclose()


async def test_second_sendings_can_be_switched_off_and_stay_few(tmp_path: Path) -> None:
    desk = Desk(tmp_path / "run.db", settings=CallSettings(timeout=500.0, send_late_again=False))
    await desk.warm_up()
    asking = desk.begin()
    await desk.clock.advance(50.0)
    (await desk.sent(1)).answer()
    await asking
    await desk.store.aclose()

    desk = Desk(tmp_path / "few.db", settings=CallSettings(timeout=500.0))
    await desk.warm_up()
    several = [desk.begin(salt=b"%d" % number) for number in range(4)]
    await desk.clock.advance(50.0)
    assert len(desk.endpoint.sendings) == 4 + 2
    for sending in desk.endpoint.sendings:
        if not sending.outcome.done():
            sending.answer()
    await asyncio.gather(*several)
    await desk.at_rest()
    await desk.store.aclose()


async def test_a_failed_call_is_tried_again_no_sooner_than_asked(tmp_path: Path) -> None:
    desk = Desk(tmp_path / "run.db")
    asking = desk.begin()
    (await desk.sent(1)).fail(EndpointBusy("slow down", retry_after=40.0))
    await desk.clock.advance(39.9)
    await desk.sent(1)
    await desk.clock.advance(0.1)
    (await desk.sent(2)).answer("at last")
    assert (await asking).text == "at last"
    await desk.at_rest()
    assert desk.attempts() == [("failed", 0, 0), ("answered", 15, 20_000)]
    await desk.store.aclose()


async def test_pauses_double_and_retries_end_with_the_error(tmp_path: Path) -> None:
    desk = Desk(tmp_path / "run.db", settings=CallSettings(timeout=60.0, retries=3))
    asking = desk.begin()
    moments: list[float] = []
    for count in range(1, 5):
        sending = await desk.sent(count)
        moments.append(desk.clock.now())
        sending.fail(EndpointUnreachable(f"broke {count}"))
        if count < 4:
            await settle()
            while len(desk.endpoint.sendings) == count:
                await desk.clock.advance(0.05)
    with pytest.raises(EndpointUnreachable, match="broke 4"):
        await asking
    pauses = [after - before for before, after in pairwise(moments)]
    for retry, pause in enumerate(pauses):
        assert 0.25 * 2**retry <= pause <= 0.75 * 2**retry + 0.06
    await desk.at_rest()
    # The failure is not remembered: asked again, it is sent again.
    assert (await desk.answered()).text == "hi"
    await desk.store.aclose()


@pytest.mark.parametrize("error", [RequestRefused("no such model"), CredentialsError("wrong key")])
async def test_what_trying_again_cannot_help_is_raised_at_once_and_costs_nothing(
    tmp_path: Path, error: WhetError
) -> None:
    desk = Desk(tmp_path / "run.db")
    asking = desk.begin()
    (await desk.sent(1)).fail(error)
    with pytest.raises(type(error)):
        await asking
    await desk.at_rest()
    assert desk.attempts() == [("failed", 0, 0)]
    assert desk.ledger.tokens == 0
    await desk.store.aclose()


@pytest.mark.parametrize(
    ("error", "counts"),
    [
        (EndpointTimeout("no answer"), True),
        (BadReply("rubbish"), True),
        (EndpointBusy("429"), False),
        (RequestRefused("400"), False),
    ],
)
async def test_an_endpoint_that_has_worked_counts_at_the_worst_case(
    tmp_path: Path, error: EndpointError, counts: bool
) -> None:
    desk = Desk(tmp_path / "run.db", settings=CallSettings(timeout=60.0, retries=0))
    asking = desk.begin()
    (await desk.sent(1)).fail(error)
    with pytest.raises(type(error)):
        await asking
    await desk.at_rest()
    assert desk.ledger.tokens == (worst(ask()) if counts else 0)
    await desk.store.aclose()


async def test_timeouts_and_refusals_leave_fewer_places_and_others_do_not(tmp_path: Path) -> None:
    desk = Desk(tmp_path / "run.db", settings=CallSettings(timeout=60.0, retries=0), ceiling=8)

    async def failed(error: EndpointError, salt: bytes) -> None:
        asking = desk.begin(salt=salt)
        await settle()
        desk.endpoint.sendings[-1].fail(error)
        with pytest.raises(type(error)):
            await asking

    await failed(RequestRefused("400"), b"a")
    await failed(EndpointUnreachable("broke"), b"b")
    running = [desk.begin(salt=b"%d" % number) for number in range(8)]
    await settle()
    assert desk.places.in_flight == 8
    for sending in desk.endpoint.sendings[2:]:
        sending.answer()
    await asyncio.gather(*running)
    await failed(EndpointBusy("429"), b"c")
    running = [desk.begin(salt=b"more %d" % number) for number in range(8)]
    await settle()
    assert desk.places.in_flight == 4
    for _ in range(4):
        for sending in desk.endpoint.sendings:
            if not sending.outcome.done():
                sending.answer()
        await settle()
    await asyncio.gather(*running)
    await desk.store.aclose()


async def test_a_sending_may_take_no_longer_than_the_time_that_is_left(tmp_path: Path) -> None:
    desk = Desk(tmp_path / "run.db", Caps(seconds=100.0))
    asking = desk.begin()
    assert (await desk.sent(1)).timeout == 60.0
    await desk.clock.advance(70.0)
    desk.endpoint.sendings[0].fail(EndpointUnreachable("broke"))
    await desk.clock.advance(5.0)
    assert 25.0 <= (await desk.sent(2)).timeout <= 30.0
    desk.endpoint.sendings[1].fail(EndpointUnreachable("broke", retry_after=1000.0))
    await desk.clock.advance(31.0)
    with pytest.raises(BudgetExhausted, match="seconds"):
        await asking
    await desk.store.aclose()


async def test_a_stopped_run_keeps_the_answers_of_calls_in_flight(tmp_path: Path) -> None:
    desk = Desk(tmp_path / "run.db")
    flying = desk.begin(salt=b"a")
    await desk.sent(1)
    desk.ledger.stop(RunStopped("enough"))
    waiting = desk.begin(salt=b"b")
    await desk.sent(1)
    desk.endpoint.sendings[0].answer("kept")
    assert (await flying).text == "kept"
    with pytest.raises(RunStopped):
        await waiting
    assert (desk.ledger.in_flight, desk.places.in_flight) == (0, 0)
    assert [status for status, _, _ in desk.attempts()] == ["answered"]
    await desk.store.aclose()


async def test_usage_that_cannot_be_true_is_booked_at_most_at_what_was_reserved(tmp_path: Path) -> None:
    desk = Desk(tmp_path / "run.db")
    asking = desk.begin()
    (await desk.sent(1)).answer("hi", Usage(10**9, 10**9))
    reply = await asking
    assert reply.usage == Usage(input_bound(ask()), 50)
    assert (desk.ledger.tokens, desk.ledger.doubted) == (worst(ask()), 1)
    await desk.at_rest()
    await desk.store.aclose()


async def test_purpose_and_key_are_sent_where_that_is_asked_for(tmp_path: Path) -> None:
    desk = Desk(tmp_path / "run.db", settings=CallSettings(send_purpose=True))
    await desk.answered()
    headers = desk.endpoint.sendings[0].headers
    assert headers["x-whet-purpose"] == "rollout"
    assert desk.store.reply(bytes.fromhex(headers["x-whet-key"])) is not None
    plain = Desk(tmp_path / "plain.db")
    await plain.answered()
    assert plain.endpoint.sendings[0].headers == {}
    await desk.store.aclose()
    await plain.store.aclose()


@pytest.mark.slow
async def test_a_caller_that_is_cancelled_anywhere_leaves_nothing_behind(tmp_path: Path) -> None:
    """Busy at first, then late, then answered by the second sending: cancelled at each turn of the loop in between."""
    ended: set[str] = set()
    for turn in range(0, 330, 3):
        desk = Desk(tmp_path / f"{turn}.db")
        await desk.warm_up()
        asking = desk.begin()
        cancel_after(turn, asking)
        await act(desk, 1, lambda sending: sending.fail(EndpointBusy("slow down", retry_after=1.0)))
        await desk.clock.advance(1.0)
        await desk.clock.advance(3.0)
        await act(desk, 3, lambda sending: sending.answer("second"))
        await desk.clock.advance(1.0)
        await settle()
        assert asking.done()
        ended.add("cancelled" if asking.cancelled() else (await asking).text)
        await desk.at_rest()
        await desk.store.aclose()
    assert ended == {"cancelled", "second"}


def cancel_after(turns: int, task: asyncio.Task[Any]) -> None:
    loop = asyncio.get_running_loop()

    def count(left: int) -> None:
        if left == 0:
            task.cancel()
        else:
            loop.call_soon(count, left - 1)

    count(turns)


async def act(desk: Desk, number: int, what: Callable[[Sending], None]) -> None:
    """Do this to the sending of that number, if it is still waited for."""
    await settle()
    if len(desk.endpoint.sendings) >= number and not desk.endpoint.sendings[number - 1].outcome.done():
        what(desk.endpoint.sendings[number - 1])


async def test_the_books_agree_with_the_file_after_a_crowd_of_calls_failures_and_cancellations(tmp_path: Path) -> None:
    desk = Desk(tmp_path / "run.db", ceiling=3)
    await desk.warm_up()
    asking = [desk.begin(salt=b"%d" % number) for number in range(40)]
    ends: list[Callable[[Sending], None]] = [
        lambda sending: sending.answer("ok", Usage(20, 9)),
        lambda sending: sending.fail(EndpointUnreachable("broke")),
        lambda sending: sending.answer("lies", Usage(10**9, 0)),
        lambda sending: sending.fail(EndpointTimeout("late")),
    ]
    for number in range(400):
        await desk.clock.advance(0.7)
        open_ones = [sending for sending in desk.endpoint.sendings if not sending.outcome.done()]
        if open_ones:
            ends[number % 4](open_ones[number % len(open_ones)])
        if number % 10 == 3:
            asking[number // 10].cancel()
        if all(task.done() for task in asking):
            break
    await asyncio.gather(*asking, return_exceptions=True)
    await desk.at_rest()
    assert desk.ledger.calls > 40
    await desk.store.aclose()


async def test_a_scripted_model_that_returns_nonsense_is_a_bad_reply(tmp_path: Path) -> None:
    script: Script = lambda request: 42  # type: ignore[assignment,return-value]  # noqa: E731
    with pytest.raises(BadReply, match="int, not a text"):
        await ScriptedSender(script).send(ask(), 1.0, {})


SECRET = "f0e1d2c3b4a5968778695a4b3c2d1e0f"
"""Like Azure's: nothing in its form says that it is a key."""

QUOTE = f"Incorrect API key provided: {SECRET}."
FAULTS = {
    "refused": StandInFault(400, body=msgspec.json.encode({"error": {"message": QUOTE}})),
    "unauthorized": StandInFault(401, body=msgspec.json.encode({"error": {"message": QUOTE}})),
    "broken": StandInFault(500, body=QUOTE.encode()),
    "busy": StandInFault(429, body=msgspec.json.encode({"message": QUOTE})),
    "error in a 200": StandInFault(200, body=msgspec.json.encode({"error": {"message": QUOTE, "type": "auth"}})),
    "rubbish in a 200": StandInFault(200, body=b"<html>" + QUOTE.encode()),
}


def files_in(folder: Path) -> list[Path]:
    return [path for path in folder.rglob("*") if path.is_file()]


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "stream"])
@pytest.mark.parametrize("model", ["openai/some-model", "anthropic/some-model"])
@pytest.mark.parametrize("fault", FAULTS)
async def test_a_key_is_in_no_error_and_in_no_file(tmp_path: Path, fault: str, model: str, stream: bool) -> None:
    clock = SystemClock()
    settings = RoleSettings(model=model, retries=0, stream=stream, max_tokens=10)
    async with StandInEndpoint(lambda request: FAULTS[fault]) as endpoint:
        suffix = "/v1" if model.startswith("openai") else ""
        environ = {"OPENAI_API_KEY": SECRET, "ANTHROPIC_API_KEY": SECRET}
        models = Models(environ=environ, base_dir=tmp_path, prices=Prices({}), clock=clock)
        settings = msgspec.structs.replace(settings, base_url=endpoint.base_url + suffix)
        store = open_run(tmp_path / "run.db", clock)
        recorded = models.open("target", settings, store, Ledger(CAPS, store.spending(), clock))
        with pytest.raises(WhetError) as raised:
            await recorded.complete(ask(), purpose=Purpose.RANK)
        sent = endpoint.requests[0].headers
        assert SECRET in sent.get("authorization", "") + sent.get("x-api-key", ""), "the key was not used at all"
        await models.aclose()
        await store.aclose()
    told = "".join(traceback.format_exception(raised.value)) + repr(raised.value) + str(raised.value)
    assert SECRET not in told
    assert not [path for path in files_in(tmp_path) if SECRET.encode() in path.read_bytes()]
    with RunReader(tmp_path / "run.db") as reader:
        (line,) = reader.spending()
        assert (line.attempts, line.failed) == (1, 1)
