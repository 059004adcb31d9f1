"""What is said to a caller who gets no answer, in OpenAI's form."""

from __future__ import annotations

import math

import msgspec

from whet.core import (
    BadReply,
    CredentialsError,
    EndpointBusy,
    EndpointError,
    EndpointTimeout,
    EndpointUnreachable,
    InputError,
    RequestRefused,
    WhetError,
)


class Refusal(Exception):
    """`status` is HTTP's, `kind` and `code` are OpenAI's words for it."""

    def __init__(
        self, status: int, message: str, *, code: str = "", param: str = "", retry_after: float | None = None
    ) -> None:
        super().__init__(message)
        self.status = status
        self.message = message
        self.code = code
        self.param = param
        self.retry_after = retry_after

    @property
    def headers(self) -> list[tuple[bytes, bytes]]:
        if self.retry_after is None:
            return []
        return [(b"retry-after", str(max(1, math.ceil(min(self.retry_after, 3600.0)))).encode())]

    @property
    def body(self) -> bytes:
        return msgspec.json.encode(
            {
                "error": {
                    "message": self.message.encode("utf-8", "replace").decode(),
                    "type": _KINDS.get(self.status, "invalid_request_error" if self.status < 500 else "server_error"),
                    "param": self.param or None,
                    "code": self.code or None,
                }
            }
        )


_KINDS = {401: "authentication_error", 403: "permission_error", 404: "not_found_error", 429: "rate_limit_error"}


def refusal_of(error: WhetError) -> Refusal:
    """Whose fault it is decides the status: a key of ours that an upstream refuses is not the caller's."""
    message = str(error)
    wait = error.retry_after if isinstance(error, EndpointError) else None
    match error:
        case RequestRefused():
            return Refusal(400, message, code="refused_by_model")
        case EndpointBusy():
            return Refusal(429, message, code="upstream_busy", retry_after=wait or 1.0)
        case EndpointTimeout():
            return Refusal(504, message, code="upstream_timeout")
        case EndpointUnreachable() | BadReply() | CredentialsError():
            return Refusal(502, message, code="upstream_failed")
        case InputError():
            return Refusal(503, message, code="policy_unusable")
        case _:
            return Refusal(500, message, code="gateway_failed")
