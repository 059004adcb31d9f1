"""Opens the models of a run: one recorded model a role, over endpoints that they may share."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from hashlib import blake2b
from pathlib import Path
from typing import cast

import msgspec

from whet.core import Clock, ConfigError, ModelRef, ModelReply, ModelRequest, Nanodollars, Usage, fingerprint
from whet.models.embedded import EmbeddedModel, EmbeddedSettings, FindAdapter
from whet.models.embedded.naming import LOCAL, local_file
from whet.models.http import HttpSender
from whet.models.ledger import Caps, Ledger
from whet.models.limits import Places
from whet.models.prices import FREE, Price, Prices
from whet.models.providers import resolve
from whet.models.recorded import RecordedModel, Sender
from whet.models.roles import RoleSettings
from whet.models.scripted import Script, ScriptedSender, replay
from whet.models.transport import AioTransport, Transport
from whet.project import data_folder, find
from whet.store import RunStore

SCRIPTED = "scripted/"


class Models:
    """What the roles of one run share: transport, limits by endpoint, prices, embedded models."""

    def __init__(
        self,
        *,
        environ: Mapping[str, str],
        base_dir: Path,
        prices: Prices,
        clock: Clock,
        transport: Transport | None = None,
        adapters: FindAdapter | None = None,
        embedded: EmbeddedSettings = EmbeddedSettings(),  # noqa: B008 (frozen)
    ) -> None:
        """`adapters` finds the file of LoRA weights, or raises a WhetError."""
        self._environ = environ
        self._base_dir = base_dir
        self._prices = prices
        self._clock = clock
        self._transport = transport or AioTransport()
        self._adapters = adapters
        self._layout = embedded
        self._places: dict[str, Places] = {}
        self._embedded: dict[str, EmbeddedModel] = {}

    def check(self, role: str, settings: RoleSettings, caps: Caps) -> ModelRef:
        """Which model it is. Raises what `open` would, and sends nothing."""
        reached = self._reach(role, settings)
        self._price(role, reached, caps)
        return reached.ref

    def open(self, role: str, settings: RoleSettings, store: RunStore, ledger: Ledger) -> RecordedModel:
        """Raises ConfigError or CredentialsError before anything is sent."""
        reached = self._reach(role, settings)
        price = self._price(role, reached, ledger.caps)
        return RecordedModel(
            role,
            reached.ref,
            reached.sender,
            store=store,
            ledger=ledger,
            places=self._places.setdefault(
                reached.address, Places(min(settings.max_in_flight, reached.most_at_once), self._clock)
            ),
            clock=self._clock,
            price=_free if price is FREE else price.cost,
            settings=msgspec.structs.replace(settings, send_late_again=False) if reached.embedded else settings,
        )

    def embedded(self, role: str, settings: RoleSettings) -> EmbeddedModel | None:
        """The model that answers for this role within the process; None where an endpoint does."""
        address = self._reach(role, settings).address
        return self._embedded.get(address)

    def base(self, role: str, settings: RoleSettings) -> str:
        """What adapters have to fit: weights and chat template where they can be read, else the model's name."""
        model = self.embedded(role, settings)
        return model.base if model else fingerprint("base", settings.model)

    async def aclose(self) -> None:
        while self._embedded:
            _, model = self._embedded.popitem()
            await model.aclose()
        await self._transport.close()

    def _reach(self, role: str, settings: RoleSettings) -> _Reached:
        if not settings.model:
            raise ConfigError(f"{role}.model is missing", hint='Such as model = "openai/gpt-5.5".')
        if settings.model.startswith(SCRIPTED):
            ref, script = _script(role, settings.model.removeprefix(SCRIPTED), self._base_dir)
            return _Reached(ref, ScriptedSender(script), settings.model, local=True)
        if settings.model.startswith(f"{LOCAL}/"):
            return self._embed(role, settings)
        provider = resolve(
            settings.model, base_url=settings.base_url, options=settings, environ=self._environ, clock=self._clock
        )
        sender = HttpSender(provider, self._transport, self._clock, stream=settings.stream)
        return _Reached(provider.ref, sender, provider.base_url, provider.local)

    def _embed(self, role: str, settings: RoleSettings) -> _Reached:
        """Roles that name the same file share what runs it, unless one of them wants its answers exactly repeatable."""
        named = settings.model.removeprefix(f"{LOCAL}/")
        found = local_file(role, named, base_dir=self._base_dir, data_folder=data_folder(self._environ))
        exact = self._layout.exact or settings.max_in_flight == 1
        address = f"{LOCAL}:{found.file.resolve()}:{'exact' if exact else 'shared'}"
        model = self._embedded.get(address)
        if model is None:
            model = EmbeddedModel(
                found.file,
                adapters=self._adapters,
                settings=msgspec.structs.replace(self._layout, exact=exact),
                name=found.name,
            )
            self._embedded[address] = model
        return _Reached(found.ref, _Lent(model), address, True, embedded=True, most_at_once=model.shape.slots)

    def _price(self, role: str, reached: _Reached, caps: Caps) -> Price:
        """What the user says goes before the shipped table; what runs on the user's own machines is free."""
        price = self._prices.find(reached.ref)
        if price is None and caps.usd is not None and not reached.local:
            raise ConfigError(
                f"budget.usd is set, but the price of {role}.model = {str(reached.ref)!r} is not known",
                hint=f'Say it: [prices."{reached.ref}"] input = … and output = … (dollars per million tokens).',
            )
        if price is None or (reached.local and not self._prices.is_own(reached.ref)):
            return FREE
        return price


class _Reached(msgspec.Struct, frozen=True):
    """An endpoint that a role's settings lead to."""

    ref: ModelRef
    sender: Sender
    address: str
    local: bool
    embedded: bool = False
    most_at_once: int = sys.maxsize
    """Whoever waits for a place spends none of a call's time."""


class _Lent:
    """An embedded model as one role sees it. It is closed with all of them."""

    def __init__(self, model: EmbeddedModel) -> None:
        self._model = model

    async def send(self, request: ModelRequest, timeout: float, headers: dict[str, str]) -> ModelReply:
        return await self._model.send(request, timeout, headers)

    async def aclose(self) -> None:
        pass


def _script(role: str, reference: str, base_dir: Path) -> tuple[ModelRef, Script]:
    """The function, and a name that changes with its file: answers of an older version are not its own."""
    if reference.endswith(".jsonl"):
        return _named(reference, base_dir / reference), replay(base_dir / reference)
    module, function = find(reference, base_dir, where=f"{role}.model")
    if not callable(function):
        raise ConfigError(f"{role}.model: {reference} is not a function", hint='Write "scripted/file.py:function".')
    return _named(reference, Path(module.__file__ or "")), cast("Script", function)


def _named(reference: str, file: Path) -> ModelRef:
    source = file.read_bytes() if file.is_file() else b""
    return ModelRef("scripted", f"{reference}@{blake2b(source, digest_size=4).hexdigest()}")


def _free(usage: Usage) -> Nanodollars:
    return 0
