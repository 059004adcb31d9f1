"""`whet world`: which worlds there are, what one's settings mean, and whether one is sound."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path

import click
import msgspec

from whet.cli.boundary import NO
from whet.cli.checking import opened_judge
from whet.cli.fields import Field, fields_of
from whet.cli.loading import load_project, names_config
from whet.cli.numbers import plural
from whet.cli.options import CONFIG, closing, examples, json_option
from whet.cli.output import number, pairs, paragraph, print_json, print_table, rest, text, title
from whet.cli.world_import import command as import_worlds
from whet.cli.world_make import command as make
from whet.cli.world_serve import command as serve
from whet.core import InputError, Speaker, World
from whet.training import Project
from whet.worlds import WorldInfo, WorldReport, check_world, known_worlds, load_world
from whet.worlds.pack.export import export_world


class WorldFacts(msgspec.Struct, frozen=True):
    name: str
    description: str
    origin: str
    problem: str
    settings: tuple[Field, ...]


@click.group("world", epilog=examples("whet world list", "whet world show jsonl", "whet world check"))
def command() -> None:
    """The worlds that agents act in: list them, describe one, check one, serve one."""


command.add_command(serve)
command.add_command(import_worlds)
command.add_command(make)


@command.command("list", epilog=examples("whet world list"))
@json_option
def list_worlds(as_json: bool) -> None:
    """Every world that whet.toml can name."""
    worlds = known_worlds()
    if as_json:
        print_json([_facts(world) for world in worlds])
        return
    print_table(
        (text("world"), text("from"), rest("what it is")),
        [(world.name, world.origin, world.problem or world.description) for world in worlds],
    )
    click.echo('\nOne of your own is named by its file: use = "worlds/mine.py:Mine".')


@command.command("show", epilog=examples("whet world show jsonl"))
@click.argument("name")
@json_option
def show_world(name: str, as_json: bool) -> None:
    """What a world is, and the settings that it has in [world]."""
    worlds = {world.name: world for world in known_worlds()}
    if name not in worlds:
        raise InputError(f"there is no world {name!r}", hint=closing(name, worlds))
    facts = _facts(worlds[name])
    print_json(facts) if as_json else _print_facts(facts)


@command.command(
    "check", epilog=examples("whet world check", "whet world check other.toml", "whet world check grid_ctf")
)
@click.argument("world", metavar="[CONFIG or NAME]", default=CONFIG)
@json_option
def check(world: str, as_json: bool) -> None:
    """Play a few tasks of a world without an agent, and tell everything that is wrong with it.

    Such as: a task that is passed by doing nothing, an answer key that the agent could read, a known good answer that
    does not pass. A world whose answers are judged by a model makes a few calls. Exit code 1: something is wrong.
    """
    report = asyncio.run(_checked(world))
    print_json(report) if as_json else _print_report(report)
    if not report.sound:
        click.get_current_context().exit(NO)


@command.command("export", epilog=examples("whet world export pack awm", "whet world export whet.toml awm"))
@click.argument("world", metavar="CONFIG or NAME")
@click.argument("folder", type=click.Path(file_okay=False, path_type=Path))
@json_option
def export(world: str, folder: Path, as_json: bool) -> None:
    """Write a world of scenarios as files of the AgentWorldModel format, for any program that reads that format.

    Each scenario becomes a database, a FastAPI program that serves its tools, and a verifier for each task.
    """
    written = export_world(_loaded(world), folder)
    if as_json:
        print_json(written)
        return
    print_table((text("file"), number("rows")), [(name, str(count)) for name, count in written.files.items()])


def _loaded(world: str) -> World:
    return (
        load_project(Path(world), agent=False).world if names_config(world) else load_world(world, {}, base_dir=Path())
    )


async def _checked(world: str) -> WorldReport:
    if names_config(world):
        project = load_project(Path(world), agent=False)
        async with opened_judge(project):
            return await check_world(project.world, again=_reload(project))

    def load() -> World:
        return load_world(world, {}, base_dir=Path())

    return await check_world(load(), again=load)


def _reload(project: Project) -> Callable[[], World]:
    table = project.config.world_table
    judge = project.judge if project.config.judge.model else None
    return lambda: load_world(table.use, table.settings, base_dir=project.base_dir, judge=judge)


def _facts(world: WorldInfo) -> WorldFacts:
    settings = tuple(fields_of(world.settings)) if world.settings is not None else ()
    return WorldFacts(world.name, world.description, world.origin, world.problem, settings)


def _print_facts(facts: WorldFacts) -> None:
    click.secho(f"{facts.name} ({facts.origin})", bold=True)
    paragraph(facts.problem or facts.description)
    title("[world]")
    click.echo(f'use = "{facts.name}"')
    for field in facts.settings:
        click.echo("")
        default = "required" if field.required else f"default {field.default}" if field.default else "no default"
        click.echo(f"{click.style(field.name, bold=True)}  {field.kind}, {default}")
        if field.text:
            paragraph(field.text, indent="    ")


def _print_report(report: WorldReport) -> None:
    click.secho(f"{report.world}: {'sound' if report.sound else 'not sound'}", bold=True)
    pairs([("one session", f"{report.median_ms:.2g} ms without an agent"), ("fingerprint", report.fingerprint[:16])])
    click.echo("")
    print_table((text("split"), number("tasks")), [(split, str(count)) for split, count in report.tasks.items()])
    if report.transcript:
        title("One session, with nobody acting in it")
        for message in report.transcript:
            speaker = "task" if message.speaker is Speaker.USER else message.speaker.value
            paragraph(f"{speaker}: {message.text or '(nothing)'}", indent="  ")
            for call in message.tool_calls:
                paragraph(f"calls {call.name} {call.arguments}", indent="  ")
    if report.verdict is not None:
        paragraph(f"verdict: {'passed' if report.verdict.hard else 'failed'}, {report.verdict.feedback}", indent="  ")
    if report.problems:
        title(plural(len(report.problems), "problem"))
        for problem in report.problems:
            paragraph(str(problem))
