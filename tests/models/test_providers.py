"""From `provider/model` to an address, a wire and a key."""

import pytest

from whet.core import ConfigError, CredentialsError, ModelRef
from whet.models.credentials import AzureAuth, NoKey, RefreshedToken, StaticKey
from whet.models.providers import PROVIDERS, EndpointOptions, Provider, resolve
from whet.models.wires import AnthropicWire, OpenAIWire
from whet.models.wires.openai import Auth

KEY = "sk-proj-very-private-0123456789"
KEYS = {name: KEY for preset in PROVIDERS.values() for name in preset.key_names}
AZURE = {"AZURE_OPENAI_ENDPOINT": "https://mine.openai.azure.com/", "AZURE_OPENAI_API_KEY": KEY}


@pytest.mark.parametrize("name", sorted(set(PROVIDERS) - {"azure"}))
async def test_every_preset_resolves(name: str) -> None:
    provider = resolve(f"{name}/some/model:1", environ=KEYS)
    assert provider.ref == ModelRef(name, "some/model:1")
    assert provider.base_url.startswith("http")
    assert await provider.credential.secret() == KEY
    assert provider.local is PROVIDERS[name].local
    assert isinstance(provider.wire, AnthropicWire if name == "anthropic" else OpenAIWire)


@pytest.mark.parametrize("name", ["vllm", "ollama", "llamacpp"])
async def test_local_servers_need_no_key(name: str) -> None:
    assert await resolve(f"{name}/m", environ={}).credential.secret() == ""


@pytest.mark.parametrize(
    "url", ["http://127.0.0.1:9/v1", "http://localhost/v1", "http://[::1]:80/v1", "http://127.9.9.9"]
)
def test_a_local_address_needs_no_key_and_is_local(url: str) -> None:
    provider = resolve("openai/m", base_url=url, environ={})
    assert isinstance(provider.credential, NoKey)
    assert provider.local


@pytest.mark.parametrize(
    "url", ["https://localhost.example.com", "http://10.0.0.1/v1", "https://127.0.0.1.example.com"]
)
def test_an_address_that_looks_local_is_not(url: str) -> None:
    with pytest.raises(CredentialsError):
        resolve("openai/m", base_url=url, environ={})


def test_a_missing_key_names_what_to_export() -> None:
    with pytest.raises(CredentialsError, match="Export OPENAI_API_KEY"):
        resolve("openai/m", environ={"OPENAI_API_KEY": "  "})
    with pytest.raises(CredentialsError, match="Export DASHSCOPE_API_KEY or QWEN_API_KEY"):
        resolve("qwen/m", environ={})
    with pytest.raises(CredentialsError, match="Export MY_KEY"):
        resolve("vllm/m", options=EndpointOptions(api_key_env="MY_KEY"), environ=KEYS)


@pytest.mark.parametrize("value", ["two words", "key\nInjected: header", "clé", "k\x00"])
def test_what_cannot_be_a_key_is_refused_without_being_shown(value: str) -> None:
    with pytest.raises(CredentialsError, match="OPENAI_API_KEY") as caught:
        resolve("openai/m", environ={"OPENAI_API_KEY": value})
    assert value not in str(caught.value)


def test_an_unknown_provider_names_the_nearest() -> None:
    with pytest.raises(ConfigError, match="Did you mean 'openai'"):
        resolve("opnai/gpt-5.5", environ={})
    with pytest.raises(ConfigError, match="Did you mean 'anthropic'"):
        resolve("Antropic/claude", environ={})
    with pytest.raises(ConfigError, match="Known: anthropic, azure"):
        resolve("zzz/m", environ={})


@pytest.mark.parametrize("spec", ["gpt-5.5", "", "/", "openai/", "/m"])
def test_a_spec_without_both_parts_is_refused(spec: str) -> None:
    with pytest.raises(ConfigError, match="provider/model"):
        resolve(spec, environ=KEYS)


