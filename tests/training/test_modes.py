"""Every way of changing a skill works end to end, and each change still has to pass the gate."""

from __future__ import annotations

from pathlib import Path

import pytest

from whet.learners.skill import APPENDIX, region
from whet.testing import HARMFUL
from whet.training import Report, load_config, prepare, train
from whet.training.records import RecordKind

SCRIPT = "from whet.testing.simulation import coach as make_coach, student\n\ncoach = make_coach()\n"
CONFIG = """\
[world]
use = "whet.testing.simulation:SimulatedWorld"
train = 40
selection = 24
test = 30

[target]
model = "scripted/models.py:student"

[optimizer]
model = "scripted/models.py:coach"

[gate]
rule = "strict"

[train]
batch_size = 20
epochs = 4
"""


async def run(folder: Path, *overrides: str) -> Report:
    (folder / "models.py").write_text(SCRIPT)
    (folder / "whet.toml").write_text(CONFIG)
    project = prepare(load_config(folder / "whet.toml", overrides), folder)
    return await train(project, folder / "runs" / "run-1")


@pytest.mark.parametrize(
    "settings",
    [
        ("skill.update=patch",),
        ("skill.update=rewrite",),
        ("skill.update=full_rewrite",),
        ("skill.schedule=autonomous",),
        ("skill.schedule=none",),
        ("skill.schedule=linear",),
        ("skill.failure_only=true",),
        ("skill.proposals=3",),
        ("skill.slow_gate=false",),
        ("skill.pairs=changed",),
        ("skill.pairs=unchanged",),
        ("skill.skill_aware=true", "skill.consolidate_above=1"),
        ("train.accumulation=2",),
        ("gate.metric=soft",),
        ("gate.metric=mixed",),
    ],
    ids=" ".join,
)
async def test_it_learns_and_ships_nothing_harmful(tmp_path: Path, settings: tuple[str, ...]) -> None:
    report = await run(tmp_path, *settings)
    assert report.comparison is not None
    assert report.comparison.shown
    assert HARMFUL not in report.skill["SKILL.md"]
    assert not [fallback for step in report.steps for fallback in step.fallbacks]


async def test_a_budget_of_zero_edits_changes_nothing(tmp_path: Path) -> None:
    report = await run(tmp_path, "skill.learning_rate=0", "skill.min_learning_rate=0", "skill.slow_update=false")
    assert report.best == report.start
    assert all(not step.candidate for step in report.steps)


async def test_a_skill_keeps_under_its_token_limit(tmp_path: Path) -> None:
    report = await run(tmp_path, "skill.max_tokens=25", "skill.slow_update=false")
    assert 0 < len(report.skill["SKILL.md"]) <= 100


async def test_reminders_are_kept_whatever_was_ruled_and_never_in_a_best_that_the_gate_has_not_seen(
    tmp_path: Path,
) -> None:
    report = await run(tmp_path, "skill.skill_aware=true", "skill.slow_update=false")
    assert any(step.notes for step in report.steps)
    accepted = {step.candidate for step in report.steps if step.ruling and step.ruling.accepted}
    assert report.best in accepted | {report.last}
    assert notes_end_in_one_region(report)


def notes_end_in_one_region(report: Report) -> bool:
    text = report.skill["SKILL.md"]
    return text.count("APPENDIX_START") <= 1 and region(text, APPENDIX).count("Follow every rule") <= 1


async def test_a_last_policy_that_never_competed_is_played_once_and_promoted_if_better(tmp_path: Path) -> None:
    """Guidance put in without a gate makes a policy that no ruling has seen."""
    report = await run(tmp_path, "skill.slow_gate=false", "skill.learning_rate=1", "skill.min_learning_rate=1")
    slow = [step for step in report.steps if step.kind is RecordKind.SLOW_UPDATE]
    assert any(step.candidate and step.ruling is None for step in slow), "the guidance went in without a ruling"
    last = [step for step in report.steps if step.kind is RecordKind.LAST]
    for step in last:
        assert step.ruling is not None
        assert (report.best == step.candidate) == (step.ruling.candidate > step.ruling.incumbent)


async def test_prompts_of_the_project_replace_those_of_whet(tmp_path: Path) -> None:
    (tmp_path / "prompts").mkdir()
    (tmp_path / "prompts" / "reflect_failure.md").write_text("<!-- Mine. -->\nSay nothing.\n{trajectories}")
    report = await run(tmp_path, "skill.prompts=prompts", "skill.slow_update=false", "skill.memory=false")
    assert report.best == report.start, "whet's own prompt would have taught it something"


async def test_demonstrations_need_no_optimizer(tmp_path: Path) -> None:
    report = await run(tmp_path, "skill.teacher=demonstrations", "optimizer.model=''")
    assert {line.role for line in report.calls} == {"target"}
    assert any(step.edits for step in report.steps)


async def test_tidying_drops_what_nothing_needs_and_never_what_something_does(tmp_path: Path) -> None:
    for name in ("plain", "tidy"):
        (tmp_path / name / "skill").mkdir(parents=True)
        idle = "".join(f"Think well about thing {number}.\n" for number in range(6))
        (tmp_path / name / "skill" / "SKILL.md").write_text(idle)
    plain = await run(tmp_path / "plain", "skill.slow_update=false", "train.epochs=8")
    tidy = await run(tmp_path / "tidy", "skill.slow_update=false", "skill.tidy=true", "train.epochs=8")
    rulings = [step.ruling for step in tidy.steps if step.kind is RecordKind.TIDY and step.ruling]
    assert {ruling.accepted for ruling in rulings} == {True, False}, "an idle rule went, a needed one did not"
    assert all(ruling.accepted == (ruling.candidate >= ruling.incumbent) for ruling in rulings)
    assert tidy.test[-1].hard >= plain.test[-1].hard
    assert len(tidy.skill["SKILL.md"]) < len(plain.skill["SKILL.md"])


TRADER = """
import json
from whet.testing.simulation import rule_of, student

ONE, TWO = rule_of("kind0"), rule_of("kind1") + "\\n" + rule_of("kind2")


def trader(request):
    text = request.messages[0].text
    edits = []
    if "## From failures" in text:
        edits = [{"op": "append", "content": ONE + "\\n" + TWO}]
    elif "## Failed tries" in text:
        skill = text.partition("## The skill document")[2].partition("## Failed tries")[0]
        if ONE not in skill and TWO not in skill:
            edits = [{"op": "append", "content": ONE}]
        elif ONE in skill and TWO not in skill:
            edits = [{"op": "replace", "target": ONE, "content": TWO}]
    return json.dumps({"patch": {"reasoning": "", "edits": edits}, "edits": edits})
"""


async def test_a_pareto_search_joins_what_its_policies_are_best_at(tmp_path: Path) -> None:
    """The optimizer trades one rule for two others; only a front keeps both, and only a join has all three."""
    settings = ("optimizer.model=scripted/trader.py:trader", "skill.slow_update=false", "skill.memory=false")
    (tmp_path / "trader.py").write_text(TRADER)
    report = await run(tmp_path, "skill.search=pareto", *settings, "world.categories=3", "skill.minibatch_size=40")
    joins = [step for step in report.steps if step.kind is RecordKind.JOIN]
    assert any(step.ruling and step.ruling.accepted for step in joins)
    assert report.test[-1].hard == 1.0
