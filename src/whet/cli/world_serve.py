"""`whet world serve`: a world over the OpenEnv wire and MCP, or one of its tasks to play by hand."""

from __future__ import annotations

import asyncio
import os
import secrets
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import click

from whet.cli.checking import opened_judge
from whet.cli.interrupt import asked_to_end
from whet.cli.loading import load_project, names_config
from whet.cli.options import CONFIG, examples
from whet.core import InputError, World
from whet.worlds import held, load_world

if TYPE_CHECKING:
    from whet.serving.worlds import Limits, Place
    from whet.serving.worlds.seat import Episode

TOKEN = "WHET_WORLD_TOKEN"
_LOOPBACK = ("127.0.0.1", "localhost", "::1")


@click.command(
    "serve",
    epilog=examples(
        "whet world serve",
        "whet world serve othello --port 8000",
        "whet world serve othello --mcp",
        "whet world serve othello --stdio --task othello-3",
    ),
)
@click.argument("world", metavar="[CONFIG or NAME]", default=CONFIG)
@click.option("--host", default="127.0.0.1", show_default=True, help="The address to listen on.")
@click.option("--port", type=click.IntRange(0, 65535), default=8000, show_default=True, help="For trainers; 0 is any.")
@click.option("--agent-port", type=click.IntRange(0, 65535), default=0, help="For agents.  [default: any]")
@click.option("--sessions", type=click.IntRange(1), default=256, show_default=True, help="Most sessions at once.")
@click.option(
    "--idle", type=click.FloatRange(1), default=1800, show_default=True, help="Seconds until an idle one ends."
)
@click.option("--token", is_flag=True, help=f"Put trainers' addresses under a secret (from {TOKEN}, else a new one).")
@click.option("--mcp", is_flag=True, help="One task by hand, as a standard MCP server over HTTP.")
@click.option("--stdio", is_flag=True, help="The same over stdin and stdout.")
@click.option("--task", help="By hand: the task's id.  [default: the first]")
@click.option("--answer", type=click.Path(path_type=Path), help="By hand: a file that holds the answer at the end.")
def command(
    world: str,
    host: str,
    port: int,
    agent_port: int,
    sessions: int,
    idle: float,
    token: bool,
    mcp: bool,
    stdio: bool,
    task: str | None,
    answer: Path | None,
) -> None:
    """Serve a world to trainers and agents of other systems, until Ctrl-C.

    Trainers use the OpenEnv wire: the clients of openenv and openenv-core connect to the address that is printed. Each
    reset tells them an address for the agent, under which there are this episode's tools and nothing else.

    With --mcp or --stdio, play one task yourself from any MCP client. Ctrl-C, or closing the input, ends it, and the
    verdict is printed here.
    """
    if not mcp and not stdio and (task is not None or answer is not None):
        raise InputError("--task and --answer are for playing by hand", hint="Add --mcp or --stdio")
    from whet.serving.worlds import Limits, Place

    if mcp or stdio:
        asyncio.run(_by_hand(world, host, port, stdio=stdio, task=task, answer=answer))
        return
    limits = Limits(sessions=sessions, idle_seconds=idle)
    asyncio.run(_serve(world, limits, Place(host, port, agent_port, _token(host, token))))


async def _serve(name: str, limits: Limits, place: Place) -> None:
    from whet.serving.worlds import Hub, serving

    async with _opened(name) as world, serving(Hub(world, limits, tell=_log), place) as running:
        click.echo(f"world {world.name} for trainers: {running.url}")
        click.echo(f"its agents: {running.agent_url} (each reset tells the rest of the address)")
        click.echo("Ctrl-C ends it.")
        await asked_to_end()
    click.echo("ended", err=True)


async def _by_hand(name: str, host: str, port: int, *, stdio: bool, task: str | None, answer: Path | None) -> None:
    from whet.serving.worlds import Hub
    from whet.serving.worlds.standard import by_hand, over_http, over_stdio
    from whet.serving.worlds.wire import Reset

    def answered() -> str:
        return answer.read_text(encoding="utf-8") if answer is not None and answer.exists() else ""

    async with _opened(name) as world, asyncio.TaskGroup() as group:
        begin = Reset(task_id=task, deferred=True)
        async with by_hand(Hub(world, tell=_log), begin, answered, _print_verdict) as server:
            playing = group.create_task(over_stdio(server) if stdio else over_http(server, host, port, _log))
            interrupted = group.create_task(asked_to_end())
            await asyncio.wait([playing, interrupted], return_when=asyncio.FIRST_COMPLETED)
            interrupted.cancel()
            playing.cancel()
            await asyncio.wait([playing])


@asynccontextmanager
async def _opened(name: str) -> AsyncGenerator[World]:
    if names_config(name):
        project = load_project(Path(name), agent=False)
        async with opened_judge(project):
            yield project.world
    else:
        async with held(load_world(name, {}, base_dir=Path())) as world:
            yield world


def _token(host: str, wanted: bool) -> str:
    if not wanted:
        if host not in _LOOPBACK:
            hint = "Add --token: the address then holds a secret"
            raise InputError(f"{host} can be reached by others, who could reset and judge", hint=hint)
        return ""
    return os.environ.get(TOKEN) or secrets.token_urlsafe(24)


def _print_verdict(episode: Episode) -> None:
    verdict = episode.verdict
    if verdict is None:
        _log(f"task {episode.task.id}: no verdict; {episode.lost or 'the episode did not end'}")
        return
    said = f", {verdict.feedback}" if verdict.feedback else ""
    _log(f"task {episode.task.id}: {'passed' if verdict.hard else 'failed'} ({verdict.soft:.2f}){said}")


def _log(line: str) -> None:
    """On stderr: stdout may be a protocol's."""
    click.echo(line, err=True)
