"""Tables, numbers and the texts of settings."""

from __future__ import annotations

import json
from pathlib import Path

import msgspec
import pytest

from whet.cli import reference
from whet.cli.fields import fields_of
from whet.cli.numbers import short_count
from whet.cli.output import number, print_json, rest, table, text
from whet.training import Config
from whet.training.telling import duration

ROOT = Path(__file__).resolve().parents[2]


def test_numbers_are_right_aligned_and_rows_are_whole_in_a_pipe() -> None:
    lines = table(
        (text("name"), number("count"), rest("why")), [("a", "7", "x" * 200), ("long name", "1234", "y")], None
    )
    assert lines == ["name       count  why", f"a              7  {'x' * 200}", "long name   1234  y"]


@pytest.mark.parametrize("room", [80, 60, 40])
def test_a_table_fits_the_room_that_there_is(room: int) -> None:
    columns = (text("name"), number("count"), rest("why"))
    lines = table(columns, [("a name of some length " * 3, "1234567", "several words that wrap " * 5)], room)
    assert max(len(line) for line in lines) <= room
    assert "1234567" in "\n".join(lines)


def test_an_address_is_not_lost_by_wrapping() -> None:
    address = "https://example.test/" + "a" * 60
    lines = table((text("name"), rest("where")), [("x", address)], 40)
    assert "".join(line.strip().removeprefix("x").strip() for line in lines[1:]) == address


@pytest.mark.parametrize(
    ("seconds", "said"),
    [(0.44, "0.4 s"), (12.2, "12 s"), (59.7, "1 min 00 s"), (185, "3 min 05 s"), (7620, "2 h 07 min")],
)
def test_durations(seconds: float, said: str) -> None:
    assert duration(seconds) == said


@pytest.mark.parametrize(
    ("count", "said"),
    [(0, "0"), (9999, "9999"), (10_000, "10k"), (31_420, "31.4k"), (2_071_000, "2.07M"), (3 * 10**9, "3G")],
)
def test_short_counts(count: int, said: str) -> None:
    assert short_count(count) == said


class Base(msgspec.Struct, kw_only=True):
    shared: int = 1
    """Of every one."""


class Mine(Base, kw_only=True):
    own: tuple[str, ...] = ("a",)
    """First line
    and second."""
    bare: float | None = None


def test_fields_have_the_text_under_them_own_ones_first() -> None:
    own, bare, shared = fields_of(Mine)
    assert (own.name, own.kind, own.default, own.text) == ("own", "list of text", '["a"]', "First line and second.")
    assert (bare.name, bare.kind, bare.default, bare.text) == ("bare", "number", "", "")
    assert (shared.name, shared.kind, shared.default, shared.text) == ("shared", "whole number", "1", "Of every one.")


def test_the_reference_page_is_up_to_date() -> None:
    page = ROOT / "docs/configuration.md"
    assert page.read_text(encoding="utf-8") == reference.reference(), (
        "run: python -m whet.cli.reference docs/configuration.md"
    )


def test_every_table_and_role_of_the_configuration_is_in_the_reference() -> None:
    page = reference.reference()
    for field in msgspec.structs.fields(Config):
        assert f"## `[{field.encode_name}" in page
    for key in ("`base_url`", "`max_turns`", "`usd`", "`cached_input`"):
        assert page.count(f"| {key} |") == 1


def test_the_command_line_page_names_every_command() -> None:
    from whet.cli.app import SECTIONS

    page = (ROOT / "docs/cli.md").read_text(encoding="utf-8")
    for commands in SECTIONS.values():
        for name in commands:
            assert f"whet {name}" in page


def test_paths_are_written_as_json_like_texts(capsys: pytest.CaptureFixture[str]) -> None:
    print_json({"folder": Path("a/b")})
    assert json.loads(capsys.readouterr().out) == {"folder": "a/b"}
    with pytest.raises(TypeError, match="object cannot be written"):
        print_json(object())
