"""Drives a client of the package that it runs beside, unchanged: `official_client.py generic|mcp URL`."""

import asyncio
import json
import sys

from openenv.core.generic_client import GenericEnvClient
from openenv.core.mcp_client import MCPToolClient


def shown(value):
    if hasattr(value, "model_dump"):
        return value.model_dump()
    if isinstance(value, list):
        return [shown(item) for item in value]
    if hasattr(value, "observation"):
        return {"observation": shown(value.observation), "reward": value.reward, "done": value.done}
    return value


async def act(client, command):
    match command.pop("do"):
        case "reset":
            return await client.reset(**command)
        case "step":
            return await client.step(command)
        case "state":
            return await client.state()
        case "tools":
            return await client.list_tools()
        case "call":
            return await client.call_tool(command.pop("tool"), **command)
        case "validate":
            from openenv.cli._validation import validate_running_environment

            return await asyncio.to_thread(validate_running_environment, command["url"])


async def main(kind, url):
    loop = asyncio.get_running_loop()
    async with (GenericEnvClient if kind == "generic" else MCPToolClient)(base_url=url) as client:
        while line := await loop.run_in_executor(None, sys.stdin.readline):
            try:
                told = {"ok": shown(await act(client, json.loads(line)))}
            except (RuntimeError, ConnectionError, ValueError) as error:
                told = {"error": str(error)}
            sys.stdout.write(json.dumps(told) + "\n")
            sys.stdout.flush()


asyncio.run(main(*sys.argv[1:]))
