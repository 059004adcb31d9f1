"""A model that is a recorded file."""

from __future__ import annotations

from pathlib import Path

import pytest

from whet.core import InputError, ModelRequest, RequestRefused, system, user
from whet.models import ScriptedSender
from whet.models.scripted import replay

LINE = '{"messages": [["system", "be brief"], ["user", "2 + 2"]], "reply": "4"}\n'


async def test_what_was_recorded_is_answered_and_nothing_else(tmp_path: Path) -> None:
    (tmp_path / "a.jsonl").write_text(LINE)
    sender = ScriptedSender(replay(tmp_path / "a.jsonl"))
    asked = ModelRequest((system("be brief"), user("2 + 2")))
    assert (await sender.send(asked, 1.0, {})).text == "4"
    with pytest.raises(RequestRefused, match="3 \\+ 3"):
        await sender.send(ModelRequest((user("3 + 3"),)), 1.0, {})


@pytest.mark.parametrize("text", ["{", '{"reply": "x"}', '{"messages": [["user"]], "reply": "x"}', "[]"])
def test_a_line_that_is_no_answer_is_named(tmp_path: Path, text: str) -> None:
    (tmp_path / "a.jsonl").write_text(LINE + text)
    with pytest.raises(InputError, match=r"a\.jsonl:2"):
        replay(tmp_path / "a.jsonl")


def test_a_missing_file_is_one_clear_error(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="cannot be read"):
        replay(tmp_path / "none.jsonl")
