"""Answers are read leniently around the JSON and strictly inside it."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from whet.core import Edit
from whet.learners.skill import MergeAnswer, RankAnswer, ReflectAnswer, UpdateMode, read_answer

ANSWER = {"reasoning": "r", "edits": [{"op": "append", "target": "", "content": "Write {x} as }{ or {}."}]}
TEXT = json.dumps(ANSWER)


@pytest.mark.parametrize(
    "text",
    [
        TEXT,
        f"```json\n{TEXT}\n```",
        f"Here it is.\n\n{TEXT}\n\nI hope that {{helps}}.",
        f"Use {{braces}} and {{}} with care: {TEXT}",
        f'{{"thoughts": "first this"}}\n{TEXT}',
        f"{TEXT}\n{json.dumps({'edits': []})}",
        json.dumps(ANSWER, indent=2),
        TEXT.replace('"r"', '"two\nlines"'),
        f"{{ {TEXT}",
    ],
)
def test_words_fences_and_other_objects_around_it_do_not_matter(text: str) -> None:
    answer = read_answer(text, MergeAnswer)
    assert answer.of(UpdateMode.PATCH) == (Edit("append", "", "Write {x} as }{ or {}."),)


@pytest.mark.parametrize("cut", range(1, len(TEXT)))
def test_an_answer_that_was_cut_off_is_not_used(cut: int) -> None:
    with pytest.raises(ValueError):
        read_answer(TEXT[:-cut], MergeAnswer)


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("", "no JSON object"),
        ("I have nothing to propose.", "no JSON object"),
        ("[1, 2]", "no JSON object"),
        ('{"reasoning": "none"}', "`edits` is missing"),
        ('{"edits": [{"content": "x"}]}', "op"),
        ('{"edits": "append this"}', "array"),
        ('{"edits": [{"op": 3}]}', r"\$\.edits\[0\]\.op"),
    ],
)
def test_what_is_wrong_is_told(text: str, problem: str) -> None:
    with pytest.raises(ValueError, match=problem):
        read_answer(text, MergeAnswer)


@pytest.mark.parametrize("content", ["\ud83d", "half \udc00 of it"])
def test_half_a_character_is_an_unusable_answer_and_no_crash_later(content: str) -> None:
    with pytest.raises(ValueError, match="surrogates"):
        read_answer(json.dumps({"edits": [{"op": "append", "content": content}]}), MergeAnswer)
    whole = read_answer('{"edits": [{"op": "append", "content": "\\ud83d\\ude00"}]}', MergeAnswer)
    assert whole.of(UpdateMode.PATCH)[0].content == "😀"


def test_a_number_that_cannot_be_stored_is_an_unusable_answer() -> None:
    text = json.dumps({"patch": {"edits": []}, "failure_summary": [{"failure_type": "f", "count": 10**30}]})
    with pytest.raises(ValueError):
        read_answer(text, ReflectAnswer)


def test_deep_nesting_is_an_unusable_answer() -> None:
    with pytest.raises(ValueError):
        read_answer('{"edits": ' + "[" * 20_000, MergeAnswer)
    with pytest.raises(ValueError):
        read_answer('{"a":' * 3_000, MergeAnswer)


def test_nulls_stand_for_what_is_left_out() -> None:
    answer = read_answer('{"edits": [{"op": "delete", "target": null, "content": null, "file": null}]}', MergeAnswer)
    assert answer.of(UpdateMode.PATCH) == (Edit("delete"),)


def test_the_first_usable_object_is_the_answer() -> None:
    assert read_answer('{"selected_indices": ["a"]} {"selected_indices": [2, 1]}', RankAnswer).selected_indices == (
        2,
        1,
    )


@given(before=st.text().filter(lambda text: "{" not in text), after=st.text(), content=st.text())
def test_any_text_comes_back_as_it_was_written(before: str, after: str, content: str) -> None:
    text = before + json.dumps({"edits": [{"op": "append", "content": content}]}, ensure_ascii=False) + after
    assert read_answer(text, MergeAnswer).of(UpdateMode.PATCH)[0].content == content
