"""The asyncio side of a line: whole messages out, whole messages in, never waiting while others could go on."""

from __future__ import annotations

import asyncio
import os
import socket
from collections import deque
from collections.abc import Callable, Sequence

from whet.sandbox.inside.wire import HEADER, MOST_DESCRIPTORS

_MOST_MESSAGE = 1 << 20


class AsyncLine:
    """`take` is given each message, and None once when there will be no more. Takes no descriptors from inside."""

    def __init__(self, end: socket.socket, take: Callable[[bytes | None], None]) -> None:
        self._end = end
        self._take = take
        self._incoming = bytearray()
        self._outgoing: deque[tuple[memoryview, list[int]]] = deque()
        self._loop = asyncio.get_running_loop()
        self._is_open = True
        end.setblocking(False)
        self._loop.add_reader(end, self._read)

    def send(self, message: bytes, descriptors: Sequence[int] = ()) -> None:
        """Goes out in order. The descriptors are the line's own from here on, and closed when they have gone."""
        if not self._is_open:
            _close_all(descriptors)
            return
        data = memoryview(HEADER.pack(len(message), len(descriptors)) + message)
        self._outgoing.append((data, list(descriptors)))
        if len(self._outgoing) == 1:
            self._write()

    def close(self) -> None:
        if not self._is_open:
            return
        self._is_open = False
        self._loop.remove_reader(self._end)
        self._loop.remove_writer(self._end)
        self._end.close()
        for _, descriptors in self._outgoing:
            _close_all(descriptors)
        self._outgoing.clear()
        self._take(None)

    def _write(self) -> None:
        try:
            while self._outgoing:
                data, descriptors = self._outgoing[0]
                sent = socket.send_fds(self._end, [data], descriptors) if descriptors else self._end.send(data)
                _close_all(descriptors)
                rest = data[sent:]
                if rest:
                    self._outgoing[0] = (rest, [])
                else:
                    self._outgoing.popleft()
        except BlockingIOError:
            self._loop.add_writer(self._end, self._write)
        except OSError:
            self.close()
        else:
            self._loop.remove_writer(self._end)

    def _read(self) -> None:
        try:
            data, descriptors, _, _ = socket.recv_fds(self._end, 1 << 16, MOST_DESCRIPTORS)
        except BlockingIOError:
            return
        except OSError:
            self.close()
            return
        _close_all(descriptors)
        self._incoming += data
        if not data or not self._give():
            self.close()

    def _give(self) -> bool:
        """Whether what has come can be messages."""
        while len(self._incoming) >= HEADER.size:
            length, count = HEADER.unpack_from(self._incoming)
            if length > _MOST_MESSAGE or count:
                return False
            end = HEADER.size + length
            if len(self._incoming) < end:
                break
            message = bytes(self._incoming[HEADER.size : end])
            del self._incoming[:end]
            self._take(message)
        return True


def pair() -> tuple[socket.socket, int]:
    """Two ends of a new socket: ours, which never waits, and a bare descriptor to give away."""
    ours, theirs = socket.socketpair()
    ours.setblocking(False)
    return ours, theirs.detach()


async def read_all(end: socket.socket, most: int) -> tuple[bytes, bool]:
    """Until the other side closes, or there is more than that: then true."""
    loop, parts = asyncio.get_running_loop(), bytearray()
    while len(parts) <= most:
        try:
            part = await loop.sock_recv(end, 1 << 16)
        except ConnectionResetError:
            break
        if not part:
            break
        parts += part
    return bytes(parts[:most]), len(parts) > most


async def read_exactly(end: socket.socket, length: int) -> bytes | None:
    """That many bytes, or None where the other side closed before."""
    loop, parts = asyncio.get_running_loop(), bytearray()
    while len(parts) < length:
        try:
            part = await loop.sock_recv(end, min(length - len(parts), 1 << 20))
        except ConnectionResetError:
            return None
        if not part:
            return None
        parts += part
    return bytes(parts)


def _close_all(descriptors: Sequence[int]) -> None:
    for descriptor in descriptors:
        os.close(descriptor)
    if isinstance(descriptors, list):
        descriptors.clear()
