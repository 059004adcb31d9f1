"""Files and descriptions from outside may be anything: what is wrong is named, and nothing breaks."""

from __future__ import annotations

import copy
import json
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from random import Random
from typing import Any

import pytest
from scenarios import scenario, write_folder
from test_awm_reading import OPENAPI

from whet.core import InputError
from whet.worlds.awm import read_layout
from whet.worlds.awm.operations import tools_from
from whet.worlds.schema import problems_of

ODD: tuple[Any, ...] = (None, True, -1, 10**30, 1.5, "", "x", "\udc80", [], [1], {}, {"a": {}}, [[]], "/" * 99)


def mutated(line: bytes, chance: Random) -> bytes:
    text = bytearray(line)
    for _ in range(chance.randrange(1, 6)):
        place = chance.randrange(len(text) or 1)
        match chance.randrange(4):
            case 0:
                text[place : place + 1] = bytes([chance.randrange(256)])
            case 1:
                del text[place : place + chance.randrange(1, 40)]
            case 2:
                text[place:place] = chance.choice([b'"', b"{", b"]", b"\\", b"\xff", b"null", b"[" * 50])
            case _:
                text = text[: max(1, place)]
    return bytes(text).replace(b"\n", b" ")


@pytest.mark.slow
def test_twenty_thousand_malformed_lines_are_each_told_or_taken(tmp_path: Path) -> None:
    chance = Random(1)
    folder = write_folder(tmp_path, scenario())
    told = 0
    for path in sorted(folder.glob("*.jsonl")):
        whole = path.read_bytes()
        path.write_bytes(b"\n".join(mutated(whole.splitlines()[0], chance) for _ in range(2500)))
        layout = read_layout(folder)
        told += sum(map(len, layout.problems.values()))
        path.write_bytes(whole)
    assert told > 10_000


def test_a_file_that_is_a_folder_or_no_text_is_told(tmp_path: Path) -> None:
    folder = write_folder(tmp_path, scenario())
    (folder / "gen_envs.jsonl").write_bytes(bytes(range(256)))
    assert "note_book_" in read_layout(folder).problems
    (folder / "gen_envs.jsonl").unlink()
    (folder / "gen_envs.jsonl").mkdir()
    with pytest.raises(InputError, match=r"lacks gen_envs\.jsonl"):
        read_layout(folder)


def places(node: Any) -> Iterator[tuple[Any, Any]]:
    if isinstance(node, dict | list):
        for key in list(node) if isinstance(node, dict) else range(len(node)):
            yield node, key
            yield from places(node[key])


def spoiled(node: Any, chance: Random) -> Any:
    made = copy.deepcopy(node)
    for _ in range(chance.randrange(1, 4)):
        above, key = chance.choice(list(places(made)))
        above[key] = copy.deepcopy(chance.choice(ODD))
    return made


@pytest.mark.slow
def test_ten_thousand_odd_descriptions_of_tools_break_nothing() -> None:
    chance = Random(2)
    tools = 0
    for _ in range(10_000):
        described = tools_from(spoiled(OPENAPI, chance))
        for tool in described.tools:
            tools += 1
            json.dumps(tool.spec.parameters)
            if not described.problems:
                tool.request({"item_id": 1, "body": []})
    assert tools > 5_000


@pytest.mark.slow
def test_fifty_thousand_odd_arguments_are_each_refused_or_sent() -> None:
    chance = Random(3)
    tool = tools_from(OPENAPI).tools[0]
    good = {"item_id": 7, "dry": True, "name": "pen", "kind": "a", "part": {"name": "x"}}
    refused = 0
    for _ in range(50_000):
        arguments = spoiled(good, chance)
        if not isinstance(arguments, dict) or problems_of(arguments, tool.spec.parameters):
            refused += 1
        else:
            with suppress(UnicodeEncodeError):  # which a session answers as arguments that do not fit
                tool.request(arguments)
    assert 40_000 < refused < 50_000
