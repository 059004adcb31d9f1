"""The least that a gateway can be: a Starlette route that hands a body on with httpx, and the answer back."""

from __future__ import annotations

import sys
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

import httpx
import uvicorn
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route


def app(upstream: str) -> Starlette:
    limits = httpx.Limits(max_connections=512, max_keepalive_connections=512)
    client = httpx.AsyncClient(limits=limits, timeout=60)

    async def chat(request: Request) -> Response:
        body = await request.body()
        answer = await client.post(f"{upstream}/chat/completions", content=body)
        return Response(answer.content, answer.status_code, media_type="application/json")

    @asynccontextmanager
    async def lifespan(app: Starlette) -> AsyncGenerator[None]:
        async with client:
            yield

    async def models(request: Request) -> Response:
        return Response("{}", media_type="application/json")

    routes = [Route("/v1/chat/completions", chat, methods=["POST"]), Route("/v1/models", models)]
    return Starlette(routes=routes, lifespan=lifespan)


if __name__ == "__main__":
    uvicorn.run(app(sys.argv[2]), port=int(sys.argv[1]), access_log=False, http="h11", log_level="warning")
