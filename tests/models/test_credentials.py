"""Tokens that are renewed in time, once, and never shown."""

import asyncio
import threading
from importlib.util import find_spec

import pytest

from whet.core import CredentialsError
from whet.models.credentials import (
    REFRESH_AHEAD,
    AccessToken,
    AzureAuth,
    RefreshedToken,
    TokenSource,
    azure_source,
    key_from,
)


class WallClock:
    def __init__(self) -> None:
        self.seconds = 1_000_000.0

    def wall(self) -> float:
        return self.seconds


class Tokens:
    """Gives token after token, each good for an hour, or fails."""

    def __init__(self, clock: WallClock) -> None:
        self.clock = clock
        self.given = 0
        self.failing = False
        self.threads: set[int] = set()

    def get_token(self) -> AccessToken:
        self.threads.add(threading.get_ident())
        if self.failing:
            raise CredentialsError("no token")
        self.given += 1
        return AccessToken(f"token-{self.given}", self.clock.seconds + 3600)


@pytest.fixture
def clock() -> WallClock:
    return WallClock()


@pytest.fixture
def tokens(clock: WallClock) -> Tokens:
    return Tokens(clock)


def refreshed(tokens: TokenSource, clock: WallClock) -> RefreshedToken:
    return RefreshedToken(lambda: tokens, clock)


async def test_a_token_is_renewed_before_it_ends(tokens: Tokens, clock: WallClock) -> None:
    credential = refreshed(tokens, clock)
    assert await credential.secret() == "token-1"
    clock.seconds += 3600 - REFRESH_AHEAD - 1
    assert await credential.secret() == "token-1"
    clock.seconds += 2
    assert await credential.secret() == "token-2"


async def test_all_who_wait_share_one_renewal_off_the_event_loop(tokens: Tokens, clock: WallClock) -> None:
    credential = refreshed(tokens, clock)
    assert set(await asyncio.gather(*(credential.secret() for _ in range(50)))) == {"token-1"}
    assert tokens.given == 1
    assert threading.get_ident() not in tokens.threads


async def test_a_failed_renewal_matters_only_once_the_token_has_ended(tokens: Tokens, clock: WallClock) -> None:
    credential = refreshed(tokens, clock)
    await credential.secret()
    tokens.failing = True
    clock.seconds += 3600 - REFRESH_AHEAD + 1
    assert await credential.secret() == "token-1"
    clock.seconds += REFRESH_AHEAD
    with pytest.raises(CredentialsError):
        await credential.secret()
    tokens.failing = False
    assert await credential.secret() == "token-2"


async def test_no_repr_shows_a_token(tokens: Tokens, clock: WallClock) -> None:
    credential = refreshed(tokens, clock)
    token = await credential.secret()
    assert token not in repr(credential)
    assert token not in repr(AccessToken(token, 0.0))


def test_the_first_variable_that_is_set_gives_the_key() -> None:
    key = key_from({"A": "", "B": " b ", "C": "c"}, ("A", "B", "C"), "x")
    assert key is not None
    assert key.source == "B"
    assert key_from({}, ("A",), "x") is None


@pytest.mark.skipif(find_spec("azure") is not None, reason="azure-identity is installed")
async def test_without_azure_identity_it_says_what_to_install(clock: WallClock) -> None:
    credential = RefreshedToken(azure_source(AzureAuth.CLI, "", {}), clock)
    with pytest.raises(CredentialsError, match=r"whet\[azure\]"):
        await credential.secret()
