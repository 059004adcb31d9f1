"""A WebSocket server that answers every frame with the same words: how fast anything on it could be."""

from __future__ import annotations

import asyncio
import sys

from aiohttp import WSMsgType, web

ANSWER = b'{"type":"observation","data":{"observation":{"echoed":"hello"},"reward":0.1,"done":false}}'


async def socket(request: web.BaseRequest) -> web.StreamResponse:
    if request.path != "/ws":
        return web.Response(body=b"{}")
    told = web.WebSocketResponse(compress=False)
    await told.prepare(request)
    async for _ in told:
        await told.send_frame(ANSWER, WSMsgType.TEXT)
    return told


async def main(port: int) -> None:
    runner = web.ServerRunner(web.Server(socket, access_log=None))
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", port).start()
    await asyncio.Event().wait()


asyncio.run(main(int(sys.argv[1])))
