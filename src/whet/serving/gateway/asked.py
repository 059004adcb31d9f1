"""A request as its bytes say it, checked. Pure.

What is not known here is kept as it was written: an upstream may know it.
"""

from __future__ import annotations

import binascii
from base64 import b64decode
from typing import Annotated, Any

import msgspec
from msgspec import Meta, Raw

from whet.core import ImagePart, Message, Sampling, Speaker, TextPart, ToolCall, ToolSpec, user
from whet.serving.gateway.refusal import Refusal

Share = Annotated[float, Meta(ge=0, le=1)]
Count = Annotated[int, Meta(ge=1, le=10_000_000)]


class ImageUrl(msgspec.Struct, frozen=True):
    url: str


class PartBody(msgspec.Struct, frozen=True):
    type: str
    text: str | None = None
    image_url: ImageUrl | None = None


class CalledBody(msgspec.Struct, frozen=True):
    name: str
    arguments: str = ""


class CallBody(msgspec.Struct, frozen=True):
    function: CalledBody
    id: str = ""


class SaidBody(msgspec.Struct, frozen=True):
    role: str
    content: str | list[PartBody] | None = None
    tool_calls: list[CallBody] | None = None
    tool_call_id: str | None = None


class FunctionBody(msgspec.Struct, frozen=True):
    name: str
    description: str | None = None
    parameters: dict[str, Any] | None = None


class ToolBody(msgspec.Struct, frozen=True):
    function: FunctionBody
    type: str = "function"


class SchemaBody(msgspec.Struct, frozen=True):
    schema: dict[str, Any]


class FormatBody(msgspec.Struct, frozen=True):
    type: str = "text"
    json_schema: SchemaBody | None = None


class StreamOptions(msgspec.Struct, frozen=True):
    include_usage: bool | None = None


class Settings(msgspec.Struct, frozen=True):
    """What chats and completions have in common."""

    model: str
    stream: bool | None = None
    stream_options: StreamOptions | None = None
    response_format: FormatBody | None = None
    stop: str | list[str] | None = None
    seed: Annotated[int, Meta(ge=-(2**63), le=2**63 - 1)] | None = None
    temperature: Annotated[float, Meta(ge=0, le=2)] | None = None
    top_p: Share | None = None
    max_tokens: Count | None = None
    n: int | None = None


class ChatBody(Settings, frozen=True, kw_only=True):
    messages: Annotated[list[SaidBody], Meta(min_length=1)]
    max_completion_tokens: Count | None = None
    tools: list[ToolBody] | None = None
    tool_choice: Any = None


class TextBody(Settings, frozen=True, kw_only=True):
    prompt: str | list[str]


class Asked(msgspec.Struct, frozen=True):
    """What a caller wants of a model that is named as the caller names it."""

    model: str
    messages: tuple[Message, ...]
    settings: Settings
    tools: tuple[ToolSpec, ...] = ()
    tool_choice: Any = None
    most_tokens: int | None = None
    chat: bool = True
    kept: dict[str, Raw] = {}
    """Every field as it was written, by name."""

    @property
    def stream(self) -> bool:
        return bool(self.settings.stream)

    @property
    def wants_usage(self) -> bool:
        options = self.settings.stream_options
        return options is not None and bool(options.include_usage)

    @property
    def schema(self) -> dict[str, Any] | None:
        form = self.settings.response_format
        match form.type if form else "text":
            case "json_schema" if form and form.json_schema:
                return form.json_schema.schema
            case "json_object":
                return {"type": "object"}
            case _:
                return None

    @property
    def extras(self) -> dict[str, Raw]:
        """What whet does not know of."""
        return {name: raw for name, raw in self.kept.items() if name not in _KNOWN}

    def sampling(self, own: Sampling) -> Sampling:
        """What the caller does not say is the policy's own."""
        said = self.settings
        stop = (said.stop,) if isinstance(said.stop, str) else tuple(said.stop or ())
        return msgspec.structs.replace(
            own,
            max_tokens=self.most_tokens or own.max_tokens,
            temperature=own.temperature if said.temperature is None else said.temperature,
            top_p=own.top_p if said.top_p is None else said.top_p,
            stop=stop or own.stop,
        )


