"""A world with every kind of tool that can go wrong, and a talk with a server without sockets."""

from __future__ import annotations

import asyncio
from typing import Any

import msgspec

from whet.core import ToolResult, Verdict, World
from whet.serving.worlds import Hub, Limits, Seat
from whet.serving.worlds.control import answer_frame
from whet.worlds import AuthoredWorld, SplitSettings, ToolRefusal, tool
from whet.worlds.splits import Shares

SECRET = "the key is 4711"


class Workshop:
    """Count to the task's goal."""

    version = "1"
    hidden = ("secret",)

    def __init__(self) -> None:
        self.gate = asyncio.Event()
        self.open_sessions = 0
        self.calls = 0
        self.judged: list[str] = []
        self.verdict: Any = None

    def tasks(self) -> list[dict[str, Any]]:
        return [{"id": f"goal-{goal}", "goal": goal, "secret": SECRET} for goal in range(6)]

    def start(self) -> dict[str, int]:
        self.open_sessions += 1
        return {"count": 0}

    def close(self) -> None:
        self.open_sessions -= 1

    def brief(self, task: Any) -> str:
        return f"Count to {task.inputs['goal']}."

    @tool
    def add(self, state: dict[str, int], by: int = 1) -> str:
        """Count on."""
        self.calls += 1
        state["count"] += by
        return str(state["count"])

    @tool
    async def wait(self, state: dict[str, int], name: str) -> str:
        """Wait until the gate is open."""
        await self.gate.wait()
        return name

    @tool
    def burn(self) -> str:
        """Break."""
        raise OSError(f"/srv/worlds/keys.txt: {SECRET}")

    @tool
    def refuse(self) -> str:
        """Say no."""
        raise ToolRefusal("not today")

    @tool
    def odd(self) -> str:
        """Say what has no UTF-8."""
        return "half a pair: \ud800"

    @tool
    def finish(self) -> ToolResult:
        """End the episode."""
        return ToolResult("the end", ends=True)

    def judge(self, state: dict[str, int], task: Any, answer: str) -> Any:
        self.judged.append(answer)
        if self.verdict is not None:
            return self.verdict
        facts = {"ratio": float("nan"), "best": float("inf")}
        return Verdict(state["count"] == task.inputs["goal"], 0.25, "counted: as told", facts, reference=SECRET)


def workshop() -> tuple[Workshop, World]:
    author = Workshop()
    return author, AuthoredWorld("workshop", author, splits=SplitSettings(split_ratio=Shares(train=1)))


class Table:
    """A hub with its world, and frames that are answered without a socket."""

    def __init__(self, limits: Limits | None = None, clock: Any = None) -> None:
        self.author, self.world = workshop()
        self.told: list[str] = []
        self.hub = Hub(self.world, limits, clock, tell=self.told.append)

    async def say(self, seat: Seat, kind: str, data: Any = None) -> dict[str, Any]:
        message = {"type": kind} if data is None else {"type": kind, "data": data}
        return await self.raw(seat, msgspec.json.encode(message))

    async def raw(self, seat: Seat, frame: bytes | str) -> dict[str, Any]:
        said = await answer_frame(self.hub, seat, frame)
        assert said is not None
        return msgspec.json.decode(said)

    async def call(self, seat: Seat, name: str, /, **arguments: Any) -> dict[str, Any]:
        return await self.say(seat, "step", {"type": "call_tool", "tool_name": name, "arguments": arguments})

    async def begun(self, **reset: Any) -> Seat:
        seat = self.hub.sit()
        assert (await self.say(seat, "reset", reset))["type"] == "observation"
        return seat
