"""What the published trainer gets wrong, each as a test that fails on the faulty behaviour.

Others of its faults have their tests where they belong: order of arrival (test_same_seed), settings that are ignored
(test_loading), regions (test_patcher), keys (test_recorded), outages (test_episodes), failures by position
(test_buffer_and_appendix), killed runs (test_survival).
"""

from __future__ import annotations

import asyncio
from pathlib import Path

from whet.core import Split
from whet.store import RunReader
from whet.training import Report, load_config, prepare, train
from whet.training.records import RecordKind

SCRIPTS = """
import json
from whet.testing.simulation import coach as make_coach, rule_of, student

coach = make_coach(harmful=0.0, useless=0.0)


def repeats(request):
    same = [{"op": "append", "content": "  "}, {"op": "replace", "target": "Rule.", "content": "Rule."}]
    return json.dumps({"patch": {"reasoning": "", "edits": same}, "edits": same})


def guides(request):
    text = request.messages[0].text
    if '"slow_update_content"' in text:
        return json.dumps({"slow_update_content": rule_of("kind0")})
    edits = [{"op": "append", "content": "Think twice."}] if "## Failed tries" in text else []
    return json.dumps({"patch": {"reasoning": "", "edits": edits}, "edits": edits, "meta_skill_content": "x"})
"""
CONFIG = """\
[world]
use = "whet.testing.simulation:SimulatedWorld"
train = 24
selection = 12
test = 12

[target]
model = "scripted/models.py:student"

[gate]
rule = "strict"

[train]
batch_size = 12
"""


async def run(folder: Path, coach: str, *overrides: str) -> Report:
    (folder / "models.py").write_text(SCRIPTS)
    (folder / "SKILL.md").write_text("Rule.\n")
    (folder / "whet.toml").write_text(CONFIG)
    settings = (f"optimizer.model=scripted/models.py:{coach}", "skill.path=SKILL.md", *overrides)
    project = prepare(load_config(folder / "whet.toml", settings), folder)
    return await train(project, folder / "runs" / "run-1")


def rollouts(folder: Path, split: Split) -> dict[str, int]:
    with RunReader(folder / "runs" / "run-1" / "run.db") as reader:
        return {line.policy: line.score.count for line in reader.scores() if line.split is split}


async def test_a_candidate_equal_to_the_current_skill_is_not_played_again_nor_accepted(tmp_path: Path) -> None:
    report = await run(tmp_path, "repeats", "skill.slow_update=false", "skill.memory=false")
    assert all(step.ruling is None and step.skipped == "skip_no_change" for step in report.steps)
    assert rollouts(tmp_path, Split.SELECTION) == {report.start: 12}
    assert report.best == report.start


async def test_after_guidance_without_a_gate_the_new_policy_is_held_to_its_own_score(tmp_path: Path) -> None:
    report = await run(tmp_path, "guides", "skill.slow_gate=false", "train.epochs=3")
    guided = next(step for step in report.steps if step.kind is RecordKind.SLOW_UPDATE and step.candidate)
    after = report.steps[report.steps.index(guided) + 1 :]
    ruling = next(step.ruling for step in after if step.ruling and step.current == guided.candidate)
    with RunReader(tmp_path / "runs" / "run-1" / "run.db") as reader:
        scores = {line.policy: line.score.hard for line in reader.scores() if line.split is Split.SELECTION}
    assert ruling.incumbent == scores[guided.candidate] > scores[report.start]


async def test_a_score_of_zero_is_a_score(tmp_path: Path) -> None:
    """The start scores 0.0 on every task; what is no better than that is a tie, and what is better is accepted."""
    report = await run(tmp_path, "coach", "skill.slow_update=false", "skill.memory=false")
    rulings = [step.ruling for step in report.steps if step.ruling]
    assert rulings[0].incumbent == 0.0
    assert rulings[0].best == 0.0
    first_better = next(ruling for ruling in rulings if ruling.candidate > 0.0)
    assert first_better.accepted
    assert all(not ruling.accepted for ruling in rulings if ruling.candidate == ruling.incumbent)


async def test_two_runs_in_one_process_do_not_mix(tmp_path: Path) -> None:
    for name in ("a", "b", "alone"):
        (tmp_path / name).mkdir()
    one, other = await asyncio.gather(
        run(tmp_path / "a", "coach", "skill.learning_rate=1", "skill.min_learning_rate=1"),
        run(tmp_path / "b", "guides"),
    )
    alone = await run(tmp_path / "alone", "coach", "skill.learning_rate=1", "skill.min_learning_rate=1")
    assert one == alone
    assert other != one
