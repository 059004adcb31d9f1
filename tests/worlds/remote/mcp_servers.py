"""MCP servers for the tests: `stdio` and `http` on the official library, and `rude HOW` on nothing."""

from __future__ import annotations

import asyncio
import json
import os
import socket
import subprocess
import sys
import time
from typing import Any


def official() -> Any:
    from mcp.server.mcpserver import MCPServer

    server = MCPServer("adder")
    total = [0]

    @server.tool()
    def add(number: int) -> int:
        """Add a number to the total."""
        total[0] += number
        return total[0]

    @server.tool()
    def refuse() -> str:
        """Say no."""
        raise ValueError("not today")

    @server.tool()
    def environment() -> list[str]:
        """The names of the environment variables."""
        return sorted(os.environ)

    @server.tool()
    def leave_behind() -> int:
        """Start a process that wants to stay."""
        left = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"], start_new_session=True)
        return left.pid

    return server


def http() -> None:
    import uvicorn

    listener = socket.create_server(("127.0.0.1", 0))
    say({"url": f"http://127.0.0.1:{listener.getsockname()[1]}/mcp"})
    config = uvicorn.Config(official().streamable_http_app(), log_level="error")
    asyncio.run(uvicorn.Server(config).serve(sockets=[listener]))


TOOLS = [{"name": "act", "description": "Act.", "inputSchema": {"type": "object"}}]


def rude(how: str) -> None:
    """Answers as the protocol says, but for one fault."""
    if how == "never starts":
        time.sleep(60)
    for line in sys.stdin:
        message = json.loads(line)
        if "id" not in message:
            continue
        answer: dict[str, Any] = {"jsonrpc": "2.0", "id": message["id"]}
        match message["method"]:
            case "initialize":
                answer["result"] = {"protocolVersion": "2025-11-25", "capabilities": {}, "serverInfo": {}}
            case "tools/list":
                answer["result"] = page(message["params"].get("cursor"), how)
            case _:
                misbehave(how, answer, message["params"]["arguments"])
        say(answer)


def page(cursor: str | None, how: str) -> dict[str, Any]:
    if how == "endless list":
        return {"tools": [], "nextCursor": "more"}
    if how == "twice":
        return {"tools": TOOLS * 2}
    if how == "pages":
        return {"tools": [{"name": "more"}]} if cursor else {"tools": TOOLS, "nextCursor": "two"}
    return {"tools": TOOLS}


def misbehave(how: str, answer: dict[str, Any], arguments: dict[str, Any]) -> None:
    answer["result"] = {"content": [{"type": "text", "text": str(arguments)}]}
    match how:
        case "slow":
            time.sleep(0.3)
        case "dies":
            sys.stderr.write("out of cheese\n")
            sys.exit(3)
        case "chatty":
            sys.stdout.write("listening on nothing\n[1, 2]\n\n")
            say({"jsonrpc": "2.0", "method": "notifications/message", "params": {}})
            say({"jsonrpc": "2.0", "id": 77, "method": "ping"})
            assert json.loads(sys.stdin.readline()) == {"jsonrpc": "2.0", "id": 77, "result": {}}
            say({"jsonrpc": "2.0", "id": "s", "method": "sampling/createMessage"})
            assert json.loads(sys.stdin.readline())["error"]["code"] == -32601
            say({"jsonrpc": "2.0", "id": 999, "result": {"content": [{"type": "text", "text": "another's"}]}})
        case "internal error":
            del answer["result"]
            answer["error"] = {"code": -32603, "message": "broken"}
        case "invalid":
            del answer["result"]
            answer["error"] = {"code": -32602, "message": "no such number"}
        case "no object":
            answer["result"] = [1]
        case "too long":
            answer["result"] = "x" * (2 << 20)
        case _:
            pass


def say(told: Any) -> None:
    sys.stdout.write(json.dumps(told) + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    match sys.argv[1:]:
        case ["stdio"]:
            official().run("stdio")
        case ["http"]:
            http()
        case ["rude", how]:
            rude(how)
        case _:
            sys.exit("which?")
