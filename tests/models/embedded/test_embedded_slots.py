"""Slots and kept prompts: what is free and fits is given, what overlaps most is preferred, the longest unused goes."""

from __future__ import annotations

from itertools import takewhile

from hypothesis import given
from hypothesis import strategies as st

from whet.models.embedded.slots import Desk, Shelf, Slot, Tokens, overlap

few = st.lists(st.integers(0, 2), max_size=12).map(tuple)


@given(few, few)
def test_overlap_is_the_common_beginning(first: Tokens, second: Tokens) -> None:
    assert overlap(first, second) == sum(
        1 for _ in takewhile(lambda pair: pair[0] == pair[1], zip(first, second, strict=False))
    )


def sat(desk: Desk, tokens: Tokens, adapter: str = "", need: int = 10) -> Slot:
    taken = desk.take(tokens, adapter, need)
    assert taken is not None
    return taken[0]


def test_a_conversation_goes_back_to_the_slot_that_holds_it() -> None:
    desk = Desk(3, 100)
    slots = [sat(desk, (number,) * 5) for number in range(3)]
    for number, slot in enumerate(slots):
        slot.tokens = (number,) * 5
        desk.leave(slot, known=True)
    assert sat(desk, (1, 1, 1, 1, 1, 9)) is slots[1]


def test_what_an_adapter_evaluated_is_nothing_to_another() -> None:
    slot = Slot(0, (1, 2, 3), "first")
    assert slot.holds((1, 2, 3), "first") == 3
    assert slot.holds((1, 2, 3), "second") == slot.holds((1, 2, 3), "") == 0


def test_a_slot_whose_call_was_broken_off_holds_nothing() -> None:
    desk = Desk(1, 100)
    slot = sat(desk, (1, 2))
    slot.tokens = (1, 2)
    desk.leave(slot, known=False)
    assert sat(desk, (1, 2)).holds((1, 2), "") == 0


@given(st.lists(st.tuples(few, st.integers(1, 40), st.booleans()), max_size=40))
def test_never_more_is_reserved_and_left_over_than_there_are_cells(steps: list[tuple[Tokens, int, bool]]) -> None:
    desk = Desk(4, 60)
    busy: list[Slot] = []
    for tokens, need, leave in steps:
        need = max(need, len(tokens) + 1)
        taken = desk.take(tokens, "", need)
        if taken is not None:
            slot, emptied = taken
            assert slot not in busy
            assert not any(other in busy for other in emptied)
            busy.append(slot)
            slot.tokens = tokens
        if leave and busy:
            desk.leave(busy.pop(0), known=True)
        in_use = sum(slot.reserved or len(slot.tokens) for slot in desk.slots)
        assert in_use <= desk.cells + sum(len(slot.tokens) for slot in desk.slots if not slot.reserved and leave)
        assert sum(slot.reserved for slot in desk.slots) <= desk.cells


def test_the_shelf_gives_the_longest_beginning_and_lets_the_longest_unused_go() -> None:
    shelf = Shelf(100)
    assert shelf.put((1, 2), "", "a", 40) == []
    assert shelf.put((1, 2, 3), "", "b", 40) == []
    best, shared = shelf.best((1, 2, 3, 4), "")
    assert (best and best.place, shared) == ("b", 3)
    assert shelf.best((1, 2, 3), "adapter") == (None, 0)
    first, _ = shelf.best((1, 2), "")
    assert first is not None
    shelf.touch(first)
    assert [dropped.place for dropped in shelf.put((9,), "", "c", 40)] == ["b" if first.place == "a" else "a"]


def test_what_is_larger_than_the_shelf_is_not_kept() -> None:
    assert [dropped.place for dropped in Shelf(10).put((1,), "", "a", 40)] == ["a"]
