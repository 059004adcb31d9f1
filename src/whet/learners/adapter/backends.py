"""Who turns an order into an adapter: one protocol, and what stands behind it on this machine."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path
from typing import Protocol

import msgspec

from whet.core import ConfigError, InputError, WhetError
from whet.learners.adapter.orders import METRICS, Progress

Tell = Callable[[Progress], None]
_NEEDS = ("torch", "safetensors", "gguf", "numpy")


class Backend(Protocol):
    async def train(self, folder: Path, tell: Tell) -> None:
        """Work off the order that lies in `folder`, or go on with it. Ends with the adapter, the LoRA file and the
        metrics in it; cancelled, with nothing left running. Raises a WhetError in one line where it cannot."""
        ...


class PeftBackend:
    """Torch, in a process of its own: what it holds is given back when it ends, and a crash of it is not ours."""

    async def train(self, folder: Path, tell: Tell) -> None:
        missing = [each for each in _NEEDS if find_spec(each) is None]
        if missing:
            raise ConfigError(f"training adapters needs {', '.join(missing)}", hint="pip install 'whet[train]'")
        with (folder / "job.log").open("ab") as log:
            start = log.tell()
            process = await asyncio.create_subprocess_exec(
                *(sys.executable, "-m", "whet.learners.adapter.peft_job", str(folder), "--attached"),
                stdin=asyncio.subprocess.PIPE,
                stdout=asyncio.subprocess.PIPE,
                stderr=log,
                env=_environment(),
                start_new_session=True,
            )
        try:
            assert process.stdout is not None
            async for line in process.stdout:
                tell(msgspec.json.decode(line, type=Progress))
            code = await process.wait()
        finally:
            await _end(process)
        if code != 0 or not (folder / METRICS).exists():
            raise _fault(folder, start, code)


def _environment() -> dict[str, str]:
    """Threads that wait give their core away: others use it too, and spinning for it costs more than it brings."""
    return {"OMP_WAIT_POLICY": "PASSIVE", "PYTHONHASHSEED": "0", **os.environ}


async def _end(process: asyncio.subprocess.Process) -> None:
    """It, and all that it started."""
    try:
        os.killpg(process.pid, signal.SIGKILL)
    except ProcessLookupError:
        return
    await process.wait()


def _fault(folder: Path, start: int, code: int) -> WhetError:
    with (folder / "job.log").open("rb") as log:
        log.seek(start)
        said = log.read().decode("utf-8", "replace").strip().splitlines()
    if code == 2 and said:
        return InputError(said[-1])
    why = said[-1] if said else "it said nothing"
    if code == -signal.SIGKILL:
        why = "it was killed, for want of memory perhaps"
    return WhetError(
        f"the training of an adapter ended with {code}: {why}",
        hint=f"More is in {folder / 'job.log'}; the same command goes on from the last checkpoint",
    )
