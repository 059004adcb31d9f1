"""`whet serve`: what is active in the registry, behind an OpenAI-compatible address."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path

import click

from whet.cli.options import examples, json_option, plain_option, project_option
from whet.core import ConfigError


@click.command(
    "serve",
    epilog=examples(
        "whet serve",
        "whet serve --base local/qwen2.5-coder-1.5b --port 9000 --canary 0.1",
        "whet serve --upstream http://127.0.0.1:8000/v1 --kind vllm --model my-model",
        "WHET_API_KEYS=key1,key2 whet serve --host 0.0.0.0",
    ),
)
@click.option("--host", default="127.0.0.1", show_default=True, help="The address to listen on.")
@click.option("--port", type=click.IntRange(0, 65535), default=8080, show_default=True, help="0 is any free one.")
@click.option(
    "--base", help="The base model, as the registry names it.  [default: the project's, or local/smollm2-135m]"
)
@click.option("--upstream", metavar="URL", default="", help="A server that has the base model; with /v1 at its end.")
@click.option("--kind", type=click.Choice(["openai", "vllm"]), help="How the upstream is spoken to.")
@click.option("--model", default="", help="The model's name on the upstream.")
@click.option("--canary", type=click.FloatRange(0, 1), default=0.0, help="Share for what is active on channel canary.")
@click.option("--capture", type=click.Path(path_type=Path), help="Write requests and answers to this file.")
@click.option("--redact", metavar="FILE.py:FUNCTION", help="What may be captured of an entry; None leaves it out.")
@click.option("--capture-mb", type=click.FloatRange(0.01), default=100.0, show_default=True, help="Kept at most.")
@click.option("--capture-days", type=click.FloatRange(0.001), default=30.0, show_default=True, help="Kept so long.")
@click.option("--queue", type=click.IntRange(0), default=256, show_default=True, help="Requests that may wait.")
@click.option("--timeout", type=click.FloatRange(1), default=600.0, show_default=True, help="Seconds a request has.")
@click.option("--grace", type=click.FloatRange(1), default=30.0, show_default=True, help="Seconds to end cleanly.")
@click.option("--open", "is_open", is_flag=True, help="Answer everybody who reaches --host, without keys.")
@project_option
@plain_option
@json_option
def command(
    host: str,
    port: int,
    base: str | None,
    upstream: str,
    kind: str | None,
    model: str,
    canary: float,
    capture: Path | None,
    redact: str | None,
    capture_mb: float,
    capture_days: float,
    queue: int,
    timeout: float,
    grace: float,
    is_open: bool,
    project: Path,
    plain: bool,
    as_json: bool,
) -> None:
    """Serve what is active in the registry to OpenAI clients, until Ctrl-C.

    A model's name is a world: `grid_ctf`; `grid_ctf@base` is the model without skill and adapter, `grid_ctf@canary`
    what is active on that channel, `grid_ctf@ID` a record. What `whet registry activate` changes is served within a
    second.

    With WHET_API_KEYS=key1,key2 callers need one of them. Without, only this machine is answered.
    """
    from whet.cli.serving import Plan, serve

    if upstream and not kind:
        raise ConfigError("--upstream needs --kind", hint="It is openai or vllm.")
    if (kind or model) and not upstream:
        raise ConfigError("--kind and --model say what is at --upstream", hint="Add its address.")
    if upstream and not (model or base):
        raise ConfigError("--upstream needs --model", hint="The model's name on that server.")
    if redact and capture is None:
        raise ConfigError("--redact is for --capture", hint="Say where to.")
    plan = Plan(
        host=host,
        port=port,
        base=base or (f"{kind}/{model}" if upstream else ""),
        upstream=upstream,
        kind=kind or "",
        model=model,
        canary=canary,
        capture=capture,
        redact=redact or "",
        capture_mb=capture_mb,
        capture_days=capture_days,
        queue=queue,
        timeout=timeout,
        grace=grace,
        is_open=is_open,
        project=project,
    )
    asyncio.run(serve(plan, os.environ, plain=plain, as_json=as_json))
