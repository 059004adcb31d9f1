"""The echo server of an OpenEnv package, as its documentation builds one: `openenv_echo.py plain|tools PORT`."""

from __future__ import annotations

import sys

import uvicorn
from openenv.core.env_server.http_server import create_app
from openenv.core.env_server.interfaces import Environment
from openenv.core.env_server.types import Action, Observation, State

SESSIONS = 400


class EchoAction(Action):
    message: str


class EchoObservation(Observation):
    echoed: str = ""


class Echo(Environment):
    SUPPORTS_CONCURRENT_SESSIONS = True

    def reset(self, seed=None, episode_id=None, **kwargs):
        return EchoObservation(echoed="ready")

    def step(self, action, timeout_s=None, **kwargs):
        return EchoObservation(echoed=action.message, reward=0.1)

    @property
    def state(self):
        return State()


def tools():
    from fastmcp import FastMCP
    from openenv.core.env_server.mcp_environment import MCPEnvironment
    from openenv.core.env_server.mcp_types import CallToolAction, CallToolObservation

    class Tools(MCPEnvironment):
        SUPPORTS_CONCURRENT_SESSIONS = True

        def __init__(self):
            mcp = FastMCP("echo")

            @mcp.tool()
            def say(message: str) -> str:
                """Say it back."""
                return message

            super().__init__(mcp)

        def reset(self, seed=None, episode_id=None, **kwargs):
            return Observation()

        def _step_impl(self, action, timeout_s=None, **kwargs):
            return Observation()

        @property
        def state(self):
            return State()

    return create_app(Tools, CallToolAction, CallToolObservation, env_name="echo", max_concurrent_envs=SESSIONS)


def plain():
    return create_app(Echo, EchoAction, EchoObservation, env_name="echo", max_concurrent_envs=SESSIONS)


uvicorn.run({"plain": plain, "tools": tools}[sys.argv[1]](), port=int(sys.argv[2]), log_level="error", access_log=False)
