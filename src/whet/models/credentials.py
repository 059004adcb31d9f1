"""Where keys and tokens come from. Nothing here shows one: not an error, not a repr."""

from __future__ import annotations

import asyncio
import importlib
from collections.abc import Callable, Mapping, Sequence
from enum import StrEnum
from typing import Any, Protocol

import msgspec

from whet.core import Clock, CredentialsError

AZURE_SCOPE = "https://cognitiveservices.azure.com/.default"
REFRESH_AHEAD = 300.0
"""Seconds before its end at which a token is renewed."""


class Credential(Protocol):
    async def secret(self) -> str:
        """The key or token to send now; empty where none is needed. Raises CredentialsError."""
        ...


class NoKey:
    def __repr__(self) -> str:
        return "NoKey()"

    async def secret(self) -> str:
        return ""


class StaticKey:
    """A key from an environment variable."""

    def __init__(self, value: str, source: str) -> None:
        self._value = value
        self.source = source

    def __repr__(self) -> str:
        return f"StaticKey(source={self.source!r})"

    async def secret(self) -> str:
        return self._value


def key_from(environ: Mapping[str, str], names: Sequence[str], purpose: str) -> StaticKey | None:
    """The first of these variables that is set. Raises CredentialsError where its value cannot be a key."""
    for name in names:
        value = environ.get(name, "").strip()
        if not value:
            continue
        if not (value.isascii() and value.isprintable() and " " not in value):
            raise CredentialsError(
                f"the value of {name} cannot be a key for {purpose}",
                hint="It contains spaces or characters that no key has: export it again",
            )
        return StaticKey(value, name)
    return None


class AccessToken(msgspec.Struct, frozen=True):
    """A token and when it ends, in seconds since 1970. Its repr is the type's name alone."""

    token: str
    expires_on: float

    def __repr__(self) -> str:
        return "AccessToken(…)"


class TokenSource(Protocol):
    def get_token(self) -> AccessToken:
        """May block for seconds. Raises CredentialsError."""
        ...


class RefreshedToken:
    """A token that is renewed before it ends, once for all who wait for it.

    While the old token still holds, a renewal that fails is not an error: the next call tries again.
    """

    def __init__(self, source: Callable[[], TokenSource], clock: Clock) -> None:
        self._make_source = source
        self._source: TokenSource | None = None
        self._clock = clock
        self._token = AccessToken("", 0.0)
        self._renewing = asyncio.Lock()

    def __repr__(self) -> str:
        return "RefreshedToken()"

    async def secret(self) -> str:
        if self._left() > REFRESH_AHEAD:
            return self._token.token
        async with self._renewing:
            if self._left() <= REFRESH_AHEAD:
                await self._renew()
        return self._token.token

    def _left(self) -> float:
        return self._token.expires_on - self._clock.wall()

    async def _renew(self) -> None:
        try:
            self._token = await asyncio.to_thread(self._get)
        except CredentialsError:
            if self._left() <= 0:
                raise

    def _get(self) -> AccessToken:
        if self._source is None:
            self._source = self._make_source()
        return self._source.get_token()


class AzureAuth(StrEnum):
    KEY = "key"
    CLI = "cli"
    """Whoever is logged in with `az login`."""
    MANAGED = "managed"
    """The machine's managed identity; `client_id` picks one of several."""
    SERVICE_PRINCIPAL = "service_principal"
    """AZURE_TENANT_ID, AZURE_CLIENT_ID and AZURE_CLIENT_SECRET."""


_AZURE_HINTS = {
    AzureAuth.CLI: "Run `az login`",
    AzureAuth.MANAGED: "Check that this machine has a managed identity, and client_id if it has several",
    AzureAuth.SERVICE_PRINCIPAL: "Check AZURE_TENANT_ID, AZURE_CLIENT_ID and AZURE_CLIENT_SECRET",
}


def azure_source(auth: AzureAuth, client_id: str, environ: Mapping[str, str]) -> Callable[[], TokenSource]:
    """What asks azure-identity for tokens. It is imported, and its settings used, when the first token is needed.

    What a service principal lacks is said at once.
    """
    if auth is AzureAuth.MANAGED:
        client = client_id or environ.get("AZURE_CLIENT_ID", "")
        settings = {"client_id": client} if client else {}
        return lambda: _AzureIdentity("ManagedIdentityCredential", settings, auth)
    if auth is AzureAuth.CLI:
        return lambda: _AzureIdentity("AzureCliCredential", {}, auth)
    principal = {
        "tenant_id": environ.get("AZURE_TENANT_ID", ""),
        "client_id": client_id or environ.get("AZURE_CLIENT_ID", ""),
        "client_secret": environ.get("AZURE_CLIENT_SECRET", ""),
    }
    missing = [f"AZURE_{name.upper()}" for name, value in principal.items() if not value]
    if missing:
        raise CredentialsError("the Azure service principal is not complete", hint=f"Export {' and '.join(missing)}")
    return lambda: _AzureIdentity("ClientSecretCredential", principal, auth)


class _AzureIdentity:
    """One of azure-identity's credentials, with its failures in whet's words."""

    def __init__(self, name: str, settings: Mapping[str, str], auth: AzureAuth) -> None:
        try:
            identity: Any = importlib.import_module("azure.identity")
            self._errors: type[Exception] = importlib.import_module("azure.core.exceptions").AzureError
        except ImportError as error:
            raise CredentialsError(
                f'auth = "{auth}" needs the package azure-identity', hint='Run `pip install "whet[azure]"`'
            ) from error
        self._credential: Any = getattr(identity, name)(**settings)
        self._auth = auth

    def get_token(self) -> AccessToken:
        try:
            token = self._credential.get_token(AZURE_SCOPE)
        except self._errors as error:
            # The library's own message may run to a page and quote the request.
            raise CredentialsError(
                f"Azure gave no token ({type(error).__name__})", hint=_AZURE_HINTS.get(self._auth, "")
            ) from None
        return AccessToken(str(token.token), float(token.expires_on))
