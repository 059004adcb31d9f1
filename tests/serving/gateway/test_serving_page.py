"""docs/serving.md: what it names is there."""

from __future__ import annotations

import re
from pathlib import Path

import click

from whet.cli.serve import command

PAGE = (Path(__file__).resolve().parents[3] / "docs" / "serving.md").read_text(encoding="utf-8")


def test_options_of_the_page_are_options_of_the_command() -> None:
    options = [name for option in command.params if isinstance(option, click.Option) for name in option.opts]
    known = {name for name in options if name.startswith("--")}
    elsewhere = {"--activate", "--force", "--channel", "--enable-lora"}
    named = set(re.findall(r"--[a-z][a-z-]+", PAGE))
    assert named - known - elsewhere == set()
    assert known - named <= {"--host", "--port", "--project", "--plain", "--json"}
