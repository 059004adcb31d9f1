"""Names made of content: the same content has the same name on every machine and in every process."""

from __future__ import annotations

from hashlib import blake2b
from typing import TYPE_CHECKING, Any, TypeAlias

import msgspec

if TYPE_CHECKING:
    Json: TypeAlias = bool | int | float | str | list["Json"] | dict[str, "Json"] | None
else:  # msgspec cannot build a decoder for a type that names itself
    Json = Any

_canonical = msgspec.msgpack.Encoder(order="deterministic")


def content_key(kind: str, *parts: Any) -> bytes:
    """The 16-byte key of a thing of this kind made from these parts.

    Structs among the parts must not omit defaults: whether they do for an equal value goes by its identity.
    """
    return blake2b(_canonical.encode((kind, parts)), digest_size=16).digest()


def fingerprint(kind: str, *parts: Any) -> str:
    """The same as `content_key`, readable."""
    return content_key(kind, *parts).hex()


def seed_of(key: bytes) -> int:
    """A seed below 2**31 for the one thing that this key names."""
    return int.from_bytes(key[:4], "big") >> 1


def seed_from(key: bytes | str, *parts: Any) -> int:
    """A seed below 2**31 that depends on what is seeded and on nothing else."""
    return seed_of(content_key("seed", key, *parts))
