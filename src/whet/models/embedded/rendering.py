"""Requests in the form that a chat template is given. Pure."""

from __future__ import annotations

from typing import Any

import msgspec

from whet.core import ImagePart, Message, ModelRequest, RequestRefused, Speaker


def chat_body(request: ModelRequest) -> dict[str, Any]:
    """Messages, tools and switches, as llama.cpp's own rendering takes them."""
    body: dict[str, Any] = {"messages": [_message(message) for message in request.messages]}
    if request.tools:
        body["tools"] = [
            {
                "type": "function",
                "function": {"name": tool.name, "description": tool.description, "parameters": tool.parameters},
            }
            for tool in request.tools
        ]
    if request.sampling.thinking is not None:
        body["chat_template_kwargs"] = {"enable_thinking": request.sampling.thinking}
    return body


def _message(message: Message) -> dict[str, Any]:
    if not isinstance(message.content, str) and any(isinstance(part, ImagePart) for part in message.content):
        raise RequestRefused("embedded models see no images", hint="Choose a model that does.")
    body: dict[str, Any] = {"role": message.speaker.value, "content": message.text}
    if message.tool_calls:
        body["tool_calls"] = [
            {
                "id": call.id,
                "type": "function",
                "function": {"name": call.name, "arguments": _arguments(call.arguments)},
            }
            for call in message.tool_calls
        ]
    if message.speaker is Speaker.TOOL:
        body["tool_call_id"] = message.tool_call_id
    return body


def _arguments(written: str) -> str:
    """Templates take JSON only. What a model wrote wrongly is shown to it as a text."""
    try:
        msgspec.json.decode(written)
    except (msgspec.DecodeError, UnicodeError):
        return msgspec.json.encode(written).decode()
    return written


def sampling_body(request: ModelRequest, most: int) -> dict[str, Any]:
    """What is drawn from is the model's own distribution, at the temperature and cut at the `top_p` that are asked for.

    llama.cpp's other cuts are off: an answer's probability is then what training takes it to be.
    """
    sampling = request.sampling
    body: dict[str, Any] = {
        "n_predict": min(sampling.max_tokens, most),
        "temperature": 1.0 if sampling.temperature is None else sampling.temperature,
        "top_p": 1.0 if sampling.top_p is None else sampling.top_p,
        "top_k": 0,
        "min_p": 0.0,
    }
    if sampling.stop:
        body["stop"] = list(sampling.stop)
    if request.seed is not None:
        body["seed"] = request.seed
    if request.schema is not None:
        body["json_schema"] = request.schema
    return body
