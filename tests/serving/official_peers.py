"""The OpenEnv packages, each in an environment of its own: made on first use, and talked to by lines of JSON."""

from __future__ import annotations

import asyncio
import fcntl
import subprocess
import sys
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import msgspec

ROOT = Path(__file__).resolve().parents[2]
SCRIPTS = Path(__file__).parent / "peer_scripts"
PEERS = ("openenv-core", "openenv")


def peer_python(peer: str) -> Path:
    """The interpreter of a peer. `make test` has made it; a test that is run alone makes it here."""
    stamp = f".venv-peers/{peer}/.ready"
    folder = ROOT / ".venv-peers"
    folder.mkdir(exist_ok=True)
    with (folder / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        done = subprocess.run(
            ["make", "--old-file=.venv/.ready", f"BIN={Path(sys.executable).parent}", stamp],
            cwd=ROOT,
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stdout + done.stderr
    return folder / peer / "bin" / "python"


class Talk:
    """A script of a peer that is under way: one line of JSON is asked, one is answered."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        self.process = process

    async def read(self) -> Any:
        assert self.process.stdout is not None
        line = await self.process.stdout.readline()
        assert line, "the peer's script has ended"
        return msgspec.json.decode(line)

    async def ask(self, **command: Any) -> Any:
        assert self.process.stdin is not None
        self.process.stdin.write(msgspec.json.encode(command) + b"\n")
        return await self.read()


@asynccontextmanager
async def talking(peer: str, script: str, *arguments: str) -> AsyncGenerator[Talk]:
    python = await asyncio.to_thread(peer_python, peer)
    process = await asyncio.create_subprocess_exec(
        python,
        "-W",
        "ignore",
        SCRIPTS / script,
        *arguments,
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.DEVNULL,
        limit=1 << 22,
    )
    try:
        yield Talk(process)
        assert process.stdin is not None
        process.stdin.close()
        async with asyncio.timeout(20):
            await process.wait()
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()
