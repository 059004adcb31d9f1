"""A template: loads something slow once, and is forked for each worker. And the worker, which answers one at a time."""

from __future__ import annotations

import gc
import importlib
import os
import random
import signal
import socket
import threading
from typing import Any, NoReturn, Protocol

import msgspec

from whet.core import Json
from whet.sandbox.inside import kernel
from whet.sandbox.inside.confine import CHANNEL, Walls, leave_only
from whet.sandbox.inside.running import confined, describe, guarded
from whet.sandbox.inside.wire import OK, RAISED, Line, read_frame, write_frame
from whet.sandbox.orders import Box, Forked, ForkOrder, HostOrder, Loaded

_decode = msgspec.json.Decoder(ForkOrder).decode


class Hosted(Protocol):
    """What a template loads. The class is ours; what it loads may not be."""

    def __init__(self, settings: Json) -> None: ...

    def load(self) -> None:
        """The slow part: once, in the template."""
        ...

    def start(self, scratch: str) -> None:
        """In each worker, when it has been forked and has its own folder."""
        ...

    def answer(self, request: bytes) -> bytes: ...


def template(order: HostOrder, orders: int, above: int) -> NoReturn:
    line = Line(socket.socket(fileno=orders))
    try:
        host_class = _imported(order.place)
        walls = Walls(order.box, is_template=True)
        null = os.open(os.devnull, os.O_RDWR)
        leave_only({0: null, 1: null, 2: null, CHANNEL: orders}, walls.keep_open())
        line = Line(socket.socket(fileno=CHANNEL))
        walls.enter()
        kernel.die_with_parent(above) if kernel.IS_LINUX else None
        host: Hosted = host_class(order.settings)
        host.load()
        if threading.active_count() > 1:
            raise RuntimeError("it left threads running, and what has threads cannot be forked safely")
    except BaseException as error:  # noqa: BLE001 (whatever stops it is told to who asked for it)
        line.send(msgspec.json.encode(Loaded(describe(error))))
        os._exit(0)
    gc.collect()
    gc.freeze()
    line.send(msgspec.json.encode(Loaded()))
    _serve(line, host, walls, order.box)


def _serve(line: Line, host: Hosted, walls: Walls, box: Box) -> NoReturn:
    """Forks a worker for each order, until the line ends. The kernel buries the workers."""
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    me = os.getpid()
    while (message := line.receive()) is not None:
        order, (channel,) = _decode(message[0]), message[1]
        try:
            pid = os.fork()
        except OSError as error:
            line.send(msgspec.json.encode(Forked(order.id, 0, describe(error))))
        else:
            if pid == 0:
                guarded(lambda own=channel, asked=order: _work(host, walls, asked, own, me))
            line.send(msgspec.json.encode(Forked(order.id, pid)))
        os.close(channel)
    os._exit(0)


def _work(host: Hosted, walls: Walls, order: ForkOrder, channel: int, above: int) -> NoReturn:
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    leave_only({0: 0, 1: 1, 2: 2, CHANNEL: channel}, walls.keep_open())

    def enter() -> None:
        walls.narrow(order.scratch, order.limits)
        walls.close()
        kernel.die_with_parent(above) if kernel.IS_LINUX else None
        random.seed()
        host.start(order.scratch)

    confined(CHANNEL, enter)
    while (frame := read_frame(CHANNEL)) is not None:
        number, request = frame
        try:
            status, reply = OK, host.answer(request)
        except BaseException as error:  # noqa: BLE001 (told to who asked; the worker goes on)
            status, reply = RAISED, describe(error).encode()
        write_frame(CHANNEL, number, status, reply)
    os._exit(0)


def _imported(place: str) -> Any:
    module, _, name = place.partition(":")
    return getattr(importlib.import_module(module), name)
