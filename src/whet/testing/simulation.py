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
    """An optimizer that is right about as often as stated, for every kind of call."""

    def answer(request: ModelRequest) -> str:
        text = request.messages[0].text
        chance = Random(request.seed)
        if "## Failed tries" in text:
            return _reflection(text, _proposals(text, chance, harmful, useless))
        if "## Successful tries" in text:
            return _fenced({"patch": {"reasoning": "nothing to add", _item_name(text): []}})
        return _other_answer(text, chance)

    return answer


def _other_answer(text: str, chance: Random) -> str:
    items = [json.loads(line.partition("] ")[2]) for line in text.splitlines() if re.match(r"\[\d+\] \{", line)]
    skill = text.partition("## The skill document\n\n")[2].partition("\n\n## The suggestions")[0]
    if '"selected_indices"' in text:
        order = list(range(len(items)))
        chance.shuffle(order)
        return _fenced({"reasoning": "drawn", "selected_indices": order})
    if '"learning_rate"' in text:
        return _fenced({"reasoning": "two are enough", "learning_rate": 2})
    if '"slow_update_content"' in text:
        missing = _missing(text.partition("## Today's document")[2])
        return _fenced({"reasoning": "seen", "slow_update_content": rule_of(missing[0]) if missing else ""})
    if '"meta_skill_content"' in text:
        return _fenced({"reasoning": "seen", "meta_skill_content": "Rules that name a code help."})
    if '"change_summary"' in text and "## The suggestions" in text:
        return _fenced({"new_skill": "\n".join([skill, *(item["instruction"] for item in items)])})
    if "## The skill document" in text and "what can go" in text[:200]:
        lines = re.findall(r"^(?:Think well about .*|For .* tasks, .*)$", skill, re.MULTILINE)
        gone = chance.sample(lines, min(1, len(lines)))
        return _fenced({"reasoning": "a guess", "edits": [{"op": "delete", "target": line} for line in gone]})
    if "## The reminders" in text:
        return _fenced({"appendix_notes": ["Follow every rule."]})
    return _fenced({"reasoning": "each once", _item_name(text): _distinct(items)})


def _proposals(text: str, chance: Random, harmful: float, useless: float) -> list[str]:
    """Rules for up to two of the categories that failed: helpful, useless or harmful ones."""
    missing = _missing(text)
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
    return contents


def _missing(text: str) -> list[str]:
    return sorted({kind for kind in re.findall(r"of category (\w+)", text) if rule_of(kind) not in text})


def _reflection(text: str, contents: list[str]) -> str:
    skill = text.partition("## The skill document\n\n")[2].partition("\n\n## Failed tries")[0]
    name = _item_name(text)
    items: list[dict[str, Any]]
    if name == "revise_suggestions":
        items = [{"type": "add", "title": "rule", "instruction": content} for content in contents]
    elif name == "skill_candidates":
        items = [{"title": "rules added", "new_skill": "\n".join([skill, *contents])}]
    else:
        items = [{"op": "append", "target": "", "content": content} for content in contents]
        if HARMFUL in skill:
            items.insert(0, {"op": "delete", "target": HARMFUL, "content": ""})
    summary = [{"failure_type": kind, "description": "its rule is missing"} for kind in _missing(text)]
    reflection: dict[str, Any] = {"patch": {"reasoning": "rules are missing", name: items}, "failure_summary": summary}
    if "EXECUTION_LAPSE" in text:
        reflection["appendix_notes"] = ["Follow every rule.", "follow every  rule"]
    return _fenced(reflection)


def _item_name(text: str) -> str:
    return next((name for name in ("revise_suggestions", "skill_candidates") if f'"{name}"' in text), "edits")


def _distinct(items: list[dict[str, Any]]) -> list[dict[str, Any]]:
    bare = [{key: value for key, value in item.items() if key != "support"} for item in items]
    return list({json.dumps(item, sort_keys=True): item for item in bare}.values())


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
