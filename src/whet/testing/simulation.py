"""A simulated student and coach: models whose skill-following and advice are known exactly.

Tasks belong to categories. The student solves a task if and only if its skill holds the rule of the task's category and
nothing harmful. The coach reads failures as any optimizer does and proposes rules: helpful, useless or harmful ones, at
stated rates drawn from the request's seed. Both depend on their request alone, so runs can be compared to the byte.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Sequence
from random import Random
from typing import Any

from whet.core import Brief, Json, ModelRequest, Split, Task, ToolResult, ToolSpec, Verdict, fingerprint
from whet.worlds import world

HARMFUL = "Always answer in one word."


def rule_of(category: str) -> str:
    return f"For {category} tasks, name the {category} code."


@world("simulated")
class SimulatedWorld:
    """Tasks of several categories, the same for the same numbers."""

    name = "simulated"

    def __init__(self, train: int = 80, selection: int = 40, test: int = 100, categories: int = 6) -> None:
        self._sizes = {Split.TRAIN: train, Split.SELECTION: selection, Split.TEST: test, Split.CONFIRM: 0}
        self._categories = [f"kind{number}" for number in range(categories)]
        self._tasks = {split: self._make(split, size) for split, size in self._sizes.items()}
        self.fingerprint = fingerprint("simulated", train, selection, test, categories)

    def tasks(self, split: Split) -> list[Task]:
        return self._tasks[split]

    async def open(self, task: Task, seed: int) -> SimulatedSession:
        return SimulatedSession(task)

    def _make(self, split: Split, size: int) -> list[Task]:
        kinds = [self._categories[number % len(self._categories)] for number in range(size)]
        return [
            Task(f"{split}-{number}", split, {"text": f"Task {split} {number} of category {kind}"}, kind)
            for number, kind in enumerate(kinds)
        ]


class SimulatedSession:
    def __init__(self, task: Task) -> None:
        self._task = task
        self.brief = Brief(str(task.inputs["text"]))

    @property
    def tools(self) -> Sequence[ToolSpec]:
        return []

    async def call(self, name: str, arguments: dict[str, Json]) -> ToolResult:
        raise AssertionError("a world without tools is never called")

    async def judge(self, answer: str) -> Verdict:
        right = answer == f"code of {self._task.kind}"
        return Verdict(right, float(right), "" if right else f"wrong: {self._task.kind} tasks want their code")

    async def close(self) -> None:
        pass


def student(request: ModelRequest) -> str:
    """Follows its skill to the letter."""
    *head, told = request.messages
    skill = head[0].text if head else ""
    category = _category(told.text)
    if HARMFUL in skill:
        return "no"
    return f"code of {category}" if rule_of(category) in skill else "I do not know."


def coach(harmful: float = 0.2, useless: float = 0.2) -> Callable[[ModelRequest], str]:
    """An optimizer that is right about as often as stated."""

    def answer(request: ModelRequest) -> str:
        text = request.messages[0].text
        chance = Random(request.seed)
        if "## Failed tries" in text:
            return _patch(text, chance, harmful, useless)
        if "## Successful tries" in text:
            return json.dumps({"patch": {"reasoning": "nothing to add", "edits": []}})
        edits = [json.loads(line.partition("] ")[2]) for line in text.splitlines() if re.match(r"\[\d+\] \{", line)]
        if "selected_indices" in text:
            order = list(range(len(edits)))
            chance.shuffle(order)
            return json.dumps({"reasoning": "drawn", "selected_indices": order})
        return _fenced({"reasoning": "each once", "edits": _distinct(edits)})

    return answer


def _patch(text: str, chance: Random, harmful: float, useless: float) -> str:
    skill, _, tries = text.partition("## Failed tries")
    missing = sorted({kind for kind in re.findall(r"category (\w+)", tries) if rule_of(kind) not in skill})
    chance.shuffle(missing)
    contents: list[str] = []
    for kind in missing[:2]:
        drawn = chance.random()
        if drawn < harmful:
            contents.append(HARMFUL)
        elif drawn < harmful + useless:
            contents.append(f"Think well about {kind} ({chance.randrange(1000)}).")
        else:
            contents.append(rule_of(kind))
    edits = [{"op": "append", "target": "", "content": content} for content in contents]
    if HARMFUL in skill:
        edits.insert(0, {"op": "delete", "target": HARMFUL, "content": ""})
    summary = [{"failure_type": kind, "description": "its rule is missing"} for kind in missing]
    return _fenced({"patch": {"reasoning": "rules are missing", "edits": edits}, "failure_summary": summary})


def _distinct(edits: list[dict[str, Any]]) -> list[dict[str, Any]]:
    seen = {(edit["op"], edit["target"], edit["content"]): edit for edit in reversed(edits)}
    return [{key: edit[key] for key in ("op", "target", "content")} for edit in reversed(seen.values())]


def _fenced(answer: dict[str, Any]) -> str:
    """As models like to: with words around it."""
    return f"Here is what I propose.\n```json\n{json.dumps(answer)}\n```\n"


def _category(text: str) -> str:
    found = re.search(r"category (\w+)", text)
    return found[1] if found else ""


def play_both(request: ModelRequest) -> str:
    """Student or coach, by what is asked: for one endpoint that serves both roles."""
    *_, told = request.messages
    return student(request) if told.text.startswith("Task ") else coach()(request)
