"""A generated program as AgentWorldModel serves it: a server process of its own for each session, reached by MCP.


Runs in the environment of `worlds.py`'s peer, and knows nothing of whet. Prints one line of JSON.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import shutil
import socket
import sqlite3
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from mcp import ClientSession
from mcp.client.streamable_http import streamablehttp_client

SERVER = """
import sys
source, port = sys.argv[1], int(sys.argv[2])
names = {"__name__": "generated"}
exec(compile(open(source).read(), source, "exec"), names)
from fastapi_mcp import FastApiMCP
import uvicorn
app = names["app"]
mcp = FastApiMCP(app)
(getattr(mcp, "mount_http", None) or mcp.mount)()
uvicorn.run(app, host="127.0.0.1", port=port, log_level="error")
"""


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def build(asked: dict[str, Any], path: Path) -> None:
    with sqlite3.connect(path) as connection:
        for statement in (*asked["ddl"], *asked["inserts"]):
            connection.executescript(statement)


def memory_mb(pid: int) -> float:
    """What is the process's own: shared pages of its libraries are counted by their share."""
    for line in Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines():
        if line.startswith("Pss:"):
            return int(line.split()[1]) / 1024
    return 0.0


async def session(asked: dict[str, Any], folder: Path, calls: int) -> dict[str, Any]:
    began = time.perf_counter()
    database = folder / "session.db"
    shutil.copyfile(folder / "start.db", database)
    port = free_port()
    environment = {**os.environ, "DATABASE_PATH": f"sqlite:///{database}"}
    server = subprocess.Popen(  # noqa: ASYNC220 (nothing else runs)
        [sys.executable, str(folder / "server.py"), str(folder / "program.py"), str(port)], env=environment
    )
    try:
        while True:
            try:
                socket.create_connection(("127.0.0.1", port), 1).close()
                break
            except OSError:
                if server.poll() is not None:
                    raise
                await asyncio.sleep(0.01)
        async with (
            streamablehttp_client(f"http://127.0.0.1:{port}/mcp") as (read, write, _),
            ClientSession(read, write) as client,
        ):
            await client.initialize()
            await client.list_tools()
            reset = time.perf_counter() - began
            took: list[float] = []
            for name, arguments in asked["acts"] * calls:
                at = time.perf_counter()
                await client.call_tool(name, arguments)
                took.append(time.perf_counter() - at)
            held = memory_mb(server.pid)
            at = time.perf_counter()
            names: dict[str, Any] = {}
            exec(compile(asked["verifier"], "verifier", "exec"), names)  # noqa: S102 (our own, and as the peer does)
            said = names["verify_task_completion"](str(folder / "start.db"), str(database), asked["answer"])
            verdict = time.perf_counter() - at
    finally:
        server.terminate()
        server.wait()
    return {"reset": reset, "calls": took, "verdict": verdict, "memory": held, "result": said["result"]}


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("asked", type=Path)
    parser.add_argument("--sessions", type=int, default=5)
    parser.add_argument("--calls", type=int, default=10)
    options = parser.parse_args()
    asked = json.loads(options.asked.read_text())
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        (folder / "server.py").write_text(SERVER)
        (folder / "program.py").write_text(asked["program"])
        build(asked, folder / "start.db")
        found = [asyncio.run(session(asked, folder, options.calls)) for _ in range(options.sessions)]
    sys.stdout.write("\n" + json.dumps(found) + "\n")


if __name__ == "__main__":
    main()
