"""Who last wrote a line, and who took one away."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from whet.web import Row, RowKind, annotate
from whet.web.attribution import lines_of

# Few different lines, so that they repeat, move and come back.
VERSIONS = st.lists(st.lists(st.sampled_from(["", "a", "b", "c", "d"]), max_size=8), min_size=1, max_size=6)


def without(rows: list[Row], kind: RowKind) -> list[str]:
    return [row.text for row in rows if row.kind is not kind]


@given(VERSIONS)
@settings(max_examples=400)
def test_without_what_was_added_it_is_the_first_and_without_what_was_removed_the_last(
    versions: list[list[str]],
) -> None:
    rows = annotate(versions)
    assert without(rows, RowKind.ADDED) == versions[0]
    assert without(rows, RowKind.REMOVED) == versions[-1]


@given(VERSIONS)
@settings(max_examples=400)
def test_the_writer_of_a_line_has_it_and_so_has_every_version_after_it(versions: list[list[str]]) -> None:
    for row in annotate(versions):
        if row.kind is RowKind.ADDED:
            assert row.by > 0
            assert all(row.text in version for version in versions[row.by :])


@given(VERSIONS)
@settings(max_examples=400)
def test_a_version_takes_away_only_what_the_one_before_it_had(versions: list[list[str]]) -> None:
    for row in annotate(versions):
        if row.kind is RowKind.REMOVED:
            assert row.by > 0
            assert row.text in versions[0]
            assert all(row.text in version for version in versions[: row.by])


@given(VERSIONS, st.integers(0, 5))
@settings(max_examples=200)
def test_a_version_that_changes_nothing_is_named_nowhere(versions: list[list[str]], place: int) -> None:
    place = min(place, len(versions) - 1)
    repeated = [*versions[: place + 1], *versions[place:]]
    moved = [Row(row.kind, row.text, row.by + (row.by > place)) for row in annotate(versions)]
    assert annotate(repeated) == moved
    assert all(row.by != place + 1 for row in annotate(repeated))


@given(st.lists(st.text(alphabet="ab\n", max_size=6), min_size=2, max_size=2))
def test_two_versions_are_a_plain_difference_by_the_second(texts: list[str]) -> None:
    assert {row.by for row in annotate([lines_of(text) for text in texts])} <= {0, 1}


@given(st.text(alphabet="ab \r\n\x0b\u2028"))
def test_lines_joined_are_the_text_but_for_its_last_line_feed(text: str) -> None:
    assert "\n".join(lines_of(text)) == text.removesuffix("\n")


def test_each_line_is_the_one_that_last_wrote_it() -> None:
    versions = [
        ["keep", "old"],
        ["keep", "old", "one"],
        ["keep", "new", "one"],
        ["keep", "new", "one, better", "three"],
    ]
    assert annotate(versions) == [
        Row(RowKind.KEPT, "keep"),
        Row(RowKind.REMOVED, "old", 2),
        Row(RowKind.ADDED, "new", 2),
        Row(RowKind.ADDED, "one, better", 3),
        Row(RowKind.ADDED, "three", 3),
    ]


def test_what_was_taken_away_and_written_again_is_as_it_was() -> None:
    assert annotate([["a", "b"], ["a"], ["a", "b"]]) == [Row(RowKind.KEPT, "a"), Row(RowKind.KEPT, "b")]


def test_what_came_and_went_leaves_no_trace() -> None:
    assert annotate([["a"], ["a", "b"], ["a"]]) == [Row(RowKind.KEPT, "a")]


def test_nothing_is_no_rows() -> None:
    assert annotate([]) == []
    assert annotate([[], []]) == []
