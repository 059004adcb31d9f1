"""One episode of the `chat` harness: the model speaks, its tools answer, until it is done or out of turns."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from whet.core import (
    End,
    Message,
    ModelReply,
    ModelRequest,
    Policy,
    Session,
    ToolCall,
    ToolFault,
    ToolResult,
    Usage,
    content_key,
    seed_of,
)
from whet.rollout.calling import answer_to, arguments_of, calls_in
from whet.rollout.render import Rendered, render, request_for, without_images

Ask = Callable[[ModelRequest, bytes], Awaitable[ModelReply]]
"""Send a request; the bytes tell apart calls that look alike."""


class Episode:
    """What is said in one session, and what it used."""

    def __init__(self, policy: Policy, session: Session, key: bytes) -> None:
        self._policy = policy
        self._session = session
        self._key = key
        self._tools = tuple(session.tools)
        self._rendered: Rendered = render(policy, session.brief, self._tools)
        self._said: list[Message] = list(self._rendered.opening)
        self.usage = Usage()
        self.turns = 0
        self.tool_faults = 0
        self.answer = ""

    @property
    def messages(self) -> tuple[Message, ...]:
        return tuple(without_images(message) for message in self._said)

    async def play(self, ask: Ask) -> End:
        """Until an end; what the model said last is the answer."""
        harness = self._policy.harness
        while self.turns < harness.max_turns:
            salt = content_key("turn", self._key, self.turns)
            reply = await ask(self._request(seed_of(salt)), salt)
            self._take(reply)
            calls = calls_in(reply, harness.tool_mode) if self._tools else ()
            if not calls:
                return End.ANSWERED
            for call in calls:
                result = await self._call(call)
                self._said.append(answer_to(call, result, harness.tool_mode))
                if result.ends:
                    return End.WORLD_ENDED
            if self.usage.input_tokens + self.usage.output_tokens >= harness.max_episode_tokens:
                return End.TOKEN_LIMIT
        return End.TURN_LIMIT

    def _request(self, seed: int) -> ModelRequest:
        return request_for(self._policy, self._rendered, self._said, seed)

    def _take(self, reply: ModelReply) -> None:
        self._said.append(reply.as_message())
        self.answer = reply.text
        self.turns += 1
        if reply.usage is not None:
            self.usage = self.usage + reply.usage

    async def _call(self, call: ToolCall) -> ToolResult:
        arguments = arguments_of(call)
        if isinstance(arguments, ToolResult):
            result = arguments
        elif all(tool.name != call.name for tool in self._tools):
            names = ", ".join(tool.name for tool in self._tools)
            result = ToolResult(f"There is no tool {call.name}. The tools are: {names}.", ToolFault.UNKNOWN_TOOL)
        else:
            result = await self._session.call(call.name, arguments)
        self.tool_faults += result.fault in (ToolFault.UNKNOWN_TOOL, ToolFault.INVALID_ARGUMENTS)
        return result
