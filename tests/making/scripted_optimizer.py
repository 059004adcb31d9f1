"""An optimizer that knows one scenario of the pack by heart. Its good answers are parts of the exported pack.

It is also a model for subprocesses: "scripted/scripted_optimizer.py:answer" reads what is beside it.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

from whet.core import ModelRequest
from whet.core.prompts import load_prompt

STAGES = ("scenario", "tasks", "schema", "sample", "spec", "program", "solution", "verifier")
_FIRST_LINES = {
    name: re.compile(re.sub(r"\\\{\w+\\\}", ".*", re.escape(load_prompt("whet.making.prompts", name).splitlines()[0])))
    for name in STAGES
}
_EXAMPLES: dict[str, Any] = {"int": 1, "float": 1.0, "str": "x", "bool": False, "list": []}


def stage_of(request: ModelRequest) -> str:
    asked = request.messages[0].text.splitlines()[0]
    return next(name for name, line in _FIRST_LINES.items() if line.fullmatch(asked))


class Known:
    """One scenario, cut out of a folder."""

    def __init__(self, pack: Path, name: str, tasks: int, also: str = "") -> None:
        def rows(file: str) -> list[dict[str, Any]]:
            lines = (pack / f"{file}.jsonl").read_text(encoding="utf-8").splitlines()
            return [row for row in map(json.loads, lines) if row.get("scenario", row.get("name")) == name]

        self.name = name + also
        self.description = rows("gen_scenario")[0]["description"] + " It lends, takes back, and keeps to its rules."
        self.tasks = [text.rpartition("\n\n")[2] for text in rows("gen_tasks")[0]["tasks"]][:tasks]
        self.tables = rows("gen_db")[0]["db_schema"]["tables"]
        self.data = rows("gen_sample")[0]["sample_data"]["tables"]
        self.code = rows("gen_envs")[0]["full_code"]
        self.solutions = [{"acts": row["acts"], "answer": row["answer"]} for row in rows("whet_solutions")]
        self.verifiers = [row["verification"]["code"] for row in rows("gen_verifier.pure_code")]
        self.endpoints = rows("gen_spec")[0]["api_spec"]["api_groups"][0]["endpoints"]
        used = {act["tool"]: act["arguments"] for solution in self.solutions for act in solution["acts"]}
        for endpoint in self.endpoints:
            wanted = {name: one for name, one in endpoint["request_params"].items() if one["required"]}
            example = used.get(endpoint["operation_id"], {name: _example(one["type"]) for name, one in wanted.items()})
            endpoint["example"] = example

    def answer(self, request: ModelRequest) -> dict[str, Any]:
        """The good one."""
        stage, task = stage_of(request), self.task_of(request)
        answers: dict[str, Callable[[], dict[str, Any]]] = {
            "scenario": lambda: {
                "name": self.name,
                "description": self.description,
                "tables": [table["name"] for table in self.tables],
            },
            "tasks": lambda: {"tasks": self.tasks},
            "schema": lambda: {"tables": self.tables},
            "sample": lambda: {"tables": self.data},
            "spec": lambda: {"endpoints": self.endpoints},
            "program": lambda: {"code": self.code},
            "solution": lambda: self.solutions[task],
            "verifier": lambda: {"code": self.verifiers[task]},
        }
        return answers[stage]()

    def task_of(self, request: ModelRequest) -> int:
        """The place of the task that is asked about; the first where all are."""
        return next((n for n, text in enumerate(self.tasks) if text in request.messages[0].text), 0)


def _example(kind: str) -> Any:
    literal = re.match(r"Literal\['([^']*)'", kind)
    return literal[1] if literal else _EXAMPLES[kind.split("[")[0]]


def answer(request: ModelRequest) -> str:
    here = Path(__file__).parent
    with (here / "asked.txt").open("a", encoding="utf-8") as log:
        log.write(f"{stage_of(request)}\n")
    return json.dumps(Known(here / "pack", "library", 3).answer(request))
