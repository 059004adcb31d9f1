"""Answers of an author that are wrong, stage by stage, with words that it must be told about each."""

from __future__ import annotations

import json
from typing import Any

from scripted_optimizer import Known
from workshop import changed

from whet.core import Finish, ModelReply

ALWAYS = "def verify_task_completion(initial_db_path, final_db_path, final_answer=None):\n    return {{'result': {!r}}}"
HEAD = "def verify_task_completion(initial_db_path, final_db_path, final_answer=None):\n"
ROWS = (
    HEAD
    + """\
    import sqlite3
    with sqlite3.connect("file:" + final_db_path + "?mode=ro", uri=True) as connection:
        came_back = connection.execute("SELECT returned FROM loans WHERE id = 83").fetchone()[0]
    return {"result": "complete" if came_back else "others"}
"""
)
DATED = """\
import datetime

{code}

known = verify_task_completion

def verify_task_completion(initial_db_path, final_db_path, final_answer=None):
    if datetime.date.today().year != 2026:
        return {{"result": "others"}}
    return known(initial_db_path, final_db_path, final_answer)
"""
ESCAPE = """\
import os
import socket

reached = []
try:
    os.listdir("/root")
    reached.append("files")
except OSError:
    pass
try:
    socket.create_connection(("127.0.0.1", {port}), timeout=1)
    reached.append("the network")
except OSError:
    pass
try:
    open({path!r}, "w")
    reached.append("a file of ours")
except OSError:
    pass
if os.environ.get("WHET_TEST_KEY"):
    reached.append("a key")
raise RuntimeError("reached: " + (", ".join(reached) or "nothing"))
"""


def wrong_answers(known: Known, near: Known, path: str, port: int) -> dict[str, list[tuple[Any, str]]]:
    """`near` is a scenario that is there already; `path` and `port` are what programs must not reach."""
    escape = ESCAPE.format(path=path, port=port)
    return {
        "scenario": _sketches(known, near),
        "tasks": _tasks(known),
        "schema": _schemas(known),
        "sample": _samples(known),
        "spec": _specs(known),
        "program": _programs(known, escape),
        "solution": _solutions(known),
        "verifier": _verifiers(known, escape),
    }


def _sketches(known: Known, near: Known) -> list[tuple[Any, str]]:
    good = {"name": known.name, "description": known.description, "tables": ["members", "loans"]}
    return [
        ("I would rather not.", "the reply is not JSON"),
        ('{"name": "half', "the reply is not JSON"),
        (ModelReply('{"name": "cut', finish=Finish.LENGTH), "it was cut off after 16000 tokens"),
        ("[1, 2]", "the reply must be a JSON object"),
        (changed(good, "tables", to="members"), "Expected `array`, got `str`"),
        ({"name": known.name}, "missing required field `description`"),
        (changed(good, "name", to="Public Library!"), "must be snake_case"),
        (changed(good, "description", to="It lends."), "`description` says too little"),
        (changed(good, "tables", to=["members", "members"]), "at least 2 tables"),
        ({**good, "name": near.name}, "its name is too close to those of 'shop'"),
        ({**good, "tables": [table["name"] for table in near.tables]}, "its tables are too close to those of 'shop'"),
    ]


def _tasks(known: Known) -> list[tuple[Any, str]]:
    first = known.tasks[0]
    return [
        ('{"tasks": ', "the reply is not JSON"),
        ({"tasks": [first]}, "2 tasks are asked for, and these are 1"),
        ({"tasks": [first, "Lend."]}, "task 2 says too little"),
        ({"tasks": [first, first.upper()]}, "task 2 is task 1 in nearly the same words"),
        ({"tasks": [first, 7]}, "Expected `str`, got `int`"),
    ]


def _schemas(known: Known) -> list[tuple[Any, str]]:
    tables = known.tables
    return [
        ({"tables": [*tables, tables[0]]}, "stands there 2 times"),
        ({"tables": tables[:-1]}, f"the table {tables[-1]['name']} is planned, and missing"),
        ({"tables": changed(tables, 0, "ddl", to="DROP TABLE x")}, "must be one CREATE TABLE statement"),
        ({"tables": changed(tables, 0, "indexes", to=["SELECT 1"])}, "must be CREATE INDEX statements"),
        ({"tables": changed(tables, 0, "ddl", to="CREATE TABLE clock (now TEXT,, x)")}, "does not load"),
        ({"tables": changed(tables, 0, "ddl", to="CREATE TABLE other (now TEXT)")}, "make no table of that name"),
    ]


