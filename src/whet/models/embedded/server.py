"""One llama.cpp server within this process: started, asked over loopback with a key of its own, and ended.

Asking over loopback needs no thread of ours for each call, and closing a connection ends its generation. llama.cpp's
own log is off: what went wrong comes back as an error.
"""

from __future__ import annotations

import asyncio
import os
import secrets
from collections.abc import AsyncGenerator, Callable, Generator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path
from typing import Any, TypeVar

import msgspec

from whet.core import BadReply, ConfigError, EndpointBusy, InputError, RequestRefused
from whet.models.transport import HttpReply, Transport
from whet.models.wires.base import EventReader, decode_json

T = TypeVar("T")

_QUIET = -1
_OPENMP_WAIT = "OMP_WAIT_POLICY"
_SPARE_CONNECTIONS = 4
"""Beside one for each slot: for questions that need no slot."""


class Shape(msgspec.Struct, frozen=True):
    """How a server is laid out. Answers do not depend on it but for rounding."""

    threads: int
    slots: int
    cells: int
    """Tokens of context that all slots share."""


class Refusal(msgspec.Struct, frozen=True):
    message: str = ""


class RefusalBody(msgspec.Struct, frozen=True):
    error: Refusal = Refusal()


class Server:
    def __init__(self, handle: list[Any], address: str, key: str, transport: Transport, timeout: float) -> None:
        self._handle = handle
        self._address = address
        # llama.cpp ends a connection after a while, a hundred requests or a stream, and does not say so beforehand:
        # kept, it would fail the next who takes it. Over loopback a new one costs next to nothing.
        self._headers = {
            "authorization": f"Bearer {key}",
            "content-type": "application/json",
            "connection": "close",
        }
        self._transport = transport
        self._timeout = timeout

    @classmethod
    async def start(
        cls, file: Path, adapters: tuple[Path, ...], shape: Shape, states: str, transport: Transport
    ) -> Server:
        """Raises InputError where llama.cpp does not take the file or an adapter."""
        key = secrets.token_hex(16)
        handle, address = await in_thread(lambda: _start(file, adapters, shape, states, key))
        return cls(handle, address, key, transport, timeout=3600.0)

    async def close(self) -> None:
        """Waits until its threads have ended."""
        if self._handle:
            await in_thread(self._handle.clear)

    async def post(self, path: str, body: Mapping[str, Any], type: type[T]) -> T:
        reply = await self._transport.post(
            self._address + path, self._headers, msgspec.json.encode(body), self._timeout
        )
        if reply.status != 200:
            raise _refused(reply)
        try:
            return msgspec.json.decode(reply.body, type=type)
        except (msgspec.DecodeError, UnicodeError) as error:
            raise BadReply(f"llama.cpp answered {path} with something else: {error}") from error

    async def stream(self, path: str, body: Mapping[str, Any], type: type[T]) -> AsyncGenerator[T]:
        """The same, its answer piece by piece. Closing it ends the generation."""
        told = msgspec.json.encode({**body, "stream": True})
        reader, decoder = EventReader(), msgspec.json.Decoder(type)
        async with self._transport.stream(self._address + path, self._headers, told, self._timeout) as reply:
            if reply.status != 200:
                raise _refused(HttpReply(reply.status, reply.headers, await reply.read()))
            async for chunk in reply.chunks():
                for event in reader.feed(chunk):
                    if event != b"[DONE]":
                        yield decode_json(decoder, event)


def _start(file: Path, adapters: tuple[Path, ...], shape: Shape, states: str, key: str) -> tuple[list[Any], str]:
    try:
        with _patient_threads():
            xllamacpp: Any = import_module("xllamacpp")
    except ImportError as error:
        raise ConfigError("embedded models need the extra `local`", hint="pip install 'whet[local]'") from error
    params = xllamacpp.CommonParams()
    params.model.path = str(file)
    params.lora_adapters = [xllamacpp.CommonAdapterLoraInfo(str(path), 1.0) for path in adapters]
    params.lora_init_without_apply = True
    params.n_ctx, params.n_parallel, params.kv_unified = shape.cells, shape.slots, True
    params.cpuparams.n_threads = params.cpuparams_batch.n_threads = shape.threads
    params.n_threads_http = shape.slots + _SPARE_CONNECTIONS
    params.fit_params = False
    # What is reused is decided here, by slot and by saved state; llama.cpp's own cache may mix up adapters.
    params.cache_ram_mib, params.cache_idle_slots, params.slot_prompt_similarity = 0, False, 0.0
    params.slot_save_path = states
    params.endpoint_slots, params.ui = True, False
    params.prefill_assistant = False
    params.api_keys, params.cors_origins = [key], ""
    params.verbosity = _QUIET
    try:
        handle = [xllamacpp.Server(params)]
    except (RuntimeError, ValueError) as error:
        with_adapters = f" with {', '.join(path.name for path in adapters)}" if adapters else ""
        raise InputError(f"llama.cpp does not take {file}{with_adapters}: {error}") from error
    return handle, str(handle[0].listening_address)


@contextmanager
def _patient_threads() -> Generator[None]:
    """llama.cpp's threads wait for each other many times a token. By default they spin while they wait, which keeps
    away those that are waited for where others use the cores too: 1 token a second was seen where 26 are possible.
    OpenMP reads how to wait when it is loaded, so it is said for that moment only; what a user says goes first."""
    if _OPENMP_WAIT in os.environ:
        yield
        return
    os.environ[_OPENMP_WAIT] = "passive"
    try:
        yield
    finally:
        del os.environ[_OPENMP_WAIT]


def _refused(reply: HttpReply) -> Exception:
    try:
        message = msgspec.json.decode(reply.body, type=RefusalBody).error.message
    except (msgspec.DecodeError, UnicodeError):
        message = ""
    message = " ".join(message.split())[:500] or f"status {reply.status}"
    if reply.status == 503:
        return EndpointBusy(f"the embedded model is not ready: {message}")
    return RequestRefused(f"the embedded model refuses the request: {message}")


async def in_thread(work: Callable[[], T]) -> T:
    """In a thread of its own that has ended when this returns. Cancelling waits for it: what it makes would be lost."""
    with ThreadPoolExecutor(1, "whet llama.cpp") as pool:
        return await asyncio.get_running_loop().run_in_executor(pool, work)
