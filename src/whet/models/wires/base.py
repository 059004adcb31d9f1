"""What every wire format is, and what they share: reading server-sent events and telling failures apart."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from datetime import datetime
from email.utils import parsedate_to_datetime
from typing import Any, Protocol, TypeVar

import msgspec

from whet.core import (
    BadReply,
    CredentialsError,
    EndpointBusy,
    EndpointTimeout,
    EndpointUnreachable,
    ModelReply,
    ModelRequest,
    RequestRefused,
    WhetError,
)

QUOTE_LIMIT = 300
"""How many characters of an endpoint's own message an error repeats."""


class StreamDecoder(Protocol):
    def feed(self, chunk: bytes) -> list[str]:
        """Take the next bytes, cut anywhere, and give the answer's text in them, as far as it is sure to be answer.

        Raises what `Wire.refusal` would where the endpoint reports a failure within the stream.
        """
        ...

    def finish(self) -> ModelReply:
        """The whole reply. Raises BadReply where the stream broke off before its end."""
        ...


class Wire(Protocol):
    def url(self, base_url: str, model: str, *, stream: bool) -> str: ...

    def headers(self, secret: str) -> dict[str, str]: ...

    def encode(self, model: str, request: ModelRequest, *, stream: bool) -> bytes: ...

    def decode(self, body: bytes) -> ModelReply:
        """Read the body of a 200. Raises BadReply, or what `refusal` would where the body is an error after all."""
        ...

    def stream(self) -> StreamDecoder: ...

    def refusal(
        self, status: int, headers: Mapping[str, str], body: bytes, *, secret: str = "", wall: float | None = None
    ) -> WhetError:
        """What a status other than 200 means. `secret` is cut out of the message; `wall` is the time it came."""
        ...


T = TypeVar("T")


def decode_json(decoder: msgspec.json.Decoder[T], body: bytes | str) -> T:
    """Decode, or raise BadReply: nothing that an endpoint sends may raise anything else."""
    try:
        return decoder.decode(body)
    except (msgspec.DecodeError, UnicodeError, RecursionError) as error:
        raise BadReply(f"the endpoint's reply cannot be read: {clip(str(error))}") from error


def raw_text(raw: msgspec.Raw) -> str:
    """JSON kept as it was written."""
    try:
        return bytes(raw).decode()
    except UnicodeError as error:
        raise BadReply("the endpoint's reply is not UTF-8") from error


class EventReader:
    """Cuts a byte stream into the data of its server-sent events, whatever the chunks."""

    def __init__(self) -> None:
        self._rest: list[bytes] = []
        self._data: list[bytes] = []

    def feed(self, chunk: bytes) -> list[bytes]:
        if b"\n" not in chunk:
            self._rest.append(chunk)
            return []
        lines = b"".join((*self._rest, chunk)).split(b"\n")
        self._rest = [lines.pop()]
        return [event for line in lines if (event := self._line(line)) is not None]

    def flush(self) -> list[bytes]:
        """The last event of a server that ends its stream without a blank line."""
        return [event for event in (self.feed(b"\n"), self.feed(b"\n")) for event in event]

    def _line(self, line: bytes) -> bytes | None:
        line = line.removesuffix(b"\r")
        if line:
            if line.startswith(b"data:"):
                self._data.append(line[5:].removeprefix(b" "))
            return None
        if not self._data:
            return None
        event = b"\n".join(self._data)
        self._data.clear()
        return event


class ErrorDetail(msgspec.Struct):
    """The error object of both formats; servers disagree about the type of `code`."""

    message: str | None = None
    type: str | None = None
    code: str | int | None = None


class _ErrorBody(msgspec.Struct):
    error: ErrorDetail | str | None = None
    message: str | None = None
    type: str | None = None
    code: str | int | None = None
    detail: Any = None


_error_body = msgspec.json.Decoder(_ErrorBody)


def read_error(body: bytes) -> ErrorDetail:
    """The endpoint's own account of a failure, from any of the shapes that servers use, or its bare text."""
    try:
        found = _error_body.decode(body)
    except (msgspec.DecodeError, UnicodeError, RecursionError):
        return ErrorDetail(message=body[:4096].decode(errors="replace"))
    if isinstance(found.error, ErrorDetail):
        return found.error
    if isinstance(found.error, str):
        return ErrorDetail(message=found.error, code=found.code)
    if found.message is None and found.detail is not None:
        return ErrorDetail(message=str(found.detail))
    return ErrorDetail(message=found.message, type=found.type, code=found.code)


_KEY_LIKE = re.compile(r"(?:\b(?:sk|pk|rk|key)-|\bBearer\s+|\beyJ)[\w\-.*~+/=]{6,}", re.IGNORECASE)


