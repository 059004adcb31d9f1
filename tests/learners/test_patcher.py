"""Edits: each has a status, and none touches what is protected."""

from __future__ import annotations

import re
from itertools import pairwise

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from whet.core import SKILL_FILE, Edit, EditResult, EditStatus, Skill
from whet.learners.skill import append_position, apply_edits, protected_spans, without_markers

FRONT = "---\nname: helper\ndescription: Helps.\n---\n"
SLOW = "<!-- SLOW_UPDATE_START -->\nguidance\n<!-- SLOW_UPDATE_END -->\n"
APPENDIX = "<!-- APPENDIX_START -->\n- a note\n<!-- APPENDIX_END -->\n"
DOCUMENT = f"{FRONT}\n# Rules\n\n- one\n- two\n- two again\n\n{SLOW}{APPENDIX}"


def applied(text: str, *edits: Edit) -> tuple[str, list[EditResult]]:
    skill, results = apply_edits(Skill.from_text(text), edits)
    return skill.text, list(results)


def only(text: str, edit: Edit) -> tuple[str, EditResult]:
    changed, (result,) = applied(text, edit)
    return changed, result


def test_append_goes_to_the_end() -> None:
    text, result = only("# Rules\n\n- one\n", Edit("append", content="- two"))
    assert (text, result.status) == ("# Rules\n\n- one\n\n- two\n", EditStatus.APPLIED)


def test_append_goes_before_the_first_protected_region() -> None:
    text, result = only(DOCUMENT, Edit("append", content="- three"))
    assert result.status is EditStatus.APPLIED
    assert text == f"{FRONT}\n# Rules\n\n- one\n- two\n- two again\n\n- three\n\n{SLOW}{APPENDIX}"


@pytest.mark.parametrize("document", ["", FRONT, FRONT.rstrip("\n"), FRONT + SLOW, SLOW, "# Rules", "# Rules\n\n\n"])
def test_append_works_on_every_document(document: str) -> None:
    text, result = only(document, Edit("append", content="- three"))
    assert result.status is EditStatus.APPLIED
    assert "- three\n" in text
    for part in (FRONT, SLOW):
        assert text.count(part) == document.count(part) or part not in document


def test_insert_after_goes_after_the_line_of_its_target() -> None:
    text, result = only(DOCUMENT, Edit("insert_after", target="- o", content="- one and a half"))
    assert (result.status, result.ambiguous) == (EditStatus.APPLIED, False)
    assert "- one\n- one and a half\n- two\n" in text


def test_insert_after_a_target_that_ends_its_line_goes_right_after_it() -> None:
    text, _ = only("a\nb\nc", Edit("insert_after", target="a\n", content="new"))
    assert text == "a\nnew\nb\nc"
    text, _ = only("a\nb\nc", Edit("insert_after", target="c", content="new"))
    assert text == "a\nb\nc\nnew\n"


@pytest.mark.parametrize("target", ["", "not there"])
def test_insert_after_nothing_is_appended_and_said_so(target: str) -> None:
    text, result = only("# Rules\n", Edit("insert_after", target=target, content="- new"))
    assert result.status is EditStatus.APPLIED_FALLBACK
    assert "appended" in result.note
    assert text == "# Rules\n\n- new\n"


def test_replace_and_delete_take_the_first_place_and_say_where_there_are_more() -> None:
    text, result = only(DOCUMENT, Edit("replace", target="two", content="2"))
    assert (result.status, result.ambiguous) == (EditStatus.APPLIED, True)
    assert "several" in result.note
    assert "- 2\n- two again" in text
    text, result = only(DOCUMENT, Edit("delete", target="- one\n"))
    assert (result.status, result.ambiguous) == (EditStatus.APPLIED, False)
    assert text == DOCUMENT.replace("- one\n", "")


