"""The benchmark's optimizer gives every trainer the same proposals, in the form that each asks for."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from whet.core.prompts import fill
from whet.learners.skill import Prompts
from whet.testing.simulation import HARMFUL, rule_of

BENCH = Path(__file__).resolve().parents[2] / "bench"
SKILL = f"# Skill\n\nAnswer the task.\n\n{rule_of('kind1')}"
TASKS = ["Task train 1 of category kind1", "Task train 2 of category kind2"]


@pytest.fixture
def optimizer(monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    monkeypatch.syspath_prepend(str(BENCH))
    from skill_peers.simulation import Simulation

    yield lambda told, seed: Simulation(seed, None).answer([{"role": "user", "content": told}])
    for name in [name for name in sys.modules if name.partition(".")[0] == "skill_peers"]:
        del sys.modules[name]


def whet_prompt(skill: str) -> str:
    names = ("form", "sorting", "memory", "history")
    inputs = {**dict.fromkeys(names, ""), "budget": "4", "skill": skill, "trajectories": "\n".join(TASKS)}
    return fill(Prompts().get("reflect_failure"), inputs)


def skillopt_prompt(skill: str) -> str:
    tasks = "\n\n---\n\n".join(f"### Trajectory 1 (id=1)\nTask: {task}\n" for task in TASKS)
    head = f"## Current Skill\n{skill}\n\n## Edits Budget\nProduce at most L=4 edits.\n\n"
    return head + f"## Failed Trajectories (2 total)\n{tasks}"


def gepa_prompt(skill: str) -> str:
    examples = "\n\n".join(
        f"# Example {number}\n## Inputs\n{task}\n\n## Generated Outputs\nno\n\n## Feedback\n"
        "The generated response is incorrect. The correct answer is 'code'.\n\n"
        for number, task in enumerate(TASKS, start=1)
    )
    return (
        f"I provided an assistant with the following instructions to perform a task for me:\n```\n{skill}\n```\n\n"
        "The following are examples of different task inputs provided to the assistant along with the assistant's "
        "response for each of them, and some feedback on how the assistant's response could be better:\n"
        f"```\n{examples}\n```\n\nProvide the new instructions within ``` blocks."
    )


def edits_in(answer: str) -> list[dict[str, str]]:
    return json.loads(answer.partition("```json\n")[2].partition("\n```")[0])["patch"]["edits"]


@pytest.mark.parametrize("prompt", [whet_prompt, skillopt_prompt])
def test_edits_are_for_what_failed_and_has_no_rule(optimizer: Any, prompt: Any) -> None:
    proposed = [edit["content"] for seed in range(50) for edit in edits_in(optimizer(prompt(SKILL), seed))]
    assert len(proposed) == 50
    assert set(proposed) >= {rule_of("kind2"), HARMFUL}
    assert not any("kind1" in content for content in proposed)


def test_new_text_keeps_the_old_and_adds_the_same_kinds_of_proposal(optimizer: Any) -> None:
    texts = [optimizer(gepa_prompt(SKILL), seed).strip("`\n") for seed in range(50)]
    added = {text.removeprefix(SKILL).strip() for text in texts}
    assert all(text.startswith(SKILL) for text in texts)
    assert added >= {rule_of("kind2"), HARMFUL}


def test_harmful_text_is_taken_out_wherever_it_is_seen(optimizer: Any) -> None:
    spoiled = f"{SKILL}\n\n{HARMFUL}"
    for prompt in (whet_prompt, skillopt_prompt):
        assert edits_in(optimizer(prompt(spoiled), 1))[0] == {"op": "delete", "target": HARMFUL, "content": ""}
    removed = [optimizer(gepa_prompt(spoiled), seed) for seed in range(50)]
    assert sum(HARMFUL in text for text in removed) < 25


def test_the_student_obeys_its_skill_but_for_the_share_that_is_flipped(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(BENCH))
    from skill_peers.simulation import FLIPPED_SHARE, Simulation

    asked = [{"role": "system", "content": SKILL}, {"role": "user", "content": TASKS[0]}]
    student = Simulation(1, None)
    passed = sum(student.answer(asked) == "code of kind1" for _ in range(2000))
    assert abs(passed / 2000 - (1 - FLIPPED_SHARE)) < 0.02
