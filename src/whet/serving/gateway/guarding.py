"""Who may ask: those with a key, or, where there are no keys, programs on this machine that are no web page."""

from __future__ import annotations

import hmac
import re
from collections.abc import Mapping

import msgspec

from whet.core import ConfigError
from whet.serving.gateway.refusal import Refusal

KEYS = "WHET_API_KEYS"
LOOPBACK = ("127.0.0.1", "localhost", "::1", "[::1]")
_PORT = re.compile(r":\d+$")


class Guard(msgspec.Struct, frozen=True):
    keys: tuple[bytes, ...] = ()
    loopback: bool = True
    """Only reached from this machine, so that a foreign host or origin is a page in somebody's browser."""

    def check(self, headers: Mapping[bytes, bytes]) -> None:
        """Raises Refusal."""
        if self.keys:
            given = headers.get(b"authorization", b"")
            scheme, _, key = given.partition(b" ")
            # Every key is compared, so that the time tells nothing of which is nearly right.
            if sum(hmac.compare_digest(key.strip(), own) for own in self.keys) == 0 or scheme.lower() != b"bearer":
                raise Refusal(401, "no key, or one that is not known here", code="invalid_api_key")
        elif self.loopback and not _from_here(headers):
            raise Refusal(403, "without keys, web pages and other hosts are not answered", code="foreign_origin")


def guard_for(host: str, environ: Mapping[str, str], *, is_open: bool) -> Guard:
    """Raises ConfigError where others could ask who have no key."""
    keys = tuple(key.strip().encode() for key in environ.get(KEYS, "").split(",") if key.strip())
    if not keys and host not in LOOPBACK and not is_open:
        raise ConfigError(
            f"{host} can be reached by others, and there are no keys",
            hint=f"Export {KEYS}=key1,key2, or say --open.",
        )
    return Guard(keys, host in LOOPBACK and not is_open)


def _from_here(headers: Mapping[bytes, bytes]) -> bool:
    host = headers.get(b"host", b"localhost").decode("latin-1")
    origin = headers.get(b"origin")
    if _PORT.sub("", host) not in LOOPBACK:
        return False
    return origin is None or origin.decode("latin-1").partition("://")[2] == host
