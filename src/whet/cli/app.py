"""The command `whet`: which commands there are, and where each of them is."""

from __future__ import annotations

import importlib
import os
import sys
from collections.abc import Mapping
from typing import Any

import click

from whet import __version__
from whet.cli.boundary import boundary
from whet.cli.options import closing

SECTIONS: Mapping[str, Mapping[str, str]] = {
    "Start here": {
        "demo": "A small model becomes good at a job, on this machine: no key.",
        "init": "Write a small working project to change.",
    },
    "Train and measure": {
        "train": "Run a training, or go on with one.",
        "eval": "Play a split with a policy: pass rates with intervals.",
        "certify": "Prove the gain of a run on tasks that nobody selected on.",
        "bench": "Other trainers on your tasks, with your models and one budget.",
        "audit": "Is the verifier any good, the suite large enough, and what will it cost?",
    },
    "Look at runs": {
        "runs": "One line for each run.",
        "show": "What a run tried, kept and spent.",
        "watch": "Follow a run while another process trains it.",
        "diff": "What changed between two skills of a run.",
        "report": "A run's report as one HTML page.",
        "export": "Write what a run stored as lines of JSON.",
    },
    "Publish and serve": {
        "registry": "What is published, what speaks for it, and what is active.",
        "serve": "An OpenAI-compatible server in front of what is active.",
    },
    "Parts": {
        "world": "List worlds, describe one, check one, serve one.",
        "models": "List providers and prices, check the models of a project.",
        "import": "Read what other systems wrote.",
        "doctor": "What works on this machine, and what mends the rest.",
    },
}
"""Kept here and not asked of the commands, so that `whet --help` imports none of them."""

_MODULES = {"import": "importing"}
"""Where a command's name is none that a module may have."""

_HELP = """Sharpen an LLM agent against tasks that can be checked, and keep only the changes that are proven.

A project is a folder with a whet.toml; `whet init` makes one. Everything a run does is kept in runs/NAME, and the same
command goes on with it after any end.
"""


class App(click.Group):
    """Imports a command when it is called, and stands at the outermost edge of the program."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return [name for commands in SECTIONS.values() for name in commands]

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in self.list_commands(ctx):
            return None
        return importlib.import_module(f"whet.cli.{_MODULES.get(cmd_name, cmd_name)}").command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        known = self.list_commands(ctx)
        if args and args[0] not in known and not args[0].startswith("-"):
            raise click.UsageError(f"there is no command {args[0]!r}. {closing(args[0], known)}", ctx)
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        for title, commands in SECTIONS.items():
            with formatter.section(title):
                formatter.write_dl(list(commands.items()), col_max=10)

    def main(self, *args: Any, **kwargs: Any) -> Any:
        """As click's, but every end is an exit code of ours: 0, 1 (the answer is no) or 2 (it could not run)."""
        kwargs["standalone_mode"] = False
        kwargs["prog_name"] = "whet"
        with boundary(os.environ):
            code = super().main(*args, **kwargs)
        sys.exit(code if isinstance(code, int) else 0)


@click.command(
    cls=App,
    help=_HELP,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
    epilog="`whet COMMAND --help` shows an example of each.",
    no_args_is_help=True,
)
@click.version_option(__version__, prog_name="whet", message="%(prog)s %(version)s")
@click.pass_context
def main(ctx: click.Context) -> None:
    if os.environ.get("NO_COLOR"):
        ctx.color = False