def _samples(known: Known) -> list[tuple[Any, str]]:
    data = known.data
    loans = next(place for place, one in enumerate(data) if one["table_name"] == "loans")
    lost = "INSERT INTO loans (id, member_id, title_id, due) VALUES (9001, 9002, 1, '2026-01-01');"
    return [
        ({"tables": []}, "there are no rows"),
        ({"tables": changed(data, 0, "table_name", to="nowhere")}, "there is no table nowhere"),
        ({"tables": changed(data, 0, "insert_statements", to=["DELETE FROM clock"])}, "must be INSERT statements"),
        (
            {
                "tables": changed(
                    data,
                    loans,
                    "insert_statements",
                    to=[*data[loans]["insert_statements"], data[loans]["insert_statements"][0]],
                )
            },
            "UNIQUE constraint",
        ),
        (
            {"tables": changed(data, loans, "insert_statements", to=[*data[loans]["insert_statements"], lost])},
            "row 9001 of loans refers to a row of members that is not there",
        ),
    ]


def _specs(known: Known) -> list[tuple[Any, str]]:
    good = known.endpoints
    read = next(place for place, one in enumerate(good) if one["operation_id"] == "read_handbook")

    def spoiled(*place: Any, to: Any) -> dict[str, Any]:
        return {"endpoints": changed(good, read, *place, to=to)}

    return [
        ({"endpoints": []}, "there are no operations"),
        ({"endpoints": [*good, good[0]]}, "the operation_id get_time stands there 2 times"),
        (spoiled("path", to=good[0]["path"]), "2 operations are on POST /get_time"),
        (spoiled("operation_id", to="Read It"), "must be snake_case"),
        (spoiled("method", to="FETCH"), "the method must be one of"),
        (spoiled("path", to="read"), "the path must begin with /"),
        (spoiled("path", to="/read/{which}"), "{which} stands in the path, and is no parameter"),
        (spoiled("request_params", "topic", "param_type", to="cookie"), "the param_type of topic must be one of"),
        (spoiled("request_params", "topic", "param_type", to="path"), "topic must stand in the path in braces"),
        (spoiled("example", to={}), "the example lacks topic, which is required"),
        (spoiled("example", to={"topic": "returns", "more": 1}), "the example has more, which is no parameter"),
    ]


def _programs(known: Known, escape: str) -> list[tuple[Any, str]]:
    code = known.code
    doubled = (
        '\n\n@app.post("/get_time", operation_id="again", summary="Again")\ndef again():\n    return {"now": "never"}\n'
    )
    return [
        ({"code": code + "\ndef broken(:\n"}, "SyntaxError"),
        ({"code": "import nothing_of_that_name\n" + code}, "No module named 'nothing_of_that_name'"),
        ({"code": escape + code}, "reached: nothing"),
        (
            {"code": code.replace('operation_id="charge"', 'operation_id="bill"')},
            "no operation has the operation_id charge",
        ),
        ({"code": code.replace("    days: int", "    weeks: int")}, "has no parameter days"),
        ({"code": code + doubled}, "two handlers are on POST /get_time"),
        (
            {"code": code.replace("def call_list_overdue():\n", "def call_list_overdue():\n    1 / 0\n")},
            "list_overdue, called with its example {}, answers 500",
        ),
        ({"code": "import os\nos._exit(3)\n" + code}, "scenario library:"),
    ]


def _solutions(known: Known) -> list[tuple[Any, str]]:
    good = known.solutions[0]
    return [
        ({"acts": "take it back"}, "Expected `array`, got `str`"),
        (changed(good, "acts", 0, "tool", to="take_all"), "act 1, take_all"),
        (changed(good, "acts", 2, "arguments", to={"who": 1}), "does not fit the tool"),
        (changed(good, "acts", 4, "arguments", "loan_id", to=99_999), "act 5, take_back"),
        ({"acts": good["acts"][:4], "answer": " "}, "it changes nothing and answers nothing"),
        ({**good, "acts": good["acts"][1:2] * 31 + good["acts"]}, "the most are 30"),
    ]


def _verifiers(known: Known, escape: str) -> list[tuple[Any, str]]:
    said = HEAD + "    return {'result': 'complete' if final_answer == 'Done.' else 'others'}"
    return [
        ({"program": ""}, "missing required field `code`"),
        ({"code": "def judge():\n    return True"}, "has no function that is named verify"),
        ({"code": HEAD + "    return missing"}, "the verifier raised NameError"),
        ({"code": HEAD + "    return True"}, 'the verifier must return {"result"'),
        ({"code": ALWAYS.format("complete")}, 'it says "complete" where nothing was done'),
        ({"code": ALWAYS.format("others")}, 'it says "others" of the way through the task'),
        ({"code": said}, "where nothing was done and the right answer is given"),
        ({"code": ROWS}, "though act 6 (charge) was left out"),
        ({"code": DATED.format(code=known.verifiers[0])}, "on another date"),
        ({"code": escape + known.verifiers[0]}, "reached: nothing"),
    ]


def texts(answers: list[tuple[Any, str]]) -> list[str]:
    return [
        answer if isinstance(answer, str) else answer.text if isinstance(answer, ModelReply) else json.dumps(answer)
        for answer, _ in answers
    ]
