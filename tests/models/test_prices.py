"""What a call costs, to the nano-dollar."""

from datetime import date

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from whet.core import ConfigError, ModelRef, Usage
from whet.models.prices import Price, Prices, Tier, shipped_prices
from whet.models.providers import PROVIDERS

PRICES = Prices()


def ref(spec: str) -> ModelRef:
    return ModelRef(*spec.split("/", 1))


def test_the_shipped_list_is_dated_and_names_known_providers() -> None:
    shipped = shipped_prices()
    assert date.fromisoformat(shipped.checked)
    for name, price in shipped.prices.items():
        assert name.split("/")[0] in PROVIDERS
        assert price.output >= price.input > (price.cached_input or 0.0)
        assert all(tier.input >= price.input for tier in price.tiers)


def test_a_cost_is_exact() -> None:
    price = Price(input=1.25, output=10.0, cached_input=0.125)
    assert price.cost(Usage(1000, 100, 400)) == 600 * 1250 + 400 * 125 + 100 * 10_000
    assert price.cost(Usage()) == 0


def test_a_fraction_is_rounded_up_once() -> None:
    assert Price(input=0.0001, output=0.0).cost(Usage(1)) == 1
    assert Price(input=0.0001, output=0.0001).cost(Usage(5, 5)) == 1
    assert Price(input=0.1, output=0.0).cost(Usage(3)) == 300


def test_without_a_price_for_cached_input_it_costs_the_same() -> None:
    assert Price(input=2.0, output=0.0).cost(Usage(10, 0, 10)) == 20_000


def test_a_long_call_costs_its_tier_from_the_first_token() -> None:
    price = Price(1.0, 2.0, tiers=(Tier(100, 2.0, 4.0), Tier(200, 3.0, 5.0)))
    assert [price.cost(Usage(count, 1)) for count in (100, 101, 200, 201)] == [102_000, 206_000, 404_000, 608_000]


def test_fresh_input_counts_as_written_where_caching_is_charged() -> None:
    assert Price(2.0, 0.0, cached_input=0.2, cache_write=2.5).cost(Usage(10, 0, 4)) == 6 * 2500 + 4 * 200


@given(
    st.builds(Usage, st.integers(0, 10**7), st.integers(0, 10**6), st.integers(0, 10**7)),
    st.integers(0, 10**6),
    st.integers(0, 10**6),
    st.sampled_from(sorted(shipped_prices().prices)),
)
def test_more_tokens_never_cost_less(usage: Usage, more_input: int, more_output: int, name: str) -> None:
    price = shipped_prices().prices[name]
    more = Usage(usage.input_tokens + more_input, usage.output_tokens + more_output, usage.cached_tokens)
    fresh = msgspec.structs.replace(usage, cached_tokens=0)
    assert price.cost(usage) <= price.cost(fresh)
    if more.cached_tokens <= usage.input_tokens:
        assert price.cost(usage) <= price.cost(more)


@pytest.mark.parametrize(
    ("spec", "listed"),
    [
        ("openai/gpt-5", "openai/gpt-5"),
        ("openai/gpt-5-2025-08-07", "openai/gpt-5"),
        ("openai/gpt-5-mini-2025-08-07", "openai/gpt-5-mini"),
        ("anthropic/claude-sonnet-4-5-20250929", "anthropic/claude-sonnet-4-5"),
        ("qwen/qwen3-max-preview", "qwen/qwen3-max"),
        ("openai/gpt-5-pro", None),
        ("openai/gpt-5.9", None),
        ("anthropic/claude-opus-5-9", None),
        ("openai/unheard-of", None),
        ("azure/my-deployment", None),
    ],
)
def test_a_dated_name_has_the_price_of_its_model_and_another_model_has_none(spec: str, listed: str | None) -> None:
    assert PRICES.find(ref(spec)) == (shipped_prices().prices[listed] if listed else None)


@pytest.mark.parametrize("spec", ["vllm/x", "ollama/qwen3:8b", "llamacpp/x", "local/x", "scripted/x"])
def test_what_runs_at_home_is_free(spec: str) -> None:
    assert PRICES.cost(ref(spec), Usage(1000, 1000)) == 0


def test_the_users_prices_go_before_ours() -> None:
    own = Prices({"openai/gpt-5": Price(9.0, 9.0), "azure/prod": Price(1.0, 2.0), "vllm/rented": Price(3.0, 3.0)})
    assert own.find(ref("openai/gpt-5-2025-08-07")) == Price(9.0, 9.0)
    assert own.cost(ref("azure/prod"), Usage(1, 1)) == 3000
    assert own.cost(ref("vllm/rented"), Usage(1)) == 3000
    assert own.find(ref("openai/gpt-5-mini")) == PRICES.find(ref("openai/gpt-5-mini"))


def test_an_unknown_price_is_not_a_price_of_zero() -> None:
    assert PRICES.cost(ref("openai/unheard-of"), Usage(1, 1)) is None


def test_prices_that_cannot_be_are_refused() -> None:
    with pytest.raises(ConfigError, match="provider/model"):
        Prices({"gpt-5": Price(1.0, 1.0)})
    for wrong in (-1.0, float("nan"), float("inf")):
        with pytest.raises(ValueError):
            Price(wrong, 1.0)