def test_the_configured_address_goes_before_the_exported_before_the_preset() -> None:
    exported = {**KEYS, "OPENAI_BASE_URL": "https://proxy.example/v1/"}
    assert resolve("openai/m", environ=KEYS).base_url == "https://api.openai.com/v1"
    assert resolve("openai/m", environ=exported).base_url == "https://proxy.example/v1"
    assert resolve("openai/m", base_url="https://own.example/v1", environ=exported).base_url == "https://own.example/v1"


@pytest.mark.parametrize(
    "url",
    [
        "example.com/v1",
        "ftp://example.com",
        "https://",
        "https://user:pw@example.com",
        "https://a/v1?key=x",
        "http://[::1",
    ],
)
def test_an_address_that_cannot_be_or_holds_a_key_is_refused(url: str) -> None:
    with pytest.raises(ConfigError, match="base_url") as caught:
        resolve("openai/m", base_url=url, environ=KEYS)
    assert "pw" not in str(caught.value)


def test_regions_choose_the_address() -> None:
    def base(spec: str, region: str) -> str:
        return resolve(spec, options=EndpointOptions(region=region), environ=KEYS).base_url

    assert base("minimax/m", "") == base("minimax/m", "international") == "https://api.minimax.io/v1"
    assert base("minimax/m", "china") == "https://api.minimaxi.com/v1"
    assert base("qwen/m", "china") == "https://dashscope.aliyuncs.com/compatible-mode/v1"
    with pytest.raises(ConfigError, match="Known: international, china"):
        base("minimax/m", "mars")


def azure(environ: dict[str, str], **options: object) -> Provider:
    return resolve("azure/gpt-5.5", options=EndpointOptions(**options), environ=environ)  # type: ignore[arg-type]


def url_of(provider: Provider) -> str:
    return provider.wire.url(provider.base_url, provider.ref.name, stream=False)


def test_azure_speaks_version_one_unless_a_date_is_given() -> None:
    assert url_of(azure(AZURE)) == "https://mine.openai.azure.com/openai/v1/chat/completions"
    dated = "https://mine.openai.azure.com/openai/deployments/{}/chat/completions?api-version={}"
    assert url_of(azure(AZURE, api_version="2025-01-01")) == dated.format("gpt-5.5", "2025-01-01")
    exported = {**AZURE, "OPENAI_API_VERSION": "2024-10-21"}
    assert url_of(azure(exported, deployment="prod")) == dated.format("prod", "2024-10-21")


def test_azure_sends_keys_and_tokens_in_their_own_headers() -> None:
    keyed = azure(AZURE)
    assert keyed.wire.headers(KEY)["api-key"] == KEY
    token = azure({"AZURE_OPENAI_ENDPOINT": "https://mine.openai.azure.com", "AZURE_OPENAI_AD_TOKEN": KEY})
    assert token.wire.headers(KEY)["Authorization"] == f"Bearer {KEY}"
    for auth in (AzureAuth.CLI, AzureAuth.MANAGED):
        provider = azure(AZURE, auth=auth)
        assert isinstance(provider.credential, RefreshedToken)
        assert isinstance(provider.wire, OpenAIWire)
        assert provider.wire.auth is Auth.BEARER


def test_azure_says_what_is_missing() -> None:
    with pytest.raises(ConfigError, match="AZURE_OPENAI_ENDPOINT"):
        azure({})
    with pytest.raises(CredentialsError, match="AZURE_OPENAI_API_KEY or AZURE_OPENAI_AD_TOKEN"):
        azure({"AZURE_OPENAI_ENDPOINT": "https://mine.openai.azure.com"})
    with pytest.raises(CredentialsError, match="Export AZURE_TENANT_ID and AZURE_CLIENT_SECRET"):
        azure({**AZURE, "AZURE_CLIENT_ID": "me"}, auth=AzureAuth.SERVICE_PRINCIPAL)


def test_no_repr_shows_a_key() -> None:
    for name in PROVIDERS:
        provider = resolve(f"{name}/m", environ={**KEYS, **AZURE})
        assert isinstance(provider.credential, StaticKey)
        for shown in (repr(provider), str(provider), repr(provider.credential), str(provider.credential)):
            assert KEY not in shown
