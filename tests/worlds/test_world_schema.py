from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from whet.worlds.schema import example_of, problems_of, same_json, schema_problems

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=12,
)

TABLE: list[tuple[dict[str, Any], list[Any], list[Any]]] = [
    ({"type": "integer"}, [0, -3], [True, 1.0, "1", None]),
    ({"type": "number"}, [0, 1.5], [False, "1", float("nan"), float("inf")]),
    ({"type": "string"}, [""], [1, None]),
    ({"type": "boolean"}, [True], [1, 0, "true"]),
    ({"type": "null"}, [None], [0, ""]),
    ({"type": ["string", "null"]}, ["a", None], [1]),
    ({"type": "array", "items": {"type": "integer"}}, [[], [1]], [["1"], [1, True]]),
    ({"minItems": 1, "maxItems": 2}, [[1], "any text"], [[], [1, 2, 3]]),
    ({"enum": [1, "a", None]}, [1, 1.0, "a", None], [True, "b"]),
    ({"const": True}, [True], [1, "true"]),
    ({"minimum": 1, "maximum": 2}, [1, 2, "x", True], [0, 2.5]),
    ({"exclusiveMinimum": 1, "exclusiveMaximum": 2}, [1.5], [1, 2]),
    ({"minLength": 2, "maxLength": 3}, ["ab", 5], ["a", "abcd"]),
    ({"pattern": "^[a-h][1-8]$"}, ["d3", 3], ["d9", "xd3"]),
    ({"anyOf": [{"type": "integer"}, {"type": "null"}]}, [1, None], ["1", True]),
    ({"required": ["a"]}, [{"a": None}, 3], [{}, {"b": 1}]),
    ({"properties": {"a": {"type": "integer"}}, "additionalProperties": False}, [{}, {"a": 1}], [{"a": "1"}, {"b": 1}]),
    ({"additionalProperties": {"type": "integer"}}, [{"a": 1}], [{"a": "1"}]),
    ({}, [None, 1, "a"], []),
]


@pytest.mark.parametrize(("schema", "good", "bad"), TABLE)
def test_a_schema_takes_what_it_says_and_nothing_else(schema: dict[str, Any], good: list[Any], bad: list[Any]) -> None:
    assert schema_problems(schema) == []
    assert [value for value in good if problems_of(value, schema)] == []
    assert [value for value in bad if not problems_of(value, schema)] == []


@pytest.mark.parametrize(
    "schema",
    [
        {"type": "int"},
        {"enum": []},
        {"required": "a"},
        {"properties": []},
        {"properties": {"a": {"type": "nothing"}}},
        {"pattern": "("},
        {"minimum": "1"},
        {"maximum": True},
        {"minLength": -1},
        {"oneOf": [{}]},
        {"anyOf": [3]},
        "string",
    ],
)
def test_a_schema_that_cannot_be_followed_is_refused(schema: Any) -> None:
    assert schema_problems(schema)


def test_a_problem_says_where_and_what() -> None:
    schema = {
        "type": "object",
        "properties": {
            "lines": {"type": "array", "items": {"type": "object", "properties": {"n": {"type": "integer"}}}}
        },
        "required": ["id"],
    }
    assert problems_of({"lines": [{"n": 1}, {"n": "2"}]}, schema) == [
        "'id' is missing",
        "'lines[1].n' must be an integer, not string \"2\"",
    ]


@given(JSON)
def test_every_value_equals_itself_and_passes_its_own_enum(value: Any) -> None:
    assert same_json(value, value)
    assert problems_of(value, {"enum": [value]}) == []
    assert problems_of(value, {"const": value}) == []


@given(JSON, JSON)
def test_equality_is_the_same_from_both_sides(one: Any, other: Any) -> None:
    assert same_json(one, other) == same_json(other, one)


@given(st.lists(st.sampled_from(TABLE), max_size=4), st.data())
def test_an_example_follows_its_schema(rows: list[Any], data: st.DataObject) -> None:
    kinds = st.sampled_from([{"type": "string", "minLength": 3}, {"type": "integer", "minimum": 5}, {"enum": ["x"]}])
    properties = {f"p{index}": data.draw(kinds) for index in range(len(rows))}
    schema = {"type": "object", "properties": properties, "required": list(properties), "additionalProperties": False}
    assert problems_of(example_of(schema), schema) == []
