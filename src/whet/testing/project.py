"""A whole project over the simulated world and an endpoint, for trainings that tests start, kill and compare."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from whet.core import Message, ModelReply, ModelRequest, Speaker, Usage
from whet.testing.endpoint import StandInRequest
from whet.testing.simulation import play_both

KEY_VARIABLE = "WHET_TEST_KEY"
KEY = "sk-test-0123456789abcdef"

_CONFIG = """\
[world]
use = "whet.testing.simulation:SimulatedWorld"
train = {train}
selection = {selection}
test = {test}

[target]
model = "openai/student"
base_url = "{base_url}"
api_key_env = "{key_variable}"
send_purpose = true
max_in_flight = {in_flight}
max_tokens = 100

[optimizer]
model = "openai/coach"
base_url = "{base_url}"
api_key_env = "{key_variable}"
send_purpose = true
max_in_flight = {in_flight}

[skill]
minibatch_size = 4

[gate]
rule = "strict"

[train]
epochs = {epochs}
batch_size = {batch_size}
"""


def write_project(
    folder: Path,
    base_url: str,
    *,
    train: int = 80,
    selection: int = 40,
    test: int = 100,
    epochs: int = 4,
    batch_size: int = 40,
    in_flight: int = 64,
    more: str = "",
) -> Path:
    """Write whet.toml into `folder`; `more` is put at its end. Gives the file's path."""
    folder.mkdir(parents=True, exist_ok=True)
    text = _CONFIG.format(
        train=train,
        selection=selection,
        test=test,
        epochs=epochs,
        batch_size=batch_size,
        in_flight=in_flight,
        base_url=base_url,
        key_variable=KEY_VARIABLE,
    )
    path = folder / "whet.toml"
    path.write_text(text + more, encoding="utf-8")
    return path


def asked_of(body: dict[str, Any]) -> ModelRequest:
    """An OpenAI request body as the request that it came from, as far as a script needs it."""
    messages = tuple(Message(Speaker(message["role"]), message["content"]) for message in body["messages"])
    return ModelRequest(messages, seed=body.get("seed"))


def answer_with(script: Callable[[ModelRequest], str] = play_both) -> Callable[[StandInRequest], ModelReply]:
    """Serve a script over an endpoint, with honest usage."""

    def answer(request: StandInRequest) -> ModelReply:
        asked = asked_of(request.body)
        text = script(asked)
        words = sum(len(message.text.split()) for message in asked.messages)
        return ModelReply(text, usage=Usage(words, max(1, len(text.split()))), served_by="stand-in")

    return answer
