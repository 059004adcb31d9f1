"""One alpha for a whole campaign: nothing that can be asked adds to it."""

from __future__ import annotations

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from whet.core import InputError
from whet.gate import CAMPAIGN_ALPHA, AlphaLedger, Attempt


def test_every_attempt_may_use_half_of_what_is_left() -> None:
    ledger = AlphaLedger()
    granted: list[float] = []
    for name in "abc":
        ledger, alpha = ledger.open(name)
        granted.append(alpha)
    assert granted == pytest.approx([0.025, 0.0125, 0.00625])
    assert ledger.left == pytest.approx(0.00625)
    assert [ledger.number_of(name) for name in "abc"] == [1, 2, 3]


@given(st.lists(st.tuples(st.sampled_from("abcdefgh"), st.sampled_from(["open", "yes", "no"])), max_size=60))
def test_whatever_is_asked_the_grants_stay_below_the_total(asked: list[tuple[str, str]]) -> None:
    ledger = AlphaLedger()
    granted: dict[str, float] = {}
    for key, what in asked:
        try:
            if what == "open":
                ledger, alpha = ledger.open(key)
                assert granted.setdefault(key, alpha) == alpha, "an attempt was granted more than once"
            else:
                ledger = ledger.close(key, what == "yes")
        except InputError:
            continue
    assert sum(granted.values()) <= CAMPAIGN_ALPHA
    assert {attempt.key: attempt.alpha for attempt in ledger.attempts} == granted


def test_an_attempt_that_was_cut_off_goes_on_with_its_own_alpha() -> None:
    ledger, alpha = AlphaLedger().open("a")
    later, _ = ledger.open("b")
    again, same = later.open("a")
    assert same == alpha
    assert again == later


@pytest.mark.parametrize("certified", [True, False])
def test_an_attempt_that_ended_is_not_repeated_and_not_rewritten(certified: bool) -> None:
    ledger, _ = AlphaLedger().open("a")
    ended = ledger.close("a", certified)
    assert ended.close("a", certified) == ended
    with pytest.raises(InputError, match="made already"):
        ended.open("a")
    with pytest.raises(InputError, match="does not change"):
        ended.close("a", not certified)
    with pytest.raises(InputError, match="opened before"):
        ended.close("b", certified)


def test_a_certificate_gives_nothing_back() -> None:
    ledger, _ = AlphaLedger().open("a")
    assert ledger.close("a", True).left == ledger.left


def test_at_some_point_nothing_more_can_be_asked() -> None:
    ledger = AlphaLedger()
    for number in range(29):
        ledger, _ = ledger.open(str(number))
    with pytest.raises(InputError, match="too often"):
        ledger.open("one more")


def test_a_ledger_survives_being_written_and_a_forged_one_does_not() -> None:
    ledger = AlphaLedger().open("a")[0].close("a", False).open("b")[0]
    text = msgspec.json.encode(ledger)
    assert msgspec.json.decode(text, type=AlphaLedger) == ledger
    for forged in (
        {"total": 1.5},
        {"total": 0.05, "attempts": [{"key": "a", "alpha": 0.06}]},
        {"total": 0.05, "attempts": [{"key": "a", "alpha": 0.03}, {"key": "b", "alpha": 0.03}]},
        {"total": 0.05, "attempts": [{"key": "a", "alpha": -0.03}]},
        {"total": 0.05, "attempts": [{"key": "a", "alpha": 0.01}, {"key": "a", "alpha": 0.01}]},
    ):
        with pytest.raises(msgspec.ValidationError):
            msgspec.json.decode(json(forged), type=AlphaLedger)
    with pytest.raises(ValueError, match="use"):
        AlphaLedger(0.05, (Attempt("a", 0.051),))


def json(value: object) -> bytes:
    return msgspec.json.encode(value)