def clip(text: str, secret: str = "") -> str:
    """One short line without anything that is, or looks like, a key."""
    if secret:
        text = text.replace(secret, "[key]")
    text = _KEY_LIKE.sub("[key]", " ".join(text.split()))
    return text if len(text) <= QUOTE_LIMIT else text[: QUOTE_LIMIT - 1] + "…"


_NO_MONEY = (
    "insufficient_quota",
    "billing",
    "insufficient balance",
    "insufficient_balance",
    "arrearage",
    "credit balance",
)


def failure(
    status: int,
    detail: ErrorDetail,
    headers: Mapping[str, str] | None = None,
    *,
    secret: str = "",
    wall: float | None = None,
) -> WhetError:
    """The error that a status and the endpoint's account of it stand for."""
    said = clip(detail.message or "", secret)
    message = f"the endpoint answered {status}: {said}" if said else f"the endpoint answered {status}"
    if status in (401, 403):
        return CredentialsError(message, hint="Check the key that is exported for this endpoint and what it may use")
    if status == 402 or (status in (400, 429) and _out_of_money(detail)):
        return RequestRefused(message, hint="The account behind this key is out of credit: waiting does not help")
    if status in (408, 504):
        return EndpointTimeout(message, retry_after=retry_after(headers or {}, said, wall))
    if status in (425, 429, 503, 529):
        return EndpointBusy(message, retry_after=retry_after(headers or {}, said, wall))
    if status >= 500:
        return EndpointUnreachable(message, retry_after=retry_after(headers or {}, said, wall))
    return RequestRefused(message, hint=_REFUSED_HINTS.get(status, ""))


_REFUSED_HINTS = {
    404: "Check the model's name and base_url",
    405: "Check base_url",
    413: "The conversation is larger than the endpoint takes",
    **dict.fromkeys((301, 302, 303, 307, 308), "Redirects are not followed: set base_url to the address it points to"),
}


def _out_of_money(detail: ErrorDetail) -> bool:
    said = f"{detail.type or ''} {detail.code or ''} {detail.message or ''}".lower()
    return any(sign in said for sign in _NO_MONEY)


_PIECE = re.compile(r"(\d+(?:\.\d+)?)\s*(ms|s|m|h)", re.IGNORECASE)
_SAID = re.compile(r"(?:try again|retry) (?:in|after) (\d+(?:\.\d+)?) ?(ms|seconds?|s|minutes?|m)\b", re.IGNORECASE)
_UNITS = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0}


def retry_after(headers: Mapping[str, str], said: str = "", wall: float | None = None) -> float | None:
    """How many seconds the endpoint asks to wait; None where it does not say."""
    lower = {name.lower(): value for name, value in headers.items()}
    asked = _number(lower.get("retry-after-ms"), 0.001)
    if asked is None:
        asked = _seconds_or_date(lower.get("retry-after", ""), lower.get("date", ""), wall)
    if asked is None:
        asked = _bucket_reset(lower)
    if asked is None and (match := _SAID.search(said)):
        unit = match[2].lower()
        asked = float(match[1]) * _UNITS["ms" if unit == "ms" else unit[0]]
    return asked


def _number(text: str | None, unit: float = 1.0) -> float | None:
    try:
        number = float(text) * unit if text else math.nan
    except ValueError:
        return None
    return max(0.0, number) if math.isfinite(number) else None


def _seconds_or_date(text: str, date: str, wall: float | None) -> float | None:
    """A date is measured against the endpoint's own clock where the reply tells it, so that ours need not be right."""
    seconds = _number(text)
    if seconds is not None or not text:
        return seconds
    until, sent = _timestamp(text), _timestamp(date)
    now = wall if sent is None else sent
    return None if until is None or now is None else max(0.0, until - now)


def _timestamp(text: str) -> float | None:
    try:
        moment: datetime = parsedate_to_datetime(text)
        return moment.timestamp()
    except (ValueError, TypeError, IndexError, OverflowError):
        return None


def _bucket_reset(lower: Mapping[str, str]) -> float | None:
    """The reset of whichever rate limit is used up, as OpenAI writes it: `6m0s`, `20ms`."""
    waits = [
        sum(float(number) * _UNITS[unit.lower()] for number, unit in _PIECE.findall(lower.get(reset, "")))
        for reset, left in (
            ("x-ratelimit-reset-requests", "x-ratelimit-remaining-requests"),
            ("x-ratelimit-reset-tokens", "x-ratelimit-remaining-tokens"),
        )
        if lower.get(left) == "0" and lower.get(reset)
    ]
    return max(waits, default=None)
