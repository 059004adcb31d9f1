"""Tokens in, tokens out: many at once, each with its adapter, what they begin with in common evaluated once.

The first request with a beginning that is not known evaluates its prompt and keeps the state; those that begin alike
wait for that moment, take the state over into slots of their own, and evaluate only what is theirs.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Mapping
from contextlib import aclosing, asynccontextmanager, suppress
from pathlib import Path
from typing import Any, TypeVar

import msgspec

from whet.core import BadReply, RequestRefused
from whet.models.embedded.server import Server, Shape
from whet.models.embedded.servers import Running, Servers
from whet.models.embedded.slots import Desk, Shelf, Slot, Tokens, overlap
from whet.models.embedded.states import States, states_here
from whet.models.transport import AioTransport

_WORTH = 64
"""Tokens whose state is worth keeping, and waiting for: they take longer to evaluate than their state to copy."""


T = TypeVar("T")


class Timings(msgspec.Struct, frozen=True):
    cache_n: int = 0
    prompt_n: int = 0


class Completion(msgspec.Struct, frozen=True):
    """What llama.cpp answers, as far as it matters here."""

    content: str
    stop_type: str
    tokens_predicted: int
    tokens_evaluated: int
    """Of the prompt, those from a cache included."""
    timings: Timings
    tokens: Tokens = ()


class Piece(msgspec.Struct, frozen=True):
    """Of an answer that is streamed; the last one says how it ended."""

    content: str = ""
    tokens: Tokens = ()
    stop: bool = False
    stop_type: str = ""
    tokens_predicted: int = 0
    tokens_evaluated: int = 0


class Saved(msgspec.Struct, frozen=True):
    n_written: int


class Anything(msgspec.Struct, frozen=True):
    pass


class Engine:
    """Belongs to one event loop, and is closed in it. Starts nothing until it is asked."""

    def __init__(self, file: Path, shape: Shape, *, keep_bytes: int, reuse: bool) -> None:
        self._file = file
        self._shape = shape
        self._reuse = reuse
        self._transport = AioTransport()
        self._states: States | None = None
        self._shelf = Shelf(keep_bytes)
        self._servers = Servers(self._start, lambda: Desk(shape.slots, shape.cells))
        self._leaders: list[_Leader] = []
        self.evaluated = 0
        """Prompt tokens that were evaluated rather than taken from what was known."""

    async def ask(self, path: str, body: Mapping[str, Any], type: type[T]) -> T:
        """A question that needs no slot, such as what a text's tokens are."""
        async with self._servers.lease() as running:
            return await running.server.post(path, body, type)

    async def chat(
        self,
        tokens: Tokens,
        need: int,
        body: Mapping[str, Any],
        type: type[T],
        adapter: str = "",
        file: Path | None = None,
    ) -> tuple[T, int]:
        """For what only llama.cpp's chat form can do. `tokens` is what it renders to. Says too how many were known."""
        async with self.seat(tokens, need, adapter, file) as seat:
            cached = await self._prepare(seat, tokens) if self._reuse else 0
            answer = await seat.post("/v1/chat/completions", body, type)
            seat.holds(tokens)
            self.evaluated += len(tokens) - cached
            return answer, cached

    async def complete(
        self, tokens: Tokens, need: int, sampling: Mapping[str, Any], adapter: str = "", file: Path | None = None
    ) -> Completion:
        """Go on from `tokens`; they and the answer take `need` cells at most. Timings say what was evaluated."""
        async with self.seat(tokens, need, adapter, file) as seat:
            cached = await self._prepare(seat, tokens) if self._reuse else 0
            body = {"prompt": tokens, "return_tokens": True, **sampling}
            completion = await seat.post("/completion", body, Completion)
            seat.holds(tokens + completion.tokens)
            evaluated = completion.timings.prompt_n if not self._reuse else len(tokens) - cached
            self.evaluated += evaluated
            return msgspec.structs.replace(completion, timings=Timings(len(tokens) - evaluated, evaluated))

    async def stream(
        self, tokens: Tokens, need: int, sampling: Mapping[str, Any], adapter: str = "", file: Path | None = None
    ) -> AsyncGenerator[str | Completion]:
        """As `complete`, with the text as it arrives and at the end the whole. To be closed by whoever leaves early."""
        async with self.seat(tokens, need, adapter, file) as seat:
            cached = await self._prepare(seat, tokens) if self._reuse else 0
            self.evaluated += len(tokens) - cached
            texts: list[str] = []
            answer: list[int] = []
            body = {"prompt": tokens, "return_tokens": True, **sampling}
            async with aclosing(seat.stream("/completion", body, Piece)) as pieces:
                async for piece in pieces:
                    texts.append(piece.content)
                    answer += piece.tokens
                    if piece.stop:
                        seat.holds((*tokens, *answer))
                        timings = Timings(cached, len(tokens) - cached)
                        counts = piece.tokens_predicted, piece.tokens_evaluated, timings
                        yield Completion("".join(texts), piece.stop_type, *counts, tuple(answer))
                        return
                    if piece.content:
                        yield piece.content
        raise BadReply("llama.cpp's answer broke off before its end")

    @asynccontextmanager
    async def seat(
        self, tokens: Tokens, need: int, adapter: str = "", file: Path | None = None
    ) -> AsyncGenerator[Seat]:
        """A slot of a server that has the adapter, from when there is room for `need` cells."""
        async with self._servers.lease(adapter, file) as running:
            await self._follow(tokens, adapter, 0)
            slot, to_empty = await running.take(tokens, adapter, need)
            seat = Seat(running, slot, adapter, reuse=self._reuse)
            try:
                for other in to_empty:
                    await running.server.post(f"/slots/{other.number}?action=erase", {}, Anything)
                yield seat
            finally:
                running.leave(slot, known=seat.known)

    async def close(self) -> None:
        await self._servers.close()
        await self._transport.close()
        if self._states is not None:
            self._states.close()
            self._states = None

    async def _start(self, adapters: tuple[Path, ...]) -> Server:
        if self._states is None:
            self._states = states_here()
        return await Server.start(self._file, adapters, self._shape, self._states.folder, self._transport)

    async def _prepare(self, seat: Seat, tokens: Tokens) -> int:
        """Bring the slot as far as can be without evaluating twice what others evaluate. Returns the tokens saved."""
        await self._follow(tokens, seat.adapter, seat.slot.holds(tokens, seat.adapter))
        held = await self._take_over(seat, tokens)
        known = min(held, len(tokens) - 1)
        if len(tokens) - known < _WORTH:
            return known
        with _Leader(self._leaders, tokens, seat.adapter):
            first = await seat.post("/completion", {"prompt": tokens, "n_predict": 0}, Completion)
            seat.holds(tokens)
            await self._keep(seat, tokens)
        return len(tokens) - first.timings.prompt_n

    async def _follow(self, tokens: Tokens, adapter: str, held: int) -> None:
        """Wait while somebody evaluates more of these tokens than is known already."""
        if not self._reuse:
            return
        while True:
            known = max(held, self._shelf.best(tokens, adapter)[1])
            leader = next((one for one in self._leaders if one.shares(tokens, adapter) >= known + _WORTH), None)
            if leader is None:
                return
            await leader.ended.wait()

    async def _take_over(self, seat: Seat, tokens: Tokens) -> int:
        """Put the best kept state into the slot if it holds more than the slot does. Returns how much is then held."""
        held = seat.slot.holds(tokens, seat.adapter)
        kept, shared = self._shelf.best(tokens, seat.adapter)
        if kept is None:
            return held
        self._shelf.touch(kept)
        if shared - held < _WORTH // 2:
            return held
        if seat.slot.adapter != seat.adapter:
            # llama.cpp drops what a slot holds when its adapter changes, so that change comes first.
            await seat.post("/completion", {"prompt": tokens[:1], "n_predict": 0}, Completion)
        try:
            body = {"filename": kept.place}
            await seat.running.server.post(f"/slots/{seat.slot.number}?action=restore", body, Anything)
        except RequestRefused:
            self._drop(kept.place)
            self._shelf.forget(kept)
            seat.holds(())
            return 0
        seat.holds(kept.tokens)
        return shared

    async def _keep(self, seat: Seat, tokens: Tokens) -> None:
        """Keep the slot's state for others. Where that fails they evaluate it themselves."""
        assert self._states is not None, "a server was started"
        place = self._states.new()
        kept = False
        try:
            with suppress(RequestRefused):
                path = f"/slots/{seat.slot.number}?action=save"
                saved = await seat.running.server.post(path, {"filename": place}, Saved)
                kept = True
                for dropped in self._shelf.put(tokens, seat.adapter, place, saved.n_written):
                    self._drop(dropped.place)
        finally:
            if not kept:
                self._drop(place)

    def _drop(self, place: str) -> None:
        if self._states is not None:
            self._states.drop(place)


