"""Each planted defect is found and named; what is sound beside it is admitted."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from scenarios import DDL, INSERTS, PROGRAM, VERIFIER, scenario, write_folder

from whet.cli.app import main
from whet.worlds.awm import admit

pytestmark = pytest.mark.slow

CONFIG = """\
[world]
use = "awm"
path = "worlds"
[target]
model = "scripted/never.py:asked"
[optimizer]
model = "scripted/never.py:asked"
"""
PASSES_ALWAYS = 'def verify_task_completion(initial_db_path, final_db_path):\n    return {"result": "complete"}\n'
ERRS = "def verify_task_completion(initial_db_path, final_db_path):\n    raise KeyError('x')\n"
MOODY = """\
def verify_task_completion(initial_db_path, final_db_path):
    import os
    return {"result": "complete" if os.getpid() % 2 else "others"}
"""
DATED = """\
def verify_task_completion(initial_db_path, final_db_path):
    from datetime import datetime
    return {"result": "complete" if datetime.now().year != 2026 else "others"}
"""
HIDDEN = PROGRAM + (
    '\n\n@app.get("/api/notes", operation_id="all_notes")\ndef all_notes():\n    return "never reached"\n'
)


async def admitted(folder: Path, *scenarios: dict[str, Any], lenient: bool = False):
    return await admit(write_folder(folder, *scenarios), lenient=lenient)


async def test_what_is_sound_is_admitted_with_its_repairs_counted(tmp_path: Path) -> None:
    admission = await admitted(tmp_path, scenario())
    report = admission.scenarios["note_book_"]
    assert report.admitted
    assert (report.problems, report.tasks[0].problems) == ((), ())
    assert (report.tools, report.statements, report.repaired) == (4, 3, 1)


async def test_each_defect_of_a_scenario_is_named_and_the_others_are_admitted(tmp_path: Path) -> None:
    admission = await admitted(
        tmp_path,
        scenario("sound"),
        scenario("table", ddl=[], inserts=INSERTS[:1]),
        scenario("insert", inserts=[*INSERTS, "INSERT INTO notes (id) VALUES (9)"]),
        scenario("attach", inserts=["ATTACH DATABASE '/tmp/stolen.db' AS other"]),
        scenario("route", program=HIDDEN),
        scenario("promise", operations=[("no_such_tool", "GET", "/api/none")]),
        scenario("syntax", program="def"),
        scenario("empty", program="x = 1"),
    )
    assert admission.admitted == ["sound"]
    says = {name: " ".join(report.problems) for name, report in admission.scenarios.items()}
    assert "no such table: notes" in says["table"]
    assert "NOT NULL" in says["insert"]
    assert "statements do not load" in says["attach"]
    assert "two handlers are on GET /api/notes" in says["route"]
    assert "promises no_such_tool" in says["promise"]
    assert "SyntaxError" in says["syntax"]
    assert "defines no FastAPI app" in says["empty"]


async def test_each_defect_of_a_task_leaves_the_other_tasks_in(tmp_path: Path) -> None:
    tasks = ["sound", "passes always", "errs", "moody", "dated", "none", "unsolvable"]
    coded = [VERIFIER, PASSES_ALWAYS, ERRS, MOODY, DATED]
    one = scenario("tasks", tasks=tasks, coded=coded, judged=[])
    report = (await admitted(tmp_path, one)).scenarios["tasks"]
    assert report.admitted
    said = [" ".join(task.problems) for task in report.tasks]
    assert said[0] == ""
    assert said[1] == "an agent that does nothing passes"
    assert "does not work: the verifier raised KeyError" in said[2]
    assert said[4] == "the verifier says other things on another date"
    assert said[5] == said[6] == "it has no verifier"


async def test_a_known_solution_must_pass(tmp_path: Path) -> None:
    good = {"acts": [{"tool": "add_note", "arguments": {"owner": "ann", "text": "buy milk"}}], "answer": ""}
    bad = {"acts": [{"tool": "add_note", "arguments": {"owner": "bob", "text": "buy milk"}}], "answer": ""}
    lost = {"acts": [{"tool": "gone", "arguments": {}}], "answer": ""}
    admission = await admitted(
        tmp_path,
        scenario("good", solutions=[good]),
        scenario("bad", solutions=[bad]),
        scenario("lost", solutions=[lost]),
    )
    assert admission.admitted == ["good"]
    assert admission.scenarios["bad"].tasks[0].problems == ("its known solution does not pass",)
    assert "calls gone, which is no tool" in admission.scenarios["lost"].tasks[0].problems[0]


async def test_lenient_keeps_what_can_be_played_and_says_what_is_wrong(tmp_path: Path) -> None:
    spoiled = scenario("spoiled", ddl=[DDL, "CREATE TABLE t ("], coded=[PASSES_ALWAYS])
    assert (await admitted(tmp_path, spoiled)).admitted == []
    admission = await admitted(tmp_path, spoiled, lenient=True)
    assert admission.admitted == ["spoiled"]
    assert len(list(admission.problems())) == 2


async def test_admitting_one_scenario_keeps_what_is_known_of_the_others(tmp_path: Path) -> None:
    folder = write_folder(tmp_path, scenario("one"), scenario("two"))
    await admit(folder)
    assert (await admit(folder, only=["two"])).admitted == ["one", "two"]


@pytest.mark.parametrize("lenient", [False, True])
def test_an_audit_of_the_folder_names_every_planted_defect(tmp_path: Path, lenient: bool) -> None:
    verifiers = [VERIFIER, PASSES_ALWAYS, ERRS, DATED]
    tasks = [f"task {number}" for number in range(4)]
    planted = [
        scenario("sound", tasks=[*tasks, "task 4"], coded=[VERIFIER] * 5, judged=[]),
        scenario("table", ddl=[], inserts=INSERTS[:1]),
        scenario("route", program=HIDDEN),
        scenario("verifiers", tasks=tasks, coded=verifiers, judged=[]),
    ]
    (tmp_path / "whet.toml").write_text(CONFIG)
    (tmp_path / "never.py").write_text("def asked(request):\n    raise AssertionError\n")
    write_folder(tmp_path / "worlds", *planted)
    whet = CliRunner().invoke
    imported = whet(main, ["world", "import", "awm", str(tmp_path / "worlds"), *(["--lenient"] if lenient else [])])
    assert imported.exit_code == 0, imported.output
    audit = whet(main, ["audit", str(tmp_path / "whet.toml"), "--verifier-only"])
    assert audit.exit_code == (1 if lenient else 0), audit.output
    for defect in (
        "task verifiers/1: an agent that does nothing passes",
        "no such table: notes",
        "scenario route: two handlers are on GET /api/notes: the later one is hidden",
        "task verifiers/3: the verifier says other things on another date",
        "task verifiers/2: the verifier does not work: the verifier raised KeyError",
    ):
        assert defect in audit.stdout
    assert "sound/" not in audit.stdout
    assert "verifiers/0" not in audit.stdout
