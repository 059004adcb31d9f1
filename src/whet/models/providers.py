"""Who can be asked, by name: `provider/model` becomes a wire, an address and a credential.

Adding a provider is one row of `PROVIDERS`. The environment is handed in; nothing here reads the process's own.
"""

from __future__ import annotations

import difflib
import ipaddress
from collections.abc import Mapping
from urllib.parse import urlsplit

import msgspec

from whet.core import Clock, ConfigError, CredentialsError, ModelRef, SystemClock
from whet.models.credentials import AzureAuth, Credential, NoKey, RefreshedToken, StaticKey, azure_source, key_from
from whet.models.wires import AnthropicWire, OpenAIWire, Wire
from whet.models.wires.openai import Auth, Thinking, TokenLimit


class EndpointOptions(msgspec.Struct, frozen=True, omit_defaults=True, forbid_unknown_fields=True):
    """What a role's configuration may say about its endpoint besides the model and base_url."""

    api_key_env: str = ""
    """The environment variable that holds the key, where it is not the provider's usual one."""
    region: str = ""
    """qwen: international, china or us; minimax: international or china."""
    api_version: str = ""
    """azure: a dated interface; empty for its version 1."""
    deployment: str = ""
    """azure: the deployment's name, where it is not the model's."""
    auth: AzureAuth = AzureAuth.KEY
    """azure: who asks."""
    client_id: str = ""
    """azure: which managed identity or service principal."""


class ProviderPreset(msgspec.Struct, frozen=True):
    """A row of the table: what holds for every model of a provider."""

    wire: OpenAIWire | AnthropicWire
    base_url: str = ""
    key_names: tuple[str, ...] = ()
    """Environment variables that may hold the key, the first that is set wins."""
    url_names: tuple[str, ...] = ()
    """Environment variables that may hold the address."""
    regions: dict[str, str] = {}
    """Addresses by region; the first is the default."""
    local: bool = False
    """Runs on the user's own machines: needs no key and costs nothing."""


_LOCAL_WIRE = OpenAIWire(thinking=Thinking.TEMPLATE, think_tags=True)

PROVIDERS: dict[str, ProviderPreset] = {
    "openai": ProviderPreset(
        OpenAIWire(TokenLimit.BY_MODEL),
        "https://api.openai.com/v1",
        ("OPENAI_API_KEY",),
        ("OPENAI_BASE_URL",),
    ),
    "azure": ProviderPreset(
        OpenAIWire(TokenLimit.MAX_COMPLETION_TOKENS),
        "",
        ("AZURE_OPENAI_API_KEY",),
        ("AZURE_OPENAI_ENDPOINT",),
    ),
    "anthropic": ProviderPreset(
        AnthropicWire(),
        "https://api.anthropic.com",
        ("ANTHROPIC_API_KEY",),
        ("ANTHROPIC_BASE_URL",),
    ),
    "qwen": ProviderPreset(
        OpenAIWire(thinking=Thinking.FLAG, think_tags=True),
        "",
        ("DASHSCOPE_API_KEY", "QWEN_API_KEY"),
        ("DASHSCOPE_BASE_URL", "QWEN_BASE_URL"),
        {
            "international": "https://dashscope-intl.aliyuncs.com/compatible-mode/v1",
            "china": "https://dashscope.aliyuncs.com/compatible-mode/v1",
            "us": "https://dashscope-us.aliyuncs.com/compatible-mode/v1",
        },
    ),
    "minimax": ProviderPreset(
        OpenAIWire(
            TokenLimit.MAX_COMPLETION_TOKENS, Thinking.MODE, think_tags=True, reasoning_split=True, schemas=False
        ),
        "",
        ("MINIMAX_API_KEY",),
        ("MINIMAX_BASE_URL",),
        {"international": "https://api.minimax.io/v1", "china": "https://api.minimaxi.com/v1"},
    ),
    "openrouter": ProviderPreset(
        OpenAIWire(thinking=Thinking.EFFORT, think_tags=True),
        "https://openrouter.ai/api/v1",
        ("OPENROUTER_API_KEY",),
    ),
    "vllm": ProviderPreset(_LOCAL_WIRE, "http://localhost:8000/v1", ("VLLM_API_KEY",), ("VLLM_BASE_URL",), local=True),
    "llamacpp": ProviderPreset(
        _LOCAL_WIRE, "http://localhost:8080/v1", ("LLAMA_API_KEY",), ("LLAMACPP_BASE_URL",), local=True
    ),
    "ollama": ProviderPreset(
        OpenAIWire(thinking=Thinking.EFFORT, think_tags=True),
        "http://localhost:11434/v1",
        ("OLLAMA_API_KEY",),
        ("OLLAMA_BASE_URL",),
        local=True,
    ),
}


class Provider(msgspec.Struct, frozen=True):
    """Everything that a call needs to know of its endpoint. Safe to show: the credential keeps its key to itself."""

    ref: ModelRef
    wire: Wire
    base_url: str
    credential: Credential
    local: bool = False
    """It runs on the user's own machines, so it costs nothing."""


