"""A model that runs within this process, asked like any other.

A request is rendered and cut into tokens first, and what is sent is those tokens. So it is known before anything is
evaluated whether it fits, and training is fed exactly what is evaluated.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable
from contextlib import aclosing
from pathlib import Path
from typing import Any

import msgspec

from whet.core import (
    AdapterRef,
    EndpointTimeout,
    Finish,
    InputError,
    ModelReply,
    ModelRequest,
    RequestRefused,
    Usage,
    WhetError,
    content_key,
)
from whet.models.embedded.chat import Chat
from whet.models.embedded.engine import Completion, Engine
from whet.models.embedded.header import read_header, read_model_header
from whet.models.embedded.identity import base_of
from whet.models.embedded.rendering import chat_body, sampling_body
from whet.models.embedded.settings import EmbeddedSettings, shape_for
from whet.models.embedded.slots import Tokens
from whet.models.wires.thinking import ThinkFilter, split_thinking

FindAdapter = Callable[[AdapterRef], Path]

_NO_JSON = "q"


class Rendered(msgspec.Struct, frozen=True):
    prompt: str


class Tokenized(msgspec.Struct, frozen=True):
    tokens: Tokens


class EmbeddedModel:
    """Starts nothing until it is asked. Belongs to one event loop, and is closed in it."""

    def __init__(
        self,
        file: Path,
        *,
        adapters: FindAdapter | None = None,
        settings: EmbeddedSettings = EmbeddedSettings(),  # noqa: B008 (frozen)
        name: str = "",
    ) -> None:
        """Raises InputError unless `file` is a language model."""
        self.file = file
        self.name = name or file.stem
        self.header = read_model_header(file)
        self.base = base_of(file)
        """The fingerprint of weights and chat template."""
        self.shape = shape_for(self.header, settings)
        self.limit = min(self.header.context, self.shape.cells)
        """Tokens of prompt and answer together."""
        self._find = adapters
        self._found: dict[str, Path] = {}
        self._held: dict[bytes, bool] = {}
        keep_bytes = settings.prompts_mib * 1024 * 1024
        self._engine = Engine(file, self.shape, keep_bytes=keep_bytes, reuse=not settings.exact)

    @classmethod
    async def open(
        cls,
        file: Path,
        *,
        adapters: FindAdapter | None = None,
        settings: EmbeddedSettings = EmbeddedSettings(),  # noqa: B008 (frozen)
        name: str = "",
    ) -> EmbeddedModel:
        """The same, and started: raises InputError also where llama.cpp does not take the file."""
        model = cls(file, adapters=adapters, settings=settings, name=name)
        try:
            await model.tokens("")
        except BaseException:
            await model.aclose()
            raise
        return model

    async def __aenter__(self) -> EmbeddedModel:
        return self

    async def __aexit__(self, *exc_info: object) -> None:
        await self.aclose()

    async def aclose(self) -> None:
        """Waits until its threads have ended."""
        await self._engine.close()

    @property
    def evaluated(self) -> int:
        """Prompt tokens evaluated so far, rather than taken from what was known."""
        return self._engine.evaluated

    @property
    def end_token(self) -> int:
        """The token that ends an answer, in chat as in plain rendering."""
        token = self.header.end_token
        if token is None:
            raise InputError(f"{self.file} does not say which token ends an answer")
        return token

    async def prompt_tokens(self, request: ModelRequest) -> Tokens:
        """Exactly the tokens that llama.cpp evaluates for this request, template and beginning of text included."""
        text = request.as_text if request.plain else await self._render(request)
        return await self._tokenize(text, beginning=True)

    async def tokens(self, text: str) -> Tokens:
        """Of an answer's text: without beginning or template, and no text in it read as a special token."""
        return await self._tokenize(text, beginning=False)

    async def send(self, request: ModelRequest, timeout: float, headers: dict[str, str]) -> ModelReply:
        self._refuse_tools(request)
        file = self._adapter(request.adapter)
        try:
            async with asyncio.timeout(timeout):
                return await self._answer(request, file)
        except TimeoutError as error:
            raise EndpointTimeout(f"no answer from {self.name} in {timeout:g} s") from error

    async def stream(self, request: ModelRequest) -> AsyncGenerator[str | ModelReply]:
        """The answer's text as it arrives, and at the end the whole of it. Its time is bounded by whoever reads it.

        Calls of tools can be told from text at the end only, so an answer that may hold some comes in one piece.
        """
        self._refuse_tools(request)
        file = self._adapter(request.adapter)
        if request.tools:
            yield await self._answer(request, file)
            return
        tokens = await self.prompt_tokens(request)
        room = self._room(tokens)
        if request.schema is not None:
            await self._probe(request.schema)
        need = len(tokens) + min(room, request.sampling.max_tokens)
        adapter = request.adapter.fingerprint if request.adapter else ""
        thoughts = None if request.plain else ThinkFilter()
        async with aclosing(self._engine.stream(tokens, need, sampling_body(request, room), adapter, file)) as pieces:
            async for piece in pieces:
                if isinstance(piece, Completion):
                    yield self._reply(request, piece)
                elif text := thoughts.feed(piece) if thoughts else piece:
                    yield text

    async def _answer(self, request: ModelRequest, file: Path | None) -> ModelReply:
        tokens = await self.prompt_tokens(request)
        room = self._room(tokens)
        need = len(tokens) + min(room, request.sampling.max_tokens)
        adapter = request.adapter.fingerprint if request.adapter else ""
        if request.schema is not None:
            await self._probe(request.schema)
        if request.tools:
            body = {**chat_body(request), **sampling_body(request, room)}
            chat, cached = await self._engine.chat(tokens, need, body, Chat, adapter, file)
            return chat.reply(self.name, len(tokens), cached)
        completion = await self._engine.complete(tokens, need, sampling_body(request, room), adapter, file)
        return self._reply(request, completion)

    def _reply(self, request: ModelRequest, completion: Completion) -> ModelReply:
        reasoning, text = ("", completion.content) if request.plain else split_thinking(completion.content)
        return ModelReply(
            text,
            finish=Finish.LENGTH if completion.stop_type == "limit" else Finish.STOP,
            usage=Usage(completion.tokens_evaluated, completion.tokens_predicted, completion.timings.cache_n),
            served_by=self.name,
            reasoning=reasoning,
        )

    def _room(self, tokens: Tokens) -> int:
        """Tokens that an answer may still have."""
        room = self.limit - len(tokens)
        if room < 1:
            raise RequestRefused(
                f"the prompt has {len(tokens):,} tokens, and {self.name} takes {self.limit:,} with the answer",
                hint="Shorten the skill or the task, or use a model with a longer context.",
            )
        return room

    async def _render(self, request: ModelRequest) -> str:
        if not self.header.template:
            raise RequestRefused(
                f"{self.name} has no chat template", hint='Set target.rendering = "plain", or use an instruct model.'
            )
        return (await self._engine.ask("/apply-template", chat_body(request), Rendered)).prompt

    async def _tokenize(self, text: str, *, beginning: bool) -> Tokens:
        body = {"content": text, "add_special": beginning, "parse_special": beginning}
        return (await self._engine.ask("/tokenize", body, Tokenized)).tokens

    def _refuse_tools(self, request: ModelRequest) -> None:
        if request.tools and (request.plain or "tools" not in self.header.template):
            raise RequestRefused(
                f"the template of {self.name} knows no tools",
                hint='Set target.tools = "text", or use a model whose template does.',
            )
        if request.tools and request.schema is not None:
            raise RequestRefused("an answer can call tools or follow a schema, not both")

    async def _probe(self, schema: dict[str, Any]) -> None:
        """llama.cpp drops a schema that it cannot follow, and says nothing. So each is tried once: with a letter that
        begins no JSON made all but certain, only a schema that holds keeps it out."""
        key = content_key("schema", schema)
        if key not in self._held:
            letter = (await self.tokens(_NO_JSON))[:1]
            sampling = {"n_predict": 1, "temperature": 0.0, "json_schema": schema, "logit_bias": [[*letter, 1000.0]]}
            tried = await self._engine.complete(letter, 2, sampling)
            self._held[key] = not tried.content.startswith(_NO_JSON)
        if not self._held[key]:
            raise RequestRefused(
                f"{self.name} cannot be held to this schema",
                hint="Leave out what llama.cpp does not know, such as uniqueItems, not, and looking ahead in patterns.",
            )

    def _adapter(self, wanted: AdapterRef | None) -> Path | None:
        """The adapter's file, checked once."""
        if wanted is None:
            return None
        if wanted.base != self.base:
            raise RequestRefused(
                f"adapter {wanted.fingerprint[:12]} was made for another base model than {self.name}",
                hint=f"It fits base {wanted.base[:12]}; this is {self.base[:12]}.",
            )
        if wanted.fingerprint not in self._found:
            self._found[wanted.fingerprint] = self._look_up(wanted)
        return self._found[wanted.fingerprint]

    def _look_up(self, wanted: AdapterRef) -> Path:
        if self._find is None:
            raise RequestRefused(f"adapter {wanted.fingerprint[:12]} is not known here", hint="No registry is open.")
        try:
            path = self._find(wanted)
            header = read_header(path)
        except WhetError as error:
            raise RequestRefused(error.message, hint=error.hint) from error
        if not header.is_adapter or header.text("adapter.type") != "lora":
            raise RequestRefused(f"{path} is no LoRA adapter")
        if header.architecture != self.header.architecture:
            raise RequestRefused(
                f"{path} is made for {header.architecture or 'nothing'}, and {self.name} is {self.header.architecture}"
            )
        return path
