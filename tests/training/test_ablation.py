"""A skill is taken apart into what it says, and each part is worth what is lost without it."""

from __future__ import annotations

import asyncio
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from whet.core import Skill, Split
from whet.testing import HARMFUL, SimulatedWorld, rule_of
from whet.training import Silent, load_config, open_workshop, prepare
from whet.training.ablation import ablate, parts_of, without

DOCUMENT = """\
---
name: x
description: y
---
# Title

A paragraph
of two lines.

## List

- one
  and more of it
- two

<!-- APPENDIX_START -->
- a reminder
<!-- APPENDIX_END -->
"""


def test_paragraphs_and_list_items_are_parts_and_headings_are_not() -> None:
    texts = [part.text for part in parts_of(DOCUMENT)]
    assert texts[:3] == ["A paragraph\nof two lines.", "- one\n  and more of it", "- two"]
    assert len(texts) == 4
    assert "a reminder" in texts[3]


def test_without_a_part_everything_else_is_still_there() -> None:
    skill = Skill.from_text(DOCUMENT)
    for part in parts_of(DOCUMENT):
        left = without(skill, part).text
        assert part.text not in left
        assert left.startswith("---\nname: x\n")
        for other in parts_of(DOCUMENT):
            assert other == part or other.text in left


@given(st.text(alphabet="ab-# \n*1.<!>", max_size=80))
def test_any_document_can_be_taken_apart(text: str) -> None:
    for part in parts_of(text):
        assert text[part.start : part.end].strip() == part.text
        assert len(without(Skill.from_text(text), part).text.split()) < len(text.split()) + 1


def test_each_part_is_worth_the_tasks_that_need_it(tmp_path: Path) -> None:
    (tmp_path / "models.py").write_text("from whet.testing.simulation import student\n")
    (tmp_path / "SKILL.md").write_text(f"{rule_of('kind0')}\n\nBe kind.\n\n{rule_of('kind1')}\n")
    (tmp_path / "whet.toml").write_text(
        '[world]\nuse = "whet.testing.simulation:SimulatedWorld"\n'
        '[target]\nmodel = "scripted/models.py:student"\n[skill]\npath = "SKILL.md"\n'
    )
    project = prepare(load_config(tmp_path / "whet.toml"), tmp_path)
    tasks = SimulatedWorld().tasks(Split.SELECTION)

    async def run(text: str):
        async with open_workshop(project, tmp_path / "run") as workshop:
            policy = project.start.with_skill(Skill.from_text(text))
            return await ablate(workshop.engine, policy, tasks, project.config.gate, Silent())

    worths = asyncio.run(run(project.start.skill.text))
    kinds = [sum(task.kind == kind for task in tasks) for kind in ("kind0", "kind1")]
    assert [len(worth.needed_by) for worth in worths] == [kinds[0], 0, kinds[1]]
    assert worths[0].worth == kinds[0] / len(tasks)
    assert worths[1].worth == 0.0
    project = prepare(load_config(tmp_path / "whet.toml"), tmp_path)
    harmed = asyncio.run(run(f"{rule_of('kind0')}\n\n{HARMFUL}\n"))
    assert harmed[1].worth < 0
    assert len(harmed[1].harms) == kinds[0]
