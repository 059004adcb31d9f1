"""Where requests are evaluated, and what is known of the prompts that were. Pure: nothing here calls llama.cpp.

A desk has slots, and cells that the slots share: a token of context takes one. What a slot last held stays in it until
the room is needed, so that a conversation goes on where it was.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

Tokens = tuple[int, ...]


def overlap(first: Sequence[int], second: Sequence[int]) -> int:
    """How many tokens both begin with. Slices compare in C, so halving is faster than counting."""
    low, high = 0, min(len(first), len(second))
    while low < high:
        middle = (low + high + 1) // 2
        if first[low:middle] == second[low:middle]:
            low = middle
        else:
            high = middle - 1
    return low


class Slot(msgspec.Struct):
    number: int
    tokens: Tokens = ()
    adapter: str | None = ""
    """None: not known, for a call to it was broken off."""
    reserved: int = 0
    """Cells that the request in it may come to need; 0 while the slot is free."""
    used: int = 0
    """When it was last taken, counted in takings."""

    def holds(self, tokens: Tokens, adapter: str) -> int:
        return overlap(self.tokens, tokens) if self.adapter == adapter else 0


Taken = tuple[Slot, list[Slot]]
"""The slot, and those that have to be emptied before it is used."""


class Desk:
    def __init__(self, slots: int, cells: int) -> None:
        self.slots = [Slot(number) for number in range(slots)]
        self.cells = cells
        self._taken = 0

    def take(self, tokens: Tokens, adapter: str, need: int) -> Taken | None:
        """A free slot that holds most of `tokens`, and those to be emptied first; None while there is no room."""
        free = [slot for slot in self.slots if not slot.reserved]
        if not free or sum(slot.reserved for slot in self.slots) + need > self.cells:
            return None
        chosen = max(free, key=lambda slot: (slot.holds(tokens, adapter), -len(slot.tokens), -slot.used))
        self._taken += 1
        chosen.reserved, chosen.used = need, self._taken
        return chosen, self._to_empty()

    def leave(self, slot: Slot, *, known: bool) -> None:
        """Give a slot back. Where a call to it was broken off, nobody knows what is in it."""
        slot.reserved = 0
        if not known:
            slot.tokens, slot.adapter = (), None

    def _to_empty(self) -> list[Slot]:
        """The longest unused first, until what is reserved and what is left over fit together."""
        kept = sorted((slot for slot in self.slots if not slot.reserved and slot.tokens), key=lambda slot: slot.used)
        over = sum(slot.reserved + (0 if slot.reserved else len(slot.tokens)) for slot in self.slots) - self.cells
        emptied: list[Slot] = []
        for slot in kept:
            if over <= 0:
                break
            over -= len(slot.tokens)
            slot.tokens = ()
            emptied.append(slot)
        return emptied


class Kept(msgspec.Struct):
    """The evaluated state of a prompt, kept outside the slots."""

    tokens: Tokens
    adapter: str
    place: str
    size: int
    used: int


class Shelf:
    """Evaluated prompts, the longest unused let go first. Says what is to be dropped; others drop it."""

    def __init__(self, most_bytes: int) -> None:
        self._most_bytes = most_bytes
        self._kept: list[Kept] = []
        self._uses = 0

    def best(self, tokens: Tokens, adapter: str) -> tuple[Kept | None, int]:
        """The one that shares most with `tokens`, and how much that is."""
        best, most = None, 0
        for kept in self._kept:
            if kept.adapter == adapter and (shared := overlap(kept.tokens, tokens)) > most:
                best, most = kept, shared
        return best, most

    def touch(self, kept: Kept) -> None:
        self._uses += 1
        kept.used = self._uses

    def put(self, tokens: Tokens, adapter: str, place: str, size: int) -> list[Kept]:
        self._uses += 1
        self._kept.append(Kept(tokens, adapter, place, size, self._uses))
        self._kept.sort(key=lambda kept: kept.used)
        dropped: list[Kept] = []
        while sum(kept.size for kept in self._kept) > self._most_bytes:
            dropped.append(self._kept.pop(0))
        return dropped

    def forget(self, kept: Kept) -> None:
        self._kept = [other for other in self._kept if other is not kept]
