"""Small promises of the words: verdicts, money, prompts, causes."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from whet.core import (
    BudgetExhausted,
    ConfigError,
    Usage,
    Verdict,
    WhetError,
    cause_of,
    dollars,
    nanodollars,
    show_dollars,
)
from whet.core.prompts import fill, strip_header


@pytest.mark.parametrize("soft", [math.nan, math.inf, -math.inf, -0.001, 1.001])
def test_a_verdict_refuses_what_is_no_share(soft: float) -> None:
    with pytest.raises(ValueError, match="between 0 and 1"):
        Verdict(True, soft)


@pytest.mark.parametrize("soft", [0.0, 0.5, 1.0, 0, 1])
def test_a_verdict_takes_every_share(soft: float) -> None:
    assert Verdict(False, soft).soft == soft


@pytest.mark.parametrize(
    ("amount", "shown"),
    [
        (0, "$0.00"),
        (1_000_000_000, "$1.00"),
        (1_234_567_890, "$1.23"),
        (123_456_789_000, "$123.46"),
        (12_300_000, "$0.0123"),
        (999_940_000, "$0.9999"),
    ],
)
def test_money_is_shown_as_people_read_it(amount: int, shown: str) -> None:
    assert show_dollars(amount) == shown


@given(st.integers(0, 10**15))
def test_money_comes_back_from_dollars(amount: int) -> None:
    assert nanodollars(dollars(amount)) == amount


@given(st.text(), st.text())
def test_prompts_are_filled_in_one_pass(first: str, second: str) -> None:
    filled = fill("[{first}|{second}]", {"first": f"{first}{{second}}", "second": f"{second}{{first}}"})
    assert filled == f"[{first}{{second}}|{second}{{first}}]"


def test_braces_that_are_no_input_are_left_alone() -> None:
    assert fill('{"op": "x"} {Not} {} {{a}}', {"a": "1"}) == '{"op": "x"} {Not} {} {1}'


def test_a_prompt_that_asks_for_more_is_a_mistake_that_says_what_there_is() -> None:
    with pytest.raises(ConfigError, match=r"asks for \{skil\}.*It may use: budget, skill"):
        fill("{skil}", {"skill": "", "budget": ""})


def test_only_the_header_is_taken_from_a_prompt() -> None:
    assert strip_header("<!-- What it is.\nInputs: a. -->\n\nText <!-- kept -->\n\n") == "Text <!-- kept -->"
    assert strip_header("Text <!-- kept -->") == "Text <!-- kept -->"


def test_usage_adds_up() -> None:
    assert Usage(1, 2, 3, 4) + Usage(10, 20, 30, 40) == Usage(11, 22, 33, 44)


def test_of_several_errors_ours_is_told() -> None:
    ours = BudgetExhausted("used up")
    group = BaseExceptionGroup("outer", [ValueError("x"), BaseExceptionGroup("inner", [KeyError("y"), ours])])
    assert cause_of(group) is ours
    other = ValueError("x")
    assert cause_of(BaseExceptionGroup("only", [other])) is other
    assert str(WhetError("it broke")) == "it broke"
