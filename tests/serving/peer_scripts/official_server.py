"""An environment made with the package that it runs beside: `official_server.py echo|tools`. Prints where it is."""

import asyncio
import json
import socket
import sys
import threading
import time

import uvicorn
from fastmcp import FastMCP
from openenv.core.env_server.http_server import create_app
from openenv.core.env_server.interfaces import Environment
from openenv.core.env_server.mcp_environment import MCPEnvironment
from openenv.core.env_server.mcp_types import CallToolAction, CallToolObservation
from openenv.core.env_server.types import Action, Observation, State

SIZES = {"train": 3, "validation": 2, "test": 1}
gate = threading.Event()


class EchoAction(Action):
    message: str


class EchoObservation(Observation):
    echoed: str = ""


class Echo(Environment):
    """Says back what it hears, and rewards what it was asked for. Some words bring out its weak sides."""

    SUPPORTS_CONCURRENT_SESSIONS = True

    def __init__(self):
        super().__init__()
        self.wanted = 0
        self.steps = 0

    def reset(self, seed=None, episode_id=None, split="train", index=None, **kwargs):
        self.wanted = seed if seed is not None else index or 0
        self.steps = 0
        return EchoObservation(echoed=f"Say the number {self.wanted}.")

    def step(self, action, timeout_s=None, **kwargs):
        self.steps += 1
        if action.message == "wait":
            gate.wait(20)
            return EchoObservation(echoed="late")
        if action.message == "boom":
            raise RuntimeError("/srv/keys.txt is on fire")
        if action.message == "nan":
            return EchoObservation(echoed="nan", reward=float("nan"), done=True)
        if action.message == "silent":
            return EchoObservation(echoed="silent", done=True)
        right = action.message == str(self.wanted)
        return EchoObservation(echoed=action.message, reward=1.0 if right else 0.25, done=right or self.steps == 3)

    @property
    def state(self):
        return State(step_count=self.steps)

    def list_splits(self):
        return list(SIZES)

    def num_tasks(self, split):
        return SIZES[split]

    def get_task(self, split, index):
        return self.list_tasks(split)[index]

    def list_tasks(self, split):
        return [{"say": 100 * list(SIZES).index(split) + index} for index in range(SIZES[split])]

    def get_task_range(self, split, start=None, stop=None):
        return self.list_tasks(split)[start:stop]


class Tools(MCPEnvironment):
    """Add up to ten."""

    SUPPORTS_CONCURRENT_SESSIONS = True

    def __init__(self):
        mcp = FastMCP("adder")
        self.total = 0

        @mcp.tool()
        def add(number: int) -> int:
            """Add a number to the total."""
            self.total += number
            return self.total

        super().__init__(mcp)

    def reset(self, seed=None, episode_id=None, **kwargs):
        self.total = 0
        return Observation(metadata={"message": "Bring the total to ten."})

    def _step_impl(self, action, timeout_s=None, **kwargs):
        return Observation(metadata={"error": "no such action"})

    async def step_async(self, action, timeout_s=None, **kwargs):
        seen = await super().step_async(action, timeout_s=timeout_s, **kwargs)
        if isinstance(seen, CallToolObservation):
            seen.reward, seen.done = (1.0 if self.total == 10 else 0.0), self.total >= 10
        return seen

    @property
    def state(self):
        return State(step_count=0)


def app_of(kind):
    if kind == "echo":
        return create_app(Echo, EchoAction, EchoObservation, env_name="echo", max_concurrent_envs=100)
    return create_app(Tools, CallToolAction, CallToolObservation, env_name="tools", max_concurrent_envs=100)


def main(kind):
    listener = socket.create_server(("127.0.0.1", 0))
    server = uvicorn.Server(uvicorn.Config(app_of(kind), log_level="error"))
    threading.Thread(target=told, args=(server, listener.getsockname()[1]), daemon=True).start()
    asyncio.run(server.serve(sockets=[listener]))


def told(server, port):
    """Any line on stdin opens the gate that the word "wait" waits at."""
    while not server.started:
        time.sleep(0.01)
    say({"url": f"http://127.0.0.1:{port}"})
    for _ in sys.stdin:
        gate.set()
        say({"gate": "open"})
    server.should_exit = True


def say(told):
    sys.stdout.write(json.dumps(told) + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    main(*sys.argv[1:])
