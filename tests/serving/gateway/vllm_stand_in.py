"""A server that speaks as vLLM does, as far as adapters go: written from its documentation, not from the gateway."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from aiohttp import web


class VLLMStandIn:
    """Has one model, and an adapter under each name that was loaded. Answers say which of them it was."""

    def __init__(self, model: str) -> None:
        self.model = model
        self.adapters: dict[str, str] = {}
        self.loads: list[str] = []
        self.unloads: list[str] = []
        self.asked: list[dict[str, Any]] = []
        self.url = ""

    async def load(self, request: web.Request) -> web.Response:
        said = await request.json()
        name, path = said["lora_name"], said["lora_path"]
        self.loads.append(name)
        if name in self.adapters:
            return _error(400, f"The lora adapter '{name}' has already been loaded.")
        if not _is_adapter(path):
            return _error(404, f"Loading lora {name} failed: No adapter found for {path}")
        self.adapters[name] = path
        return web.Response(text=f"Success: LoRA adapter '{name}' added successfully.")

    async def unload(self, request: web.Request) -> web.Response:
        name = (await request.json())["lora_name"]
        if self.adapters.pop(name, None) is None:
            return _error(404, f"The lora adapter '{name}' cannot be found.")
        self.unloads.append(name)
        return web.Response(text=f"Success: LoRA adapter '{name}' removed successfully.")

    async def chat(self, request: web.Request) -> web.StreamResponse:
        said = await request.json()
        self.asked.append(said)
        if said["model"] not in (self.model, *self.adapters):
            return _error(404, f"The model `{said['model']}` does not exist.")
        head = {"id": "chatcmpl-1", "created": 1, "model": said["model"], "object": "chat.completion"}
        message = {"role": "assistant", "content": f"by {said['model']}"}
        choice = {"index": 0, "message": message, "finish_reason": "stop"}
        usage = {"prompt_tokens": 5, "completion_tokens": 2, "total_tokens": 7}
        return web.json_response({**head, "choices": [choice], "usage": usage})

    def restart(self) -> None:
        self.adapters.clear()


def _is_adapter(path: str) -> bool:
    return Path(path, "adapter_model.safetensors").is_file()


def _error(status: int, message: str) -> web.Response:
    error = {"message": message, "type": "NotFoundError", "param": None, "code": status}
    return web.json_response({"error": error}, status=status)


@asynccontextmanager
async def vllm_stand_in(model: str = "small") -> AsyncGenerator[VLLMStandIn]:
    stand_in = VLLMStandIn(model)
    app = web.Application()
    app.router.add_post("/v1/load_lora_adapter", stand_in.load)
    app.router.add_post("/v1/unload_lora_adapter", stand_in.unload)
    app.router.add_post("/v1/chat/completions", stand_in.chat)
    runner = web.AppRunner(app, access_log=None, shutdown_timeout=0.0)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    stand_in.url = f"http://127.0.0.1:{runner.addresses[0][1]}/v1"
    try:
        yield stand_in
    finally:
        await runner.cleanup()
