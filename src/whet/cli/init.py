"""`whet init`: a small working project."""

from __future__ import annotations

from importlib.resources import files
from importlib.resources.abc import Traversable
from pathlib import Path

import click

from whet.cli.options import examples
from whet.core import InputError

FILES = (
    "whet.toml",
    "models.py",
    "skill/SKILL.md",
    "tasks/train.jsonl",
    "tasks/selection.jsonl",
    "tasks/test.jsonl",
    "README.md",
)


@click.command("init", epilog=examples("whet init my-project", "cd my-project && whet train"))
@click.argument("folder", metavar="[DIR]", type=click.Path(path_type=Path), default=Path())
@click.option("--json", "as_json", is_flag=True, help="Print JSON, for machines.")
def command(folder: Path, as_json: bool) -> None:
    """Write a small working project to DIR, or here.

    It has tasks, a skill to start from, a whet.toml that explains itself, and two scripted models, so it can be trained
    at once, without a key. Nothing that exists is overwritten.
    """
    written = write_project(folder)
    if as_json:
        from whet.cli.output import print_json

        print_json({"folder": str(folder), "files": [str(path) for path in written]})
        return
    for path in written:
        click.echo(f"wrote {path}")
    click.echo("\nNext:")
    if folder != Path():
        click.echo(f"  cd {folder}")
    click.echo("  whet train\n  whet show")


def write_project(folder: Path) -> list[Path]:
    """Write every file, or none: what is in the way is found first."""
    for name in FILES:
        _require_free(folder / name)
    written: list[Path] = []
    for name in FILES:
        target = folder / name
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(template_text(name), encoding="utf-8")
        written.append(target)
    return written


def template_text(name: str) -> str:
    source: Traversable = files("whet.cli").joinpath("template")
    for part in name.split("/"):
        source = source.joinpath(part)
    return source.read_text(encoding="utf-8")


def _require_free(target: Path) -> None:
    blocked = next((parent for parent in target.parents if parent.exists() and not parent.is_dir()), None)
    if blocked is not None:
        raise InputError(f"{blocked} is not a folder", hint="Name another one: `whet init DIR`.")
    if target.is_dir() or (target.is_file() and target.stat().st_size > 0):
        raise InputError(f"{target} exists already", hint="Nothing was written; name another folder: `whet init DIR`.")
