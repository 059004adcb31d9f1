"""One sending to an endpoint over HTTP: encode, post, decode."""

from __future__ import annotations

from whet.core import Clock, ModelReply, ModelRequest, RequestRefused, WhetError
from whet.models.providers import Provider
from whet.models.transport import HttpStream, Transport


class HttpSender:
    """Speaks a provider's wire format over a transport that it does not own."""

    def __init__(self, provider: Provider, transport: Transport, clock: Clock, *, stream: bool = False) -> None:
        self._provider = provider
        self._transport = transport
        self._clock = clock
        self._stream = stream
        self._url = provider.wire.url(provider.base_url, provider.ref.name, stream=stream)
        self._secret = ""
        self._headers: dict[str, str] | None = None

    async def send(self, request: ModelRequest, timeout: float, headers: dict[str, str]) -> ModelReply:
        wire = self._provider.wire
        self._refuse_foreign(request)
        body = wire.encode(self._provider.ref.name, request, stream=self._stream)
        all_headers = await self._all_headers(headers)
        try:
            if self._stream:
                return await self._receive(body, all_headers, timeout)
            reply = await self._transport.post(self._url, all_headers, body, timeout)
            if reply.status != 200:
                wall = self._clock.wall()
                raise wire.refusal(reply.status, reply.headers, reply.body, secret=self._secret, wall=wall)
            return wire.decode(reply.body)
        except WhetError as error:
            # Gateways also report failures with status 200, and quote the key in them.
            if self._secret and self._secret in error.message:
                error.message = error.message.replace(self._secret, "[key]")
                error.args = (error.message,)
            raise

    async def aclose(self) -> None:
        pass

    def _refuse_foreign(self, request: ModelRequest) -> None:
        if request.plain:
            raise RequestRefused(
                f"{self._provider.ref} is asked by chat only",
                hint='Set target.rendering = "chat", or use local/ models.',
            )
        if request.adapter is not None:
            raise RequestRefused(
                f"{self._provider.ref} cannot be asked with an adapter", hint="Adapters are played by local/ models."
            )

    async def _receive(self, body: bytes, headers: dict[str, str], timeout: float) -> ModelReply:
        async with self._transport.stream(self._url, headers, body, timeout) as stream:
            if stream.status != 200:
                raise await self._refusal(stream)
            decoder = self._provider.wire.stream()
            async for chunk in stream.chunks():
                decoder.feed(chunk)
            return decoder.finish()

    async def _refusal(self, stream: HttpStream) -> Exception:
        body = await stream.read()
        return self._provider.wire.refusal(
            stream.status, stream.headers, body, secret=self._secret, wall=self._clock.wall()
        )

    async def _all_headers(self, extra: dict[str, str]) -> dict[str, str]:
        """Built once and again only when the secret has changed, as a token does before it expires."""
        secret = await self._provider.credential.secret()
        if self._headers is None or secret != self._secret:
            self._secret = secret
            self._headers = self._provider.wire.headers(secret)
        return {**self._headers, **extra} if extra else self._headers
