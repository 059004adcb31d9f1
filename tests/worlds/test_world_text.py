from __future__ import annotations

from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from whet.worlds.quantities import Quantity, last_quantity, only_quantity
from whet.worlds.text import answer_line, has_words, normalised


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("The Cat", "cat"),
        ("**Paris**", "paris."),
        ("«Été»", "e\u0301te\u0301"),
        ("well-known", "well known"),
        ("1,234", "1234"),
        ("50 %", "50%"),
        ("10²", "10^2"),
        ("U.S.A.", "USA"),
        ("−5", "-5"),
        ("１２", "12"),
    ],
)
def test_spelling_does_not_matter(one: str, other: str) -> None:
    assert normalised(one) == normalised(other)


@pytest.mark.parametrize(
    ("one", "other"),
    [("-5", "5"), ("3.5", "35"), ("1/2", "12"), ("C++", "C"), ("C#", "C"), ("5%", "5"), ("10²", "102"), ("$5", "£5")],
)
def test_marks_that_carry_meaning_are_kept(one: str, other: str) -> None:
    assert normalised(one) != normalised(other)


@given(st.text())
def test_normalising_twice_changes_nothing_more(text: str) -> None:
    assert normalised(normalised(text)) == normalised(text)


@pytest.mark.parametrize(
    ("reply", "line"),
    [
        ("I think.\nAnswer: 5", "5"),
        ("**Answer:** Paris", "Paris"),
        ("**Final Answer**: B", "B"),
        ("The answer is 42.", "42."),
        ("Answer: 1\nAnswer: 2", "2"),
        ("answers: 3", None),
        ("so the answer is 5", None),
        ("", None),
    ],
)
def test_the_last_answer_line_is_the_answer(reply: str, line: str | None) -> None:
    assert answer_line(reply) == line


@pytest.mark.parametrize(
    ("text", "value", "unit"),
    [
        ("1,234.5", "1234.5", ""),
        ("$3.2 million", "3200000", "$"),
        ("3,200,000 dollars", "3200000", "$"),
        ("5 billion", "5000000000", ""),
        ("5M", "5000000", ""),
        ("$5m", "5000000", "$"),
        ("5m", "5", "m"),
        ("5k", "5000", ""),
        ("-40 %", "-40", "%"),
        ("-$5", "-5", "$"),
        ("$-5", "-5", "$"),
        ("(−5)", "-5", ""),
        ("6.02e23", "6.02e23", ""),
        (".5", "0.5", ""),
        ("5.", "5", ""),
        ("12 kilometres", "12", "km"),
        ("about 7 people, yes 7", "7", ""),
    ],
)
def test_numbers_are_read_with_scale_and_unit(text: str, value: str, unit: str) -> None:
    assert only_quantity(text) == Quantity(Decimal(value).normalize() + 0, unit)


@pytest.mark.parametrize(
    "text",
    ["", "none", "3 or 4", "3/4", "10:30", "1,234,56", "3,14", "1.2.3.4", "5x3", "10²", "10^2", "5½", "5e400000", "v2"],
)
def test_what_is_not_surely_one_number_is_none(text: str) -> None:
    assert isinstance(only_quantity(text), str)


def test_an_answer_line_gives_its_last_number_unless_it_hedges() -> None:
    assert last_quantity("3 + 4 = 7") == Quantity(Decimal(7))
    assert isinstance(last_quantity("6 or 7"), str)
    assert last_quantity("7 or 7") == Quantity(Decimal(7))


@given(st.decimals(allow_nan=False, allow_infinity=False, places=3, min_value=-(10**9), max_value=10**9))
def test_a_number_reads_as_itself_however_it_is_grouped(number: Decimal) -> None:
    expected = number.normalize() + 0
    for text in (f"{number:f}", f"{number:,f}", f"It is {number:,f}."):
        read = only_quantity(text)
        assert isinstance(read, Quantity)
        assert read.value == expected


@given(st.text())
def test_any_text_can_be_searched_for_numbers(text: str) -> None:
    assert isinstance(only_quantity(text), str | Quantity)


@given(st.text())
def test_a_text_has_words_if_normalising_leaves_any(text: str) -> None:
    assert has_words(text) == bool(normalised(text))
