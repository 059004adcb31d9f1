"""Frames on a socket, as the inner side reads and writes them: it may wait, and has nothing else to do."""

from __future__ import annotations

import contextlib
import os
import socket
import struct
from collections import deque
from collections.abc import Sequence

HEADER = struct.Struct("!IB")
"""How long a message is, and how many descriptors come with it."""
FRAME = struct.Struct("!IIB")
"""How long a payload is, which request it belongs to, and whether it is an answer or a failure."""
MOST_DESCRIPTORS = 4
OK, RAISED = 0, 1


class Line:
    """Messages with descriptors. Whoever is at the other end may be gone: then `receive` gives None."""

    def __init__(self, end: socket.socket) -> None:
        self._end = end
        self._bytes = bytearray()
        self._descriptors: deque[int] = deque()

    def fileno(self) -> int:
        return self._end.fileno()

    def send(self, message: bytes, descriptors: Sequence[int] = ()) -> None:
        data = HEADER.pack(len(message), len(descriptors)) + message
        with contextlib.suppress(BrokenPipeError, ConnectionResetError):
            sent = socket.send_fds(self._end, [data], list(descriptors)) if descriptors else 0
            self._end.sendall(data[sent:])

    def receive(self) -> tuple[bytes, list[int]] | None:
        """The next message, waiting for it."""
        while (message := self.waiting()) is None:
            if not self.read():
                return None
        return message

    def read(self) -> bool:
        """Takes what has come; false when there will be no more."""
        try:
            data, descriptors, _, _ = socket.recv_fds(self._end, 1 << 16, MOST_DESCRIPTORS)
        except ConnectionResetError:
            return False
        self._bytes += data
        self._descriptors.extend(descriptors)
        return bool(data)

    def waiting(self) -> tuple[bytes, list[int]] | None:
        """A message that is already here."""
        if len(self._bytes) < HEADER.size:
            return None
        length, count = HEADER.unpack_from(self._bytes)
        end = HEADER.size + length
        if len(self._bytes) < end:
            return None
        message = bytes(self._bytes[HEADER.size : end])
        del self._bytes[:end]
        return message, [self._descriptors.popleft() for _ in range(count)]

    def close(self) -> None:
        self._end.close()


def read_exactly(descriptor: int, length: int) -> bytes | None:
    """That many bytes, or None at the end."""
    parts = bytearray()
    while len(parts) < length:
        part = os.read(descriptor, min(length - len(parts), 1 << 20))
        if not part:
            return None
        parts += part
    return bytes(parts)


def write_all(descriptor: int, data: bytes) -> None:
    view = memoryview(data)
    while view:
        view = view[os.write(descriptor, view) :]


def read_frame(descriptor: int) -> tuple[int, bytes] | None:
    head = read_exactly(descriptor, FRAME.size)
    if head is None:
        return None
    length, number, _ = FRAME.unpack(head)
    payload = read_exactly(descriptor, length)
    return None if payload is None else (number, payload)


def write_frame(descriptor: int, number: int, status: int, payload: bytes) -> None:
    write_all(descriptor, FRAME.pack(len(payload), number, status) + payload)
