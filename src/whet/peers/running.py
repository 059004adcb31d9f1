"""Which peers there are, which Python each lives in, and how one is run."""

from __future__ import annotations

import asyncio
import os
import sys
from asyncio.subprocess import PIPE, Process
from collections.abc import Mapping, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import msgspec

from whet.core import InputError, RunStopped, Skill, Split, Task, WhetError
from whet.peers.bridge import Bridge

DRIVERS = Path(__file__).with_name("drivers")
PEERS = {"gepa": "gepa==0.1.4", "skillopt": "skillopt==0.2.0"}
"""By the name of the module that it brings: what to install."""


class Peer(msgspec.Struct, frozen=True):
    name: str
    python: str


class Shipped(msgspec.Struct, frozen=True):
    """What a driver says at its end."""

    skill: str
    version: str
    settings: str
    """How the peer was used, in words."""


def find_peers(named: Sequence[str]) -> list[Peer]:
    """`named` as NAME=PYTHON; without any, those that are installed beside whet."""
    if not named:
        return [Peer(name, sys.executable) for name in PEERS if find_spec(name) is not None]
    return [_named(one) for one in named]


def _named(text: str) -> Peer:
    name, _, python = text.partition("=")
    if name not in PEERS:
        raise InputError(f"there is no peer {name!r}", hint=f"There are: {', '.join(PEERS)}.")
    if python and not os.access(python, os.X_OK):
        hint = f"Make one: python -m venv /tmp/{name} && /tmp/{name}/bin/pip install {PEERS[name]}"
        raise InputError(f"--peer {name}: {python} is not a Python that can be run", hint=hint)
    return Peer(name, python or sys.executable)


async def run_peer(
    peer: Peer, bridge: Bridge, *, folder: Path, skill: Skill, splits: Mapping[Split, Sequence[Task]], **told: Any
) -> Shipped:
    """The skill that the peer ships. It sees no environment of the user's: no keys, no settings."""
    question = {
        "url": bridge.url,
        "skill": skill.text,
        "folder": str(folder),
        "tasks": {str(split): [_item(task) for task in tasks] for split, tasks in splits.items()},
        **told,
    }
    asked = _written(folder, question)
    process = await asyncio.create_subprocess_exec(
        peer.python,
        str(DRIVERS / f"drive_{peer.name}.py"),
        str(asked),
        cwd=folder,
        env={"PATH": os.defpath, "HOME": str(folder), "TMPDIR": str(folder)},
        stdout=PIPE,
        stderr=PIPE,
        limit=1 << 24,
    )
    try:
        out, said = await process.communicate()
    finally:
        await _end(process)
    if process.returncode == 0:
        return msgspec.json.decode(out.splitlines()[-1], type=Shipped)
    raise _failed(peer, bridge.failure, said.decode(errors="replace"))


def _written(folder: Path, question: dict[str, Any]) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    asked = folder / "asked.json"
    asked.write_bytes(msgspec.json.encode(question))
    return asked


def _item(task: Task) -> dict[str, Any]:
    return {"id": task.id, "question": msgspec.json.encode(task.inputs).decode(), "task_type": task.kind}


def _failed(peer: Peer, refused: WhetError | None, said: str) -> WhetError:
    lines = [line for line in said.strip().splitlines() if line.strip()]
    last = lines[-1] if lines else "it said nothing"
    if refused is not None:
        return RunStopped(f"{peer.name} was stopped: {refused.message}", hint=refused.hint)
    if f"No module named '{peer.name}'" in last:
        hint = f"Install {PEERS[peer.name]} there, or name another with --peer {peer.name}=PYTHON."
        return InputError(f"{peer.python} has no {peer.name}", hint=hint)
    return RunStopped(f"{peer.name} failed: {last[:300]}")


async def _end(process: Process) -> None:
    if process.returncode is None:
        process.kill()
        await process.wait()
