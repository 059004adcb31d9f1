"""What the page on wires says is there."""

from __future__ import annotations

import re
import shlex
import tomllib
from pathlib import Path

import click
import pytest

from whet.cli.world_serve import command
from whet.worlds.registry import BUILT_IN, settings_type
from whet.worlds.remote.mcp import McpWorld
from whet.worlds.remote.openenv import OpenEnvWorld

PAGE = (Path(__file__).parents[2] / "docs" / "serving-worlds.md").read_text("utf-8")


def blocks(language: str) -> list[str]:
    return re.findall(rf"^```{language}[^\n]*\n(.*?)^```", PAGE, re.DOTALL | re.MULTILINE)


@pytest.mark.parametrize("line", [line for block in blocks("sh") for line in block.splitlines()])
def test_every_command_can_be_given(line: str) -> None:
    words = shlex.split(line.partition("#")[0])
    assert words[:3] == ["whet", "world", "serve"]
    with click.Context(command) as context:
        command.parse_args(context, words[3:])


@pytest.mark.parametrize("text", blocks("toml"))
def test_every_setting_exists(text: str) -> None:
    from whet.project import decode_settings

    table = tomllib.loads(text)["world"]
    kind = settings_type({"openenv": OpenEnvWorld, "mcp": McpWorld}[table.pop("use")])
    assert kind is not None
    decode_settings(kind, table, where="world")


def test_both_kinds_are_built_in() -> None:
    assert {"openenv", "mcp"} <= set(BUILT_IN)
    assert len(blocks("toml")) == 2
