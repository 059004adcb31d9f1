"""One episode in an environment elsewhere: what it shows becomes a brief and tools, what it rewards a verdict."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, cast

import msgspec

from whet.core import Brief, ImagePart, Json, ToolFault, ToolResult, ToolSpec, Verdict, WorldFault
from whet.worlds.remote.foreign import Toolbox, seen_text, tool_answer, without_metadata
from whet.worlds.remote.link import Answer, Link

_FAULTS = {
    "tool_not_found": ToolFault.UNKNOWN_TOOL,
    "invalid_args": ToolFault.INVALID_ARGUMENTS,
    "execution_error": ToolFault.REFUSED,
}
_FORM = "act"


class Environment(msgspec.Struct, frozen=True, kw_only=True):
    """How one server is played. All that decides a verdict is in here."""

    where: str = ""
    description: str = ""
    action: dict[str, Any] = {}
    tools: bool
    form: bool
    judges_answers: bool
    answer_field: str
    brief_field: str
    instructions: str
    reward: str
    pass_mark: float
    lowest: float
    highest: float
    reset_seconds: float
    step_seconds: float

    @property
    def deciding(self) -> Environment:
        """Without what cannot change a verdict."""
        return msgspec.structs.replace(self, reset_seconds=0.0, step_seconds=0.0)


class Seen(msgspec.Struct, frozen=True):
    """The answer to a reset or a step."""

    observation: dict[str, Any]
    reward: float | None = None
    done: bool = False
    metadata: dict[str, Any] | None = None


class _Images(msgspec.Struct, frozen=True):
    images: tuple[ImagePart, ...] = ()


class OpenEnvSession:
    """Single use: `begin` once, then `call` and at the end `judge`."""

    def __init__(self, environment: Environment, link: Link, on_close: Callable[[], None]) -> None:
        self._environment = environment
        self._link = link
        self._on_close = on_close
        self._brief = Brief("")
        self._toolbox = Toolbox([], environment.where)
        self._rewards: list[float] = []
        self._done = False
        self._fault = ""
        self._over = False
        self._closed = False

    @property
    def brief(self) -> Brief:
        return self._brief

    @property
    def tools(self) -> Sequence[ToolSpec]:
        return self._toolbox.specs

    async def begin(self, reset: dict[str, Json]) -> None:
        environment = self._environment
        answer = await self._link.ask("reset", reset, environment.reset_seconds)
        seen = self._take(self._accepted(answer, "the reset"))
        self._brief = _brief(seen.observation, environment)
        if environment.tools:
            listed = await self._step({"type": "list_tools"})
            self._toolbox = Toolbox(listed.observation.get("tools"), environment.where)
        elif environment.form:
            parameters = without_metadata(environment.action)
            form = {"name": _FORM, "description": environment.description, "input_schema": parameters}
            self._toolbox = Toolbox([form], environment.where)

    async def call(self, name: str, arguments: dict[str, Json]) -> ToolResult:
        self._must_be_whole()
        problem = self._toolbox.problem(name, arguments)
        if problem is not None:
            return problem
        try:
            return await self._called(name, arguments)
        except WorldFault as fault:
            self._fault = fault.message
            raise

    async def _called(self, name: str, arguments: dict[str, Json]) -> ToolResult:
        if self._environment.form:
            return await self._act(arguments)
        answer = await self._ask_step({"type": "call_tool", "tool_name": name, "arguments": arguments})
        if _says_invalid(answer):
            return _invalid(answer)
        seen = self._take(self._accepted(answer, f"the tool {name}"))
        return msgspec.structs.replace(self._tool_result(name, seen), ends=self._done)

    async def judge(self, answer: str) -> Verdict:
        self._must_be_whole()
        self._over = True
        environment = self._environment
        if environment.judges_answers:
            return _told(await self._step({"type": "answer", "answer": answer}), environment.where)
        if environment.answer_field and not self._done:
            self._take(await self._step({environment.answer_field: answer}))
        return self._rewarded()

    async def close(self) -> None:
        self._over = True
        if not self._closed:
            self._closed = True
            try:
                await self._link.close()
            finally:
                self._on_close()

    async def _act(self, arguments: dict[str, Json]) -> ToolResult:
        answer = await self._ask_step(arguments)
        if _says_invalid(answer):
            return _invalid(answer)
        seen = self._take(self._accepted(answer, "the action"))
        return ToolResult(seen_text(seen.observation), ends=self._done)

    async def _ask_step(self, action: dict[str, Any]) -> Answer:
        return await self._link.ask("step", action, self._environment.step_seconds)

    async def _step(self, action: dict[str, Any]) -> Seen:
        return _seen(self._accepted(await self._ask_step(action), "a step"), self._environment.where)

    def _accepted(self, answer: Answer, doing: str) -> Answer:
        if answer.type == "observation":
            return answer
        where = self._environment.where
        if answer.type != "error":
            raise WorldFault(f"{where}: {doing} was answered with '{answer.type}'")
        code, message = (str(answer.data.get(field, "")) for field in ("code", "message"))
        hint = "Set world.sessions to what the server takes" if code == "CAPACITY_REACHED" else ""
        raise WorldFault(f"{where}: {doing} failed: {message} ({code})", hint=hint)

    def _take(self, answer: Answer | Seen) -> Seen:
        seen = answer if isinstance(answer, Seen) else _seen(answer, self._environment.where)
        self._done = self._done or seen.done
        if seen.reward is not None and math.isfinite(seen.reward):
            self._rewards.append(seen.reward)
        elif seen.done and not self._environment.judges_answers:
            raise WorldFault(f"{self._environment.where}: the episode ended without a reward (null, or no number)")
        return seen

    def _tool_result(self, name: str, seen: Seen) -> ToolResult:
        error: object = seen.observation.get("error")
        if not isinstance(error, dict):
            about: object = (seen.metadata or {}).get("fault")
            refused = ToolFault.REFUSED if about == ToolFault.REFUSED else None
            result = tool_answer(seen.observation.get("result"))
            return result if result.fault else msgspec.structs.replace(result, fault=refused)
        told = cast("dict[str, Any]", error)
        fault = _FAULTS.get(str(told.get("error_type")))
        if fault is None:
            raise WorldFault(f"{self._environment.where}: the tool {name} failed: {told.get('message')}")
        return ToolResult(str(told.get("message")), fault)

    def _rewarded(self) -> Verdict:
        environment = self._environment
        if not self._rewards:
            return Verdict(False, 0.0, "unfinished: the environment gave no reward")
        pick: dict[str, Callable[[list[float]], float]] = {"sum": sum, "best": max, "last": lambda given: given[-1]}
        reward = pick[environment.reward](self._rewards)
        share = (reward - environment.lowest) / (environment.highest - environment.lowest)
        passed = reward >= environment.pass_mark
        reason = "passed" if passed else "low reward" if self._done else "unfinished"
        facts: dict[str, Json] = {"reward": reward, "steps": len(self._rewards), "done": self._done}
        return Verdict(passed, min(1.0, max(0.0, share)), f"{reason}: {reward:g}", facts)

    def _must_be_whole(self) -> None:
        """What is left of an episode that broke is never judged: it would be scored as if the agent had failed."""
        lost = "this session is over; open another" if self._over else self._fault or self._link.lost
        if lost:
            raise WorldFault(f"{self._environment.where}: the episode is lost: {lost}")


def _seen(answer: Answer, where: str) -> Seen:
    try:
        return msgspec.convert(answer.data, Seen)
    except msgspec.ValidationError as error:
        raise WorldFault(f"{where}: an answer is not one of this wire: {error}") from error


def _told(seen: Seen, where: str) -> Verdict:
    """The verdict of a server of ours, as it says it."""
    try:
        return msgspec.convert((seen.metadata or {}).get("verdict"), Verdict)
    except (msgspec.ValidationError, ValueError) as error:
        raise WorldFault(f"{where}: its verdict is none: {error}") from error


def _brief(observation: dict[str, Any], environment: Environment) -> Brief:
    field = environment.brief_field
    if field and field not in observation:
        raise WorldFault(f"{environment.where}: the first observation has no field '{field}'")
    text: object = observation.get(field or "brief")
    shown = (
        text if isinstance(text, str) else seen_text(observation) or _message(observation) or environment.description
    )
    whole = "\n\n".join(part for part in (environment.instructions, shown.strip()) if part)
    if not whole:
        raise WorldFault(f"{environment.where}: the first observation says nothing", hint="Set world.instructions")
    images = (
        msgspec.convert({"images": observation.get("images", ())}, _Images).images if "brief" in observation else ()
    )
    schema: object = observation.get("answer_schema")
    return Brief(whole, images, cast("dict[str, Any]", schema) if isinstance(schema, dict) else None)


def _message(observation: dict[str, Any]) -> str:
    """Environments of tools say what there is to say in the metadata of their first observation."""
    metadata: object = observation.get("metadata")
    said: object = cast("dict[str, Any]", metadata).get("message") if isinstance(metadata, dict) else None
    return said if isinstance(said, str) else ""


def _says_invalid(answer: Answer) -> bool:
    return answer.type == "error" and answer.data.get("code") == "VALIDATION_ERROR"


def _invalid(answer: Answer) -> ToolResult:
    """What the server found wrong with an action that our own check let pass."""
    errors: object = answer.data.get("errors")
    found = [cast("dict[str, Any]", each) for each in cast("list[object]", errors)] if isinstance(errors, list) else []
    details = [f"{'.'.join(map(str, each.get('loc', ())))}: {each.get('msg')}" for each in found]
    return ToolResult("; ".join([str(answer.data.get("message")), *details]), ToolFault.INVALID_ARGUMENTS)
