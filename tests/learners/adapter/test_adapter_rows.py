"""Rows hold every example as if it were alone; orders are named by content; settings are checked."""

from __future__ import annotations

import subprocess
import sys
from contextlib import suppress
from pathlib import Path

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from trying_adapters import an_order, quick, some_examples

from whet.core import ConfigError, InputError
from whet.learners.adapter import AdapterSettings, Example
from whet.learners.adapter.orders import read_order, write_order
from whet.learners.adapter.plan import batch_of, plan_of, rate_at
from whet.learners.adapter.rows import Row, rows_of
from whet.learners.adapter.weights import GgufFile
from whet.project.settings import decode_settings

tokens = st.lists(st.integers(0, 2), min_size=1, max_size=5).map(tuple)
some = st.lists(st.builds(Example, tokens, tokens, st.just("p"), st.just("t"), st.just(1.0)), max_size=12)


def learned(row: Row) -> list[tuple[tuple[int, ...], int]]:
    """Each learned token of a row with all that it is seen to follow, as the mask has it."""
    seen: dict[int, list[int]] = {}
    for span in row.spans:
        for place in range(span.start, span.end):
            before = [each for start, end in span.before for each in range(start, end)]
            seen[place] = [*before, *range(span.start, place + 1)]
    for place, path in seen.items():
        assert [row.positions[each] for each in path] == list(range(len(path)))
        assert path[-1] == place
    return [(tuple(row.tokens[each] for each in seen[at]), to) for at, to in zip(row.at, row.targets, strict=True)]


def wanted(examples: list[Example]) -> list[tuple[tuple[int, ...], int]]:
    found: list[tuple[tuple[int, ...], int]] = []
    for each in examples:
        whole = (*each.prompt, *each.completion)
        found += [(whole[:place], whole[place]) for place in range(len(each.prompt), len(whole))]
    return found


@given(some, st.integers(1, 30), st.booleans())
def test_each_answer_is_learned_after_exactly_its_own_prompt(examples: list[Example], most: int, packing: bool) -> None:
    rows = rows_of(examples, most, packing=packing)
    assert sorted(pair for row in rows for pair in learned(row)) == sorted(wanted(examples))
    longest = max((each.length for each in examples), default=0)
    assert all(len(row.tokens) <= max(most, longest) for row in rows)
    assert sum(len(row.tokens) for row in rows) <= sum(each.length for each in examples)


def test_what_examples_begin_with_in_common_is_there_once() -> None:
    head = tuple(range(100))
    examples = [Example((*head, 200 + number), (7, 8), "p", "t", 1.0) for number in range(10)]
    (row,) = rows_of(examples, 512)
    assert len(row.tokens) == 100 + 10 * 2


def test_turns_of_one_episode_cost_what_the_whole_costs() -> None:
    first = Example((1, 2, 3), (4, 5), "p", "t", 1.0)
    second = Example((1, 2, 3, 4, 5, 6), (7, 8), "p", "t", 1.0)
    (row,) = rows_of([second, first], 512)
    assert len(row.tokens) == second.length - 1


def test_an_order_is_named_by_its_content_and_not_by_where_files_lie(tmp_path: Path) -> None:
    order = an_order(tmp_path / "a.gguf", quick(), some_examples(5))
    moved = msgspec.structs.replace(order, base_file="/elsewhere/a.gguf")
    assert moved.key == order.key
    assert msgspec.structs.replace(order, seed=6).key != order.key
    assert msgspec.structs.replace(order, base="other").key != order.key
    write_order(order, tmp_path)
    assert read_order(tmp_path) == order
    write_order(moved, tmp_path)
    assert read_order(tmp_path).key == order.key


def test_a_folder_holds_one_order_and_its_examples_unchanged(tmp_path: Path) -> None:
    order = an_order(tmp_path / "a.gguf", quick(), some_examples(5))
    write_order(order, tmp_path)
    with pytest.raises(InputError, match="another training"):
        write_order(msgspec.structs.replace(order, seed=9), tmp_path)
    (tmp_path / "examples.msgpack").write_bytes(msgspec.msgpack.encode(order.examples[:-1]))
    with pytest.raises(InputError, match="has changed"):
        read_order(tmp_path)


def test_held_out_tasks_are_whole_and_every_epoch_has_each_example_once() -> None:
    order = an_order(Path("x"), quick(max_length=20), some_examples(40))
    plan = plan_of(order)
    assert {each.task for each in plan.held_out}.isdisjoint({each.task for each in plan.learned})
    assert plan.held_out
    assert plan.left_out == sum(each.length > 20 for each in order.examples) > 0
    for epoch in range(2):
        steps = range(epoch * plan.each_epoch, (epoch + 1) * plan.each_epoch)
        drawn = [each for step in steps for each in batch_of(plan, step, 6, order.seed)]
        assert sorted(drawn, key=repr) == sorted(plan.learned, key=repr)


def test_one_task_alone_is_learned_from() -> None:
    examples = [msgspec.structs.replace(each, task="only") for each in some_examples(4)]
    assert len(plan_of(an_order(Path("x"), quick(held_out=0.5), examples)).learned) == 4


def test_the_rate_goes_up_and_then_down_to_nothing() -> None:
    rates = [rate_at(step, 40, 1.0) for step in range(40)]
    assert rates[:5] == [0.25, 0.5, 0.75, 1.0, 1.0]
    assert rates[4:] == sorted(rates[4:], reverse=True)
    assert rates[-1] < 0.01


@pytest.mark.parametrize(
    ("table", "said"),
    [
        ({"rank": 0}, "`rank` is at least 1"),
        ({"held_out": 0.9}, "`held_out` is between 0 and 0.5"),
        ({"learning_rate": 0.0}, "`learning_rate` is above 0"),
        ({"pick": "best"}, "best_of"),
        ({"epoch": 3}, "epochs"),
    ],
)
def test_wrong_settings_are_told(table: dict[str, object], said: str) -> None:
    with pytest.raises(ConfigError, match="adapter") as caught:
        decode_settings(AdapterSettings, table, where="adapter")
    assert said in str(caught.value)


def test_importing_the_room_loads_nothing_of_training() -> None:
    heavy = ("torch", "transformers", "peft", "gguf", "numpy", "safetensors", "aiohttp")
    source = f"import sys, whet.learners.adapter; print([m for m in {heavy!r} if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", source], capture_output=True, text=True, timeout=60, check=True)
    assert done.stdout.strip() == "[]"


@given(st.binary(max_size=200))
def test_a_file_that_is_no_model_is_an_error_and_never_a_crash(
    tmp_path_factory: pytest.TempPathFactory, data: bytes
) -> None:
    path = tmp_path_factory.getbasetemp() / "broken.gguf"
    path.write_bytes(b"GGUF\x03\x00\x00\x00" + data)
    with suppress(InputError), GgufFile(path) as file:
        assert len(file.tensors) * 24 <= len(data)