@pytest.mark.parametrize(
    ("edit", "status"),
    [
        (Edit("replace", target="not there", content="x"), EditStatus.SKIPPED_NOT_FOUND),
        (Edit("delete", target="not there"), EditStatus.SKIPPED_NOT_FOUND),
        (Edit("replace", content="x"), EditStatus.SKIPPED_NO_TARGET),
        (Edit("delete"), EditStatus.SKIPPED_NO_TARGET),
        (Edit("prepend", content="x"), EditStatus.SKIPPED_UNKNOWN_OP),
        (Edit("", content="x"), EditStatus.SKIPPED_UNKNOWN_OP),
        (Edit("append"), EditStatus.ERROR),
        (Edit("append", content=" \n"), EditStatus.ERROR),
        (Edit("append", content="<!-- APPENDIX_START -->"), EditStatus.ERROR),
        (Edit("insert_after", target="- one"), EditStatus.ERROR),
        (Edit("replace", target="- one", content="- one"), EditStatus.ERROR),
        (Edit("append", content="x", file="../../etc/passwd"), EditStatus.ERROR),
        (Edit("append", content="x", file="references/../../x.md"), EditStatus.ERROR),
        (Edit("append", content="x", file="scripts/run.sh"), EditStatus.ERROR),
        (Edit("replace", target="guidance", content="x"), EditStatus.SKIPPED_PROTECTED),
        (Edit("delete", target="name: helper"), EditStatus.SKIPPED_PROTECTED),
        (Edit("delete", target=SLOW), EditStatus.SKIPPED_PROTECTED),
        (Edit("insert_after", target="guidance", content="x"), EditStatus.SKIPPED_PROTECTED),
        # Begins before a region and ends in it: this once destroyed the region.
        (Edit("replace", target="again\n\n<!-- SLOW_UPDATE_START -->\ngui"), EditStatus.SKIPPED_PROTECTED),
        (Edit("delete", target="END -->\n<!-- APPENDIX_START"), EditStatus.SKIPPED_PROTECTED),
    ],
)  # fmt: skip
def test_what_cannot_be_applied_has_a_status_and_changes_nothing(edit: Edit, status: EditStatus) -> None:
    text, result = only(DOCUMENT, edit)
    assert result.status is status
    assert result.note
    assert not result.status.changed
    assert text == DOCUMENT


def test_a_target_that_also_stands_in_a_region_is_taken_outside_of_it() -> None:
    text, result = only(f"{SLOW}\nguidance\n", Edit("replace", target="guidance", content="rule"))
    assert (result.status, result.ambiguous) == (EditStatus.APPLIED, False)
    assert text == f"{SLOW}\nrule\n"


def test_edits_are_applied_one_after_another() -> None:
    text, results = applied(
        "# Rules\n",
        Edit("append", content="- one"),
        Edit("replace", target="- one", content="- two"),
        Edit("replace", target="- one", content="- three"),
    )
    assert [result.status for result in results] == [
        EditStatus.APPLIED,
        EditStatus.APPLIED,
        EditStatus.SKIPPED_NOT_FOUND,
    ]
    assert text == "# Rules\n\n- two\n"


def test_edits_name_their_file() -> None:
    before = Skill({SKILL_FILE: "# Rules\n", "scripts/run.sh": "echo one\n"})
    skill, results = apply_edits(
        before,
        [
            Edit("append", content="# More", file="references/more.md"),
            Edit("replace", target="one", content="two", file="scripts/run.sh"),
        ],
    )
    assert all(result.status is EditStatus.APPLIED for result in results)
    assert skill.files == {
        SKILL_FILE: "# Rules\n",
        "scripts/run.sh": "echo two\n",
        "references/more.md": "# More\n",
    }
    assert before.files["scripts/run.sh"] == "echo one\n"


@pytest.mark.parametrize(
    ("document", "edit"),
    [
        # Front matter and regions that an edit would make or complete.
        ("", Edit("append", content="---\nname: mine\n---\nrule")),
        ("---\nrule\n", Edit("append", content="more\n---\nand more")),
        ("rule\n---\nname: x\n---\n", Edit("delete", target="rule\n")),
        ("text <!-- APPENDIX_START", Edit("append", content="--> mine")),
        ("text <!-- APPENDIX_START x", Edit("replace", target=" x", content=" -->")),
        ("<!-- APPENDIX_ mine", Edit("replace", target=" mine", content="START -->")),
    ],
)
def test_no_edit_makes_a_protected_region(document: str, edit: Edit) -> None:
    text, result = only(document, edit)
    assert result.status is EditStatus.SKIPPED_PROTECTED
    assert text == document