class Seat:
    """A slot for the time of one request."""

    def __init__(self, running: Running, slot: Slot, adapter: str, *, reuse: bool) -> None:
        self.running = running
        self.slot = slot
        self.adapter = adapter
        self._reuse = reuse
        self.known = True
        """What the slot holds is known."""

    def holds(self, tokens: Tokens) -> None:
        self.slot.tokens, self.slot.adapter = tokens, self.adapter
        self.known = True

    async def post(self, path: str, body: Mapping[str, Any], type: type[T]) -> T:
        """What the slot holds is not known until the caller says so afterwards."""
        self.known = False
        return await self.running.server.post(path, self._placed(body), type)

    def stream(self, path: str, body: Mapping[str, Any], type: type[T]) -> AsyncGenerator[T]:
        self.known = False
        return self.running.server.stream(path, self._placed(body), type)

    def _placed(self, body: Mapping[str, Any]) -> dict[str, Any]:
        return {
            **body,
            "id_slot": self.slot.number,
            "cache_prompt": self._reuse,
            "lora": self.running.scales(self.adapter),
        }


class _Leader:
    """Somebody who evaluates a prompt right now."""

    def __init__(self, leaders: list[_Leader], tokens: Tokens, adapter: str) -> None:
        self._leaders = leaders
        self._tokens = tokens
        self._adapter = adapter
        self.ended = asyncio.Event()

    def shares(self, tokens: Tokens, adapter: str) -> int:
        return overlap(self._tokens, tokens) if adapter == self._adapter else 0

    def __enter__(self) -> None:
        self._leaders.append(self)

    def __exit__(self, *exc_info: object) -> None:
        self._leaders.remove(self)
        self.ended.set()
