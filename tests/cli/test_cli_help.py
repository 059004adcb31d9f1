"""Help, names, and what importing the command line costs."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator

import click
import pytest
from calling_whet import Whet

from whet import __version__
from whet.cli.app import SECTIONS, App, main

HEAVY = ("aiohttp", "msgspec", "rich", "sqlite3", "asyncio", "whet.core", "whet.training", "whet.worlds")


def _commands() -> Iterator[tuple[str, ...]]:
    """Every command, those of groups included."""
    assert isinstance(main, App)
    context = click.Context(main)
    for name in main.list_commands(context):
        command = main.get_command(context, name)
        yield (name,)
        if isinstance(command, click.Group):
            yield from ((name, inner) for inner in command.list_commands(context))


COMMANDS = list(_commands())


@pytest.mark.parametrize("names", COMMANDS, ids=" ".join)
def test_every_command_has_help_with_an_example_that_names_it(whet: Whet, names: tuple[str, ...]) -> None:
    shown = whet(*names, "--help")
    assert shown.exit_code == 0
    assert f"  whet {' '.join(names)}" in shown.stdout.partition("Example")[2]
    assert max(len(line) for line in shown.stdout.splitlines()) <= 100


@pytest.mark.parametrize("names", COMMANDS, ids=" ".join)
def test_every_command_can_answer_in_json(whet: Whet, names: tuple[str, ...]) -> None:
    if names not in (
        ("world",),
        ("world", "serve"),
        ("world", "import"),
        ("models",),
        ("import",),
        ("bench",),
        ("registry",),
    ):
        assert "--json" in whet(*names, "--help").stdout


def test_help_lists_every_command_in_80_columns(whet: Whet) -> None:
    shown = whet("--help")
    listed = [line.split()[0] for line in shown.stdout.splitlines() if line.startswith("  ") and line.split()]
    assert {name for commands in SECTIONS.values() for name in commands} <= set(listed)
    assert max(len(line) for line in shown.stdout.splitlines()) <= 80


def test_version(whet: Whet) -> None:
    assert whet("--version").stdout == f"whet {__version__}\n"


def test_without_a_command_the_help_is_shown(whet: Whet) -> None:
    for arguments in ([], ["world"], ["models"]):
        done = whet(*arguments)
        assert done.exit_code == 2
        assert "Commands:" in done.stderr or "Start here:" in done.stderr


def test_help_imports_nothing_that_it_does_not_need() -> None:
    code = f"""
import sys
from whet.cli import main
try:
    main(["--help"])
except SystemExit as end:
    assert not end.code
print([name for name in {HEAVY!r} if name in sys.modules], file=sys.stderr)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stderr == "[]\n"
