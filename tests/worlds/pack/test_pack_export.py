"""An exported pack is played in a process that knows nothing of whet: programs serve the tools, verifiers judge."""

from __future__ import annotations

import json
import re
import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path
from typing import Any

import msgspec
import pytest
from click.testing import CliRunner

from whet.cli.app import main
from whet.core import InputError, Solution, Split
from whet.worlds import load_world
from whet.worlds.database import DatabaseWorld, ScenarioSettings
from whet.worlds.pack import pack
from whet.worlds.pack.export import export_world

PLAYER = Path(__file__).with_name("playing_exported.py")
FILES = (
    "gen_scenario",
    "gen_tasks",
    "gen_db",
    "gen_sample",
    "gen_spec",
    "gen_envs",
    "gen_verifier.pure_code",
    "gen_verifier",
)


def rows(folder: Path, name: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (folder / f"{name}.jsonl").read_text("utf-8").splitlines()]


def world(**settings: Any) -> DatabaseWorld:
    return pack(ScenarioSettings(**settings))


def solutions(made: DatabaseWorld) -> dict[str, Any]:
    """By scenario and place of the task: the known good solution and the damaged ones."""
    found: dict[str, Any] = {}
    tasks = {task.id: task for split in Split for task in made.tasks(split)}
    for drawn in made.drawn:
        for place, template in enumerate(drawn.scenario.templates):
            task = tasks[f"{drawn.scenario.name}/{template.__name__}/{drawn.variant}"]
            found[f"{drawn.scenario.name} {place}"] = {"good": made.known_good(task), "damaged": made.damaged(task)}
    return found


def test_every_file_of_the_format_has_its_rows_and_fields(tmp_path: Path) -> None:
    made = world(scenarios=("library", "bank"), variants=2)
    written = export_world(made, tmp_path)
    assert set(written.files) == {f"{name}.jsonl" for name in (*FILES, "whet_solutions")}
    assert all(row["damaged"] for row in rows(tmp_path, "whet_solutions"))
    names = [row["name"] for row in rows(tmp_path, "gen_scenario")]
    assert names == ["library", "library_2", "bank", "bank_2"]
    assert all(re.fullmatch(r"[a-z0-9_]+", name) for name in names)
    assert [len(row["tasks"]) for row in rows(tmp_path, "gen_tasks")] == [10] * 4
    assert [row["task_idx"] for row in rows(tmp_path, "gen_verifier.pure_code")][:20] == [*range(10), *range(10)]
    assert all(row["db_schema"]["tables"][0]["ddl"].startswith("CREATE TABLE") for row in rows(tmp_path, "gen_db"))
    sample = rows(tmp_path, "gen_sample")[0]
    inserts = [text for table in sample["sample_data"]["tables"] for text in table["insert_statements"]]
    assert sample["inserts_count"] == len(inserts) > 100
    endpoints = rows(tmp_path, "gen_spec")[0]["api_spec"]["api_groups"][0]["endpoints"]
    assert {"operation_id", "path", "method", "summary", "request_params"} <= set(endpoints[0])


def test_nothing_exported_needs_whet_or_names_a_path_of_this_machine(tmp_path: Path) -> None:
    export_world(world(), tmp_path)
    code = [row["full_code"] for row in rows(tmp_path, "gen_envs")]
    code += [row["verification"]["code"] for name in FILES[-2:] for row in rows(tmp_path, name)]
    imported = {name for text in code for name in re.findall(r"^\s*(?:import|from) ([a-z_0-9]+)", text, re.MULTILINE)}
    assert imported - set(sys.stdlib_module_names) == {"fastapi", "pydantic", "sqlalchemy", "uvicorn"}
    everything = "".join(path.read_text("utf-8") for path in tmp_path.iterdir())
    assert str(Path.home()) not in everything
    assert str(Path(__file__).parents[3]) not in everything


def test_only_a_world_of_scenarios_can_be_exported(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="is not made of scenarios"):
        export_world(load_world("grid_ctf", {}, base_dir=tmp_path), tmp_path)


def test_exported_data_loads_where_references_are_enforced(tmp_path: Path) -> None:
    export_world(world(), tmp_path)
    samples = rows(tmp_path, "gen_sample")
    for schema, sample in zip(rows(tmp_path, "gen_db"), samples, strict=True):
        with closing(sqlite3.connect(":memory:")) as connection:
            connection.execute("PRAGMA foreign_keys = ON")
            for table in schema["db_schema"]["tables"]:
                connection.execute(table["ddl"])
            for table in sample["sample_data"]["tables"]:
                for statement in table["insert_statements"]:
                    connection.execute(statement)


@pytest.mark.slow
def test_exported_programs_and_verifiers_agree_with_the_checks_in_here(tmp_path: Path) -> None:
    done = CliRunner().invoke(main, ["world", "export", "pack", str(tmp_path / "awm")])
    assert done.exit_code == 0, done.output
    made = solutions(world())
    (tmp_path / "solutions.json").write_bytes(msgspec.json.encode(made))
    ran = subprocess.run(
        [sys.executable, "-W", "ignore", str(PLAYER), str(tmp_path / "awm"), str(tmp_path / "solutions.json")],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=110,
        check=False,
    )
    assert ran.returncode == 0, ran.stderr
    results: dict[str, dict[str, list[str]]] = json.loads(ran.stdout)
    assert len(results) == 60
    for task, found in results.items():
        assert found["good"] == ["complete"], task
        assert found["nothing"] == ["others"], task
        assert found["damaged"] == ["others"] * len(made[task]["damaged"]), task
        assert found["refused"] == [], task


def test_a_solution_names_tools_of_its_scenario_only() -> None:
    made = world(scenarios=("shop",))
    for each in solutions(made).values():
        assert isinstance(each["good"], Solution)
        assert {act.tool for act in each["good"].acts} <= {tool.__name__ for tool in made.drawn[0].scenario.tools} | {
            "get_time",
            "read_handbook",
        }