_KNOWN = frozenset({*ChatBody.__struct_fields__, *TextBody.__struct_fields__})
_chat = msgspec.json.Decoder(ChatBody)
_text = msgspec.json.Decoder(TextBody)
_kept = msgspec.json.Decoder(dict[str, Raw])


def read_chat(body: bytes) -> Asked:
    said = _decoded(_chat, body)
    _check(said)
    choice = said.tool_choice
    return Asked(
        said.model,
        tuple(_message(message, place) for place, message in enumerate(said.messages)),
        said,
        () if choice == "none" else tuple(_tool(tool) for tool in said.tools or ()),
        choice,
        said.max_completion_tokens or said.max_tokens,
        kept=_decoded(_kept, body),
    )


def read_text(body: bytes) -> Asked:
    """A completion: its prompt is a task's text."""
    said = _decoded(_text, body)
    _check(said)
    prompts = [said.prompt] if isinstance(said.prompt, str) else said.prompt
    if len(prompts) != 1:
        raise Refusal(400, "`prompt` is one text", param="prompt")
    return Asked(
        said.model,
        (user(prompts[0]),),
        said,
        most_tokens=said.max_tokens,
        chat=False,
        kept=_decoded(_kept, body),
    )


def _decoded(decoder: Any, body: bytes) -> Any:
    try:
        return decoder.decode(body)
    except msgspec.ValidationError as error:
        raise Refusal(400, f"the request cannot be: {error}", code="invalid_request") from error
    except (msgspec.DecodeError, UnicodeError, RecursionError) as error:
        raise Refusal(400, f"the request is not JSON: {error}", code="invalid_json") from error


def _check(said: Settings) -> None:
    if said.n not in (None, 1):
        raise Refusal(400, "one answer a request: `n` is 1", param="n", code="unsupported_parameter")
    form = said.response_format
    if form is not None and form.type not in ("text", "json_object", "json_schema"):
        raise Refusal(400, f"no response_format is called {form.type[:40]!r}", param="response_format")
    if form is not None and form.type == "json_schema" and form.json_schema is None:
        raise Refusal(400, "response_format has no json_schema", param="response_format")


_SPEAKERS = {
    "system": Speaker.SYSTEM,
    "developer": Speaker.SYSTEM,
    "user": Speaker.USER,
    "assistant": Speaker.ASSISTANT,
    "tool": Speaker.TOOL,
}


def _message(said: SaidBody, place: int) -> Message:
    speaker = _SPEAKERS.get(said.role)
    if speaker is None:
        raise Refusal(400, f"messages[{place}]: no role is called {said.role[:40]!r}", param="messages")
    return Message(
        speaker,
        _content(said.content, place),
        tuple(ToolCall(call.id, call.function.name, call.function.arguments) for call in said.tool_calls or ()),
        said.tool_call_id or "",
    )


def _content(content: str | list[PartBody] | None, place: int) -> str | tuple[TextPart | ImagePart, ...]:
    if not isinstance(content, list):
        return content or ""
    parts = tuple(_part(part, place) for part in content)
    if all(isinstance(part, TextPart) for part in parts):
        return "\n".join(part.text for part in parts if isinstance(part, TextPart))
    return parts


def _part(part: PartBody, place: int) -> TextPart | ImagePart:
    if part.type == "text" and part.text is not None:
        return TextPart(part.text)
    if part.type == "image_url" and part.image_url is not None:
        return _image(part.image_url.url, place)
    raise Refusal(400, f"messages[{place}]: content is text or image_url, not {part.type[:40]!r}", param="messages")


def _image(url: str, place: int) -> ImagePart:
    head, comma, data = url.partition(",")
    if not (comma and head.startswith("data:") and head.endswith(";base64")):
        raise Refusal(400, f"messages[{place}]: an image comes as data:…;base64,…", param="messages")
    try:
        return ImagePart(head[5:-7], b64decode(data, validate=True))
    except (binascii.Error, ValueError) as error:
        raise Refusal(400, f"messages[{place}]: the image is not base64", param="messages") from error


def _tool(tool: ToolBody) -> ToolSpec:
    if tool.type != "function":
        raise Refusal(400, f"tools are functions, not {tool.type[:40]!r}", param="tools")
    function = tool.function
    return ToolSpec(function.name, function.description or "", function.parameters or {"type": "object"})