def test_nothing_is_appended_into_front_matter_that_quotes_a_marker() -> None:
    front = "---\nname: x\ndescription: has <!-- APPENDIX_START --> in it <!-- APPENDIX_END -->\n---\n"
    text, result = only(f"{front}# Rules\n", Edit("append", content="- one"))
    assert result.status is EditStatus.APPLIED
    assert text == f"{front}# Rules\n\n- one\n"


MARKER = re.compile(r"<!--\s*(?:SLOW_UPDATE|APPENDIX)_(?:START|END)\s*-->", re.IGNORECASE)

PIECES = [
    "---\n",
    "\n---\n",
    "name: x\n",
    "- rule\n",
    "a",
    "\n",
    " ",
    "<!--",
    "-->",
    "SLOW_UPDATE_START",
    "<!-- SLOW_UPDATE_START -->",
    "<!-- SLOW_UPDATE_END -->",
    "<!-- appendix_start -->\n",
    "<!--APPENDIX_END-->\n",
    "<!-- APPENDIX_",
    "START -->",
    "\r\n",
]
TEXTS = st.lists(st.sampled_from(PIECES) | st.text(max_size=3), max_size=8).map("".join)
OPS = st.sampled_from(["append", "insert_after", "replace", "delete", "prepend"])


def front_matter(text: str) -> str | None:
    """Found by hand and not by the pattern under test: from a first line of dashes to the next."""
    lines = text.replace("\r\n", "\n").split("\n")
    if lines[0].rstrip(" \t") != "---":
        return None
    for number, line in enumerate(lines[1:], start=1):
        if line.rstrip(" \t") == "---" and number > 1:
            return "\n".join(lines[: number + 1])
    return None


@st.composite
def edited(draw: st.DrawFn) -> tuple[str, str, str, list[Edit]]:
    """Front matter, body and regions, and edits whose targets often are in the document."""
    front = draw(st.sampled_from(["", FRONT, FRONT.replace("\n", "\r\n")]))
    body = draw(st.lists(st.sampled_from(["- rule\n", "text\n", "\n", "---\n", "a", "name"]), max_size=6).map("".join))
    regions = draw(st.sampled_from(["", SLOW, APPENDIX, SLOW + APPENDIX, SLOW + "\n" + APPENDIX]))
    document = front + body + regions
    edits: list[Edit] = []
    for _ in range(draw(st.integers(1, 4))):
        start = draw(st.integers(0, len(document)))
        inside = document[start : start + draw(st.integers(0, 40))]
        edits.append(Edit(draw(OPS), draw(st.just(inside) | TEXTS), draw(TEXTS)))
    return front, body, regions, edits


@settings(max_examples=150, deadline=None)
@given(edited())
@example(("", "", "", [Edit("append", "", "---\nx\n---\n")]))
def test_no_sequence_of_edits_changes_front_matter_or_regions(case: tuple[str, str, str, list[Edit]]) -> None:
    front, body, regions, edits = case
    document = front + body + regions
    skill, results = apply_edits(Skill.from_text(document), edits)
    text = skill.text
    assert front_matter(text) == front_matter(document)
    assert MARKER.findall(text) == MARKER.findall(document)
    for part in (SLOW, APPENDIX):
        assert text.count(part.rstrip("\n")) == document.count(part.rstrip("\n"))
    if not any(result.status.changed for result in results):
        assert text == document


@settings(max_examples=150, deadline=None)
@given(document=TEXTS, edits=st.lists(st.builds(Edit, OPS, TEXTS, TEXTS), max_size=4))
def test_no_edit_forges_or_loses_a_marker_in_any_document(document: str, edits: list[Edit]) -> None:
    skill, results = apply_edits(Skill.from_text(document), edits)
    assert MARKER.findall(skill.text) == MARKER.findall(document)
    assert (front_matter(skill.text) is None) == (front_matter(document) is None)
    assert len(results) == len(edits)


@given(TEXTS)
def test_text_from_a_model_has_no_marker_left(text: str) -> None:
    assert not MARKER.search(without_markers(text))


@given(TEXTS)
def test_spans_are_in_order_apart_and_hold_every_marker(text: str) -> None:
    spans = protected_spans(text)
    assert all(start < end for start, end in spans)
    assert all(before[1] < after[0] for before, after in pairwise(spans))
    for match in MARKER.finditer(text):
        assert any(start <= match.start() and match.end() <= end for start, end in spans)
    assert 0 <= append_position(text) <= len(text)