def resolve(
    spec: str,
    *,
    base_url: str = "",
    options: EndpointOptions | None = None,
    environ: Mapping[str, str],
    clock: Clock | None = None,
) -> Provider:
    """The endpoint behind `provider/model`; a model's name may itself contain slashes.

    An address in the configuration is for this role alone, so it goes before an exported one; an exported one goes
    before the preset. Raises ConfigError and CredentialsError.
    """
    options = options or EndpointOptions()
    name, model = split_spec(spec)
    preset = PROVIDERS[name]
    address = _check_url(base_url or _exported(preset.url_names, environ) or _preset_url(name, preset, options), spec)
    ref = ModelRef(name, model)
    if name == "azure":
        return _azure(ref, address, options, environ, clock or SystemClock())
    credential = _credential(name, preset, address, options, environ)
    return Provider(ref, preset.wire, address, credential, preset.local or _is_local_url(address))


def split_spec(spec: str) -> tuple[str, str]:
    """The provider, which is known, and the model's name. Raises ConfigError."""
    name, slash, model = spec.partition("/")
    if not slash or not name or not model:
        raise ConfigError(f"{spec!r} does not name a model", hint='Write it as "provider/model"')
    if name not in PROVIDERS:
        near = difflib.get_close_matches(name.lower(), PROVIDERS, n=1, cutoff=0.5)
        hint = f"Did you mean {near[0]!r}? " if near else ""
        raise ConfigError(f"unknown provider {name!r} in {spec!r}", hint=f"{hint}Known: {', '.join(sorted(PROVIDERS))}")
    return name, model


def _is_local_url(url: str) -> bool:
    host = urlsplit(url).hostname or ""
    if host == "localhost" or host.endswith(".localhost"):
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def _exported(names: tuple[str, ...], environ: Mapping[str, str]) -> str:
    return next((value for name in names if (value := environ.get(name, "").strip())), "")


def _preset_url(name: str, preset: ProviderPreset, options: EndpointOptions) -> str:
    if not preset.regions:
        return preset.base_url
    region = options.region or next(iter(preset.regions))
    if region not in preset.regions:
        raise ConfigError(f"{name} has no region {region!r}", hint=f"Known: {', '.join(preset.regions)}")
    return preset.regions[region]


def _check_url(url: str, spec: str) -> str:
    if not url:
        raise ConfigError(f"no address for {spec!r}", hint="Set base_url, or export AZURE_OPENAI_ENDPOINT")
    try:
        parts = urlsplit(url)
        valid = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:
        valid, parts = False, urlsplit("")
    if not valid:
        raise ConfigError(f"the base_url of {spec!r} is not an http address", hint="Write it as https://host/path")
    if parts.username or parts.password or parts.query or parts.fragment:
        raise ConfigError(
            f"the base_url of {spec!r} has more than a host and a path",
            hint="Keys belong in an environment variable, named by api_key_env",
        )
    return url.rstrip("/")


def _credential(
    name: str, preset: ProviderPreset, address: str, options: EndpointOptions, environ: Mapping[str, str]
) -> Credential:
    names = (options.api_key_env,) if options.api_key_env else preset.key_names
    key = key_from(environ, names, name)
    if key is not None:
        return key
    if not options.api_key_env and (preset.local or _is_local_url(address)):
        return NoKey()
    raise CredentialsError(f"no key for {name}", hint=f"Export {' or '.join(names)}")


def _azure(ref: ModelRef, address: str, options: EndpointOptions, environ: Mapping[str, str], clock: Clock) -> Provider:
    version = options.api_version or environ.get("OPENAI_API_VERSION", "").strip()
    dated = version not in ("", "v1")
    credential = _azure_credential(address, options, environ, clock)
    wire = OpenAIWire(
        TokenLimit.MAX_COMPLETION_TOKENS,
        auth=Auth.API_KEY if _is_azure_key(credential) else Auth.BEARER,
        deployment=options.deployment,
        api_version=version if dated else "",
    )
    return Provider(ref, wire, address if dated else _version_one(address), credential, _is_local_url(address))


def _version_one(endpoint: str) -> str:
    return endpoint if endpoint.endswith("/v1") else f"{endpoint.removesuffix('/openai')}/openai/v1"


_AZURE_TOKEN = "AZURE_OPENAI_AD_TOKEN"


def _azure_credential(address: str, options: EndpointOptions, environ: Mapping[str, str], clock: Clock) -> Credential:
    if options.auth is not AzureAuth.KEY:
        return RefreshedToken(azure_source(options.auth, options.client_id, environ), clock)
    names = (options.api_key_env,) if options.api_key_env else (*PROVIDERS["azure"].key_names, _AZURE_TOKEN)
    key = key_from(environ, names, "azure")
    if key is not None:
        return key
    if _is_local_url(address):
        return NoKey()
    hint = f'Export {" or ".join(names)}, or set auth to "cli", "managed" or "service_principal"'
    raise CredentialsError("no key for azure", hint=hint)


def _is_azure_key(credential: Credential) -> bool:
    return isinstance(credential, StaticKey) and credential.source != _AZURE_TOKEN
