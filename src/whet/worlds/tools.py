"""Methods of a world as tools of the agent: names, descriptions and schemas come from hints and docstrings."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable
from typing import Any, TypeVar, cast, get_type_hints

import msgspec

from whet.core import InputError, Json, ToolFault, ToolResult, ToolSpec
from whet.project import nearest
from whet.worlds.calling import Hook, ToolRefusal
from whet.worlds.schema import problems_of, schema_problems

Method = TypeVar("Method", bound=Callable[..., Any])

_MARK = "__whet_tool__"
OFFERED = ("state", "task", "key", "rng")
"""What a tool may ask for beside its arguments; the agent does not see these parameters."""

_PARAMETER_LINE = re.compile(r"^\s+(?P<name>\w+)(?: \([^)]*\))?: (?P<text>\S.*)$")


def tool(method: Method) -> Method:
    """Mark a method as a tool: `@whet.tool`. Parameters need type hints; the docstring is its description."""
    setattr(method, _MARK, True)
    return method


class Tool:
    """One tool of a world: what the agent sees of it, and how it is called."""

    def __init__(self, method: Callable[..., Any], where: str) -> None:
        self._arguments = _arguments_struct(method, where)
        names = self._arguments.__struct_fields__
        self._hook = Hook(method, (*OFFERED, *names), where)
        self.spec = ToolSpec(method.__name__, _description(method), _schema(self._arguments, method, where))
        # The struct is as strict as its schema and far quicker; but where it takes numbers, it takes NaN for one.
        self._struct_decides = b'"number"' not in msgspec.json.encode(self.spec.parameters)

    async def __call__(self, arguments: dict[str, Json], **offered: Any) -> ToolResult:
        values = self._values(arguments)
        if isinstance(values, ToolResult):
            return values
        try:
            return as_tool_result(await self._hook(**offered, **values), self.spec.name)
        except ToolRefusal as refusal:
            return self._refused(refusal)

    def at_once(self, arguments: dict[str, Json], **offered: Any) -> ToolResult:
        """The same for a tool that is not async."""
        values = self._values(arguments)
        if isinstance(values, ToolResult):
            return values
        try:
            return as_tool_result(self._hook.now(**offered, **values), self.spec.name)
        except ToolRefusal as refusal:
            return self._refused(refusal)

    def _values(self, arguments: dict[str, Json]) -> dict[str, Any] | ToolResult:
        """The arguments as the method's hints say, or what is wrong with them."""
        try:
            typed = msgspec.convert(arguments, self._arguments)
        except msgspec.ValidationError as error:
            problems = problems_of(arguments, self.spec.parameters)
            return invalid_arguments(self.spec.name, problems or [str(error)])
        problems = [] if self._struct_decides else problems_of(arguments, self.spec.parameters)
        if problems:
            return invalid_arguments(self.spec.name, problems)
        return {name: getattr(typed, name) for name in self._arguments.__struct_fields__}

    def _refused(self, refusal: ToolRefusal) -> ToolResult:
        return ToolResult(str(refusal) or f"{self.spec.name} was refused", ToolFault.REFUSED)


def tools_of(author: object, where: str) -> dict[str, Tool]:
    """The marked methods of an author's object, in the order in which they are written."""
    names = [name for kind in reversed(type(author).__mro__) for name, value in vars(kind).items() if is_tool(value)]
    methods = {name: getattr(author, name) for name in dict.fromkeys(names)}
    return {name: Tool(method, f"{where}.{name}") for name, method in methods.items() if is_tool(method)}


def is_tool(value: object) -> bool:
    return getattr(value, _MARK, False) is True


def invalid_arguments(name: str, problems: list[str]) -> ToolResult:
    return ToolResult(f"{name} was not called: {'; '.join(problems)}", ToolFault.INVALID_ARGUMENTS)


def unknown_tool(name: str, tools: list[str]) -> ToolResult:
    return ToolResult(f"there is no tool '{name}'. {nearest(name, tools)}", ToolFault.UNKNOWN_TOOL)


def as_tool_result(returned: Any, name: str) -> ToolResult:
    """Text as it is, None as "done", anything else as JSON."""
    if isinstance(returned, ToolResult):
        return returned
    if isinstance(returned, str):
        return ToolResult(returned)
    if returned is None:
        return ToolResult("done")
    try:
        return ToolResult(msgspec.json.encode(returned).decode())
    except TypeError as error:
        raise TypeError(f"the tool {name} returned {type(returned).__name__}, which is not text or JSON") from error


def _arguments_struct(method: Callable[..., Any], where: str) -> type[msgspec.Struct]:
    hints = _hints(method, where)
    fields: list[tuple[str, Any] | tuple[str, Any, Any]] = []
    for name, parameter in inspect.signature(method).parameters.items():
        if name in OFFERED:
            continue
        if name not in hints or parameter.kind not in (parameter.POSITIONAL_OR_KEYWORD, parameter.KEYWORD_ONLY):
            raise InputError(f"{where}: the parameter '{name}' needs a type hint", hint=f"Such as {name}: str")
        has_default = parameter.default is not parameter.empty
        fields.append((name, hints[name], parameter.default) if has_default else (name, hints[name]))
    try:
        return msgspec.defstruct(method.__name__, fields, frozen=True, kw_only=True, forbid_unknown_fields=True)
    except TypeError as error:
        raise InputError(f"{where}: {error}") from error


def _hints(method: Callable[..., Any], where: str) -> dict[str, Any]:
    try:
        return get_type_hints(method, include_extras=True)
    except (NameError, TypeError, SyntaxError) as error:
        raise InputError(f"{where}: its type hints cannot be read: {error}") from error


def _schema(arguments: type[msgspec.Struct], method: Callable[..., Any], where: str) -> dict[str, Any]:
    try:
        (top,), parts = msgspec.json.schema_components([arguments], ref_template="{name}")
    except TypeError as error:
        raise InputError(f"{where}: a parameter's type has no JSON form: {error}") from error
    schema = cast("dict[str, Any]", _inlined(top, parts, ()))
    described = _parameter_texts(method)
    properties = {
        name: {**inner, "description": described[name]} if name in described else inner
        for name, inner in schema.get("properties", {}).items()
    }
    whole = {"type": "object", "properties": properties, "required": schema.get("required", [])}
    whole["additionalProperties"] = False
    problems = schema_problems(whole, where)
    if problems:
        raise InputError(problems[0], hint="Use a simpler type for this parameter")
    return whole


def _inlined(node: Any, parts: dict[str, Any], above: tuple[str, ...]) -> Any:
    """The schema without references: models follow it better, and one that contains itself is refused."""
    if isinstance(node, list):
        return [_inlined(item, parts, above) for item in cast("list[Any]", node)]
    if not isinstance(node, dict):
        return node
    members = cast("dict[str, Any]", node)
    name = members.get("$ref")
    if isinstance(name, str):
        if name in above:
            raise TypeError(f"{name} contains itself")
        return _inlined(parts[name], parts, (*above, name))
    return {key: _inlined(value, parts, above) for key, value in members.items() if key != "title"}


def _description(method: Callable[..., Any]) -> str:
    """The docstring up to its list of arguments."""
    return re.split(r"\n\s*Args:\s*\n", inspect.getdoc(method) or "", maxsplit=1)[0].strip()


def _parameter_texts(method: Callable[..., Any]) -> dict[str, str]:
    """The lines `name: text` under "Args:"."""
    _, _, below = (inspect.getdoc(method) or "").partition("Args:\n")
    found = (_PARAMETER_LINE.match(line) for line in below.splitlines())
    return {match["name"]: match["text"].strip() for match in found if match}
