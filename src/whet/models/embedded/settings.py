"""How an embedded model is laid out on this machine. The same machine gets the same settings each time."""

from __future__ import annotations

import os

import msgspec

from whet.models.embedded.header import Header
from whet.models.embedded.server import Shape

_MIB = 1024 * 1024
_MOST_THREADS = 16
"""More of them wait for each other longer than they help, on models of this size."""


class EmbeddedSettings(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Zero leaves a choice to whet."""

    threads: int = 0
    """Threads that evaluate; 0: the cores that this process may use."""
    slots: int = 16
    """Requests that are answered at once."""
    context_mib: int = 1024
    """Memory for the context of all requests together."""
    prompts_mib: int = 512
    """Memory for evaluated prompts that others may begin with."""
    exact: bool = False
    """One request at a time, nothing reused: the same request gives the same text bit for bit."""

    def __post_init__(self) -> None:
        if self.threads < 0 or self.prompts_mib < 0:
            raise ValueError("`threads` and `prompts_mib` are not negative")
        if not 1 <= self.slots <= 256:
            raise ValueError("`slots` is from 1 to 256")
        if self.context_mib < 1:
            raise ValueError("`context_mib` is at least 1")


def shape_for(header: Header, settings: EmbeddedSettings) -> Shape:
    cells = settings.context_mib * _MIB // max(1, header.memory_per_token)
    slots = 1 if settings.exact else settings.slots
    threads = settings.threads or min(_MOST_THREADS, cores())
    most = header.context * slots
    return Shape(threads, slots, max(256, min(cells, most) // 256 * 256))


def cores() -> int:
    """Cores that this process may use, which a container or taskset makes fewer than there are."""
    if hasattr(os, "sched_getaffinity"):
        return max(1, len(os.sched_getaffinity(0)))
    return os.cpu_count() or 1
