"""Folders of the format as they are read: pure, nothing of them is run."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from scenarios import scenario, write_folder

from whet.core import InputError
from whet.worlds.awm import normal_name, read_layout
from whet.worlds.awm.inside.database import repaired
from whet.worlds.awm.inside.messages import Call
from whet.worlds.awm.operations import tools_from


@pytest.mark.parametrize(
    ("written", "name"),
    [
        ("SurveyMonkey Apply", "surveymonkey_apply"),
        ("e_commerce_33", "e_commerce_33"),
        ("A -- B", "a_b"),
        ("Note Book!", "note_book_"),
        ("Übersicht", "_bersicht"),
    ],
)
def test_names_match_across_files_whatever_their_case_and_signs(written: str, name: str) -> None:
    assert normal_name(written) == name


def test_a_scenario_is_gathered_from_its_files(tmp_path: Path) -> None:
    layout = read_layout(write_folder(tmp_path, scenario()))
    (found,) = layout.scenarios.values()
    assert (found.name, found.title, found.description) == ("note_book_", "Note Book!", "A book of notes.")
    assert len(found.ddl) == 1
    assert len(found.inserts) == 2
    assert [operation.name for operation in found.operations] == ["add_note", "get_note"]
    assert "verify_task_completion" in found.coded[0].code
    assert found.judged[0].judged
    assert layout.problems == {}


def test_one_broken_line_stops_no_other_scenario(tmp_path: Path) -> None:
    folder = write_folder(tmp_path, scenario("one"), scenario("two"))
    programs = (folder / "gen_envs.jsonl").read_text().splitlines()
    (folder / "gen_envs.jsonl").write_text(
        json.dumps({"scenario": "one", "full_code": 7}) + "\nnot json\n" + programs[1]
    )
    layout = read_layout(folder)
    assert list(layout.scenarios) == ["two"]
    assert "gen_envs.jsonl:1" in layout.problems["one"][0]
    assert "gen_envs.jsonl:2" in layout.problems[""][0]


def test_a_scenario_without_a_part_says_which(tmp_path: Path) -> None:
    folder = write_folder(tmp_path, scenario("one"), scenario("two"))
    lines = (folder / "gen_sample.jsonl").read_text().splitlines()
    (folder / "gen_sample.jsonl").write_text(lines[0] + "\n")
    assert read_layout(folder).problems == {"two": ("it is not in gen_sample.jsonl",)}


def test_of_two_verifiers_for_a_task_the_first_counts(tmp_path: Path) -> None:
    folder = write_folder(tmp_path, scenario())
    path = folder / "gen_verifier.pure_code.jsonl"
    again = json.loads(path.read_text()) | {"verification": {"code": "def verify_other(): pass"}}
    path.write_text(path.read_text() + json.dumps(again) + "\n")
    assert "buy milk" in read_layout(folder).scenarios["note_book_"].coded[0].code


def test_a_folder_that_is_none_says_what_it_lacks(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"lacks gen_tasks\.jsonl, gen_db\.jsonl"):
        read_layout(tmp_path)


def test_a_scenario_that_is_not_there_is_a_problem_of_its_name(tmp_path: Path) -> None:
    layout = read_layout(write_folder(tmp_path, scenario("one")), ["Two"])
    assert layout.scenarios == {}
    assert layout.problems == {"two": ("it is not in gen_tasks.jsonl",)}


def test_quotes_that_sqlite_does_not_know_are_repaired() -> None:
    assert repaired(r"VALUES ('it\'s', 'a\\b')") == r"VALUES ('it''s', 'a\\b')"


OPENAPI = {
    "paths": {
        "/api/items/{item_id}": {
            "put": {
                "operationId": "change_item",
                "summary": "Change an item",
                "description": "All of it.",
                "parameters": [
                    {"name": "item_id", "in": "path", "required": True, "schema": {"type": "integer", "format": "x"}},
                    {"name": "dry", "in": "query", "schema": {"type": "boolean"}, "description": "Only try"},
                    {"name": "x-token", "in": "header", "schema": {"type": "string"}},
                ],
                "requestBody": {
                    "required": True,
                    "content": {"application/json": {"schema": {"$ref": "#/components/schemas/Item"}}},
                },
            },
            "get": {"operationId": "change_item"},
        },
        "/api/bulk": {
            "post": {
                "operationId": "bulk",
                "requestBody": {
                    "content": {"application/json": {"schema": {"type": "array", "items": {"type": "integer"}}}}
                },
            }
        },
    },
    "components": {
        "schemas": {
            "Item": {
                "type": "object",
                "properties": {
                    "name": {"type": "string", "minLength": 1, "example": "pen"},
                    "kind": {"allOf": [{"$ref": "#/components/schemas/Kind"}], "description": "Which kind"},
                    "part": {"anyOf": [{"$ref": "#/components/schemas/Item"}, {"type": "null"}]},
                },
                "required": ["name"],
            },
            "Kind": {"type": "string", "enum": ["a", "b"]},
        }
    },
}


def test_a_tool_has_all_arguments_of_its_operation_side_by_side() -> None:
    tool = tools_from(OPENAPI).tools[0]
    assert tool.spec.name == "change_item"
    assert tool.spec.description == "Change an item\n\nAll of it."
    properties = tool.spec.parameters["properties"]
    assert set(properties) == {"item_id", "dry", "name", "kind", "part"}
    assert tool.spec.parameters["required"] == ["item_id", "name"]
    assert properties["kind"] == {"type": "string", "enum": ["a", "b"], "description": "Which kind"}
    assert properties["name"] == {"type": "string", "minLength": 1}


def test_a_call_goes_where_the_operation_wants_each_argument() -> None:
    tool = tools_from(OPENAPI).tools[0]
    call = tool.request({"item_id": 7, "dry": True, "name": "pen", "kind": "a"})
    assert call == Call("PUT", "/api/items/7", "dry=true", b'{"name":"pen","kind":"a"}')
    assert tool.request({"item_id": "a/../b", "name": "x"}).path == "/api/items/a%2F..%2Fb"


def test_a_body_that_is_no_object_is_one_argument() -> None:
    tool = tools_from(OPENAPI).tools[-1]
    assert list(tool.spec.parameters["properties"]) == ["body"]
    assert tool.request({"body": [1, 2]}) == Call("POST", "/api/bulk", "", b"[1,2]")


def test_of_two_operations_of_one_name_the_hidden_one_is_told() -> None:
    assert tools_from(OPENAPI).problems == ("two operations are named change_item: GET /api/items/{item_id} is hidden",)
