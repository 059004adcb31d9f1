"""The commands that look at runs: runs, show, diff, export, eval."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
from calling_whet import Whet

from whet.cli.evaluating import measured, paired
from whet.core import End, Split, Trajectory, Verdict
from whet.store import RunReader, open_run
from whet.training import GateSettings, Report, StepRecord, read_report, verdict_line
from whet.training.records import RecordKind
from whet.training.reporting import compare


def _report(project: Path) -> Report:
    report = read_report(project / "runs/run-1")
    assert report is not None
    return report


def _steps(project: Path) -> list[StepRecord]:
    return [record for record in _report(project).steps if record.kind is RecordKind.STEP]


def _best(project: Path) -> float:
    """The best score on the selection tasks, as the rulings have it."""
    return max(step.ruling.candidate for step in _report(project).steps if step.ruling and step.ruling.new_best)


def test_runs_is_one_line_a_run(whet: Whet, trained: Path) -> None:
    whet("train", trained, "--run", "capped", "--set", "budget.calls=300")
    lines = whet("runs", "-C", trained).stdout.splitlines()
    assert [line.split()[:1] for line in lines] == [["run"], ["run-1"], ["capped"]]
    assert lines[1].split()[1:6] == ["finished", "12/12", "0.175", f"{_best(trained):.3f}", "$0.00"]
    assert "stopped early" in lines[2]


def test_runs_as_json(whet: Whet, trained: Path) -> None:
    (standing,) = json.loads(whet("runs", "-C", trained, "--json").stdout)
    assert (standing["run"], standing["state"], standing["steps"]) == ("run-1", "finished", 12)
    assert standing["lineage"]["best_score"] == _best(trained)


def test_a_run_that_is_being_written_says_by_whom(whet: Whet, trained: Path) -> None:
    store = open_run(trained / "runs/run-1/run.db")
    try:
        assert "running (" in whet("runs", "-C", trained).stdout
        busy = whet("train", trained)
        assert busy.exit_code == 2
        assert "is being written by another process" in busy.stderr
    finally:
        store.close()


def test_a_killed_run_is_interrupted_and_still_shown(whet: Whet, trained: Path) -> None:
    (trained / "runs/run-1/report.json").unlink()
    assert "interrupted" in whet("runs", "-C", trained).stdout
    shown = whet("show", "-C", trained)
    assert shown.exit_code == 0
    assert "`whet train` goes on with it" in shown.stdout
    assert re.search(r"^test +best(, last)? +\d+ +100 ", shown.stdout, re.MULTILINE)


def test_a_report_of_another_version_is_one_line(whet: Whet, trained: Path) -> None:
    (trained / "runs/run-1/report.json").write_text('{"run": 1}')
    done = whet("show", "-C", trained)
    assert done.exit_code == 2
    assert "report.json cannot be read" in done.stderr


def test_show_has_scores_steps_spending_and_the_diff(whet: Whet, trained: Path) -> None:
    shown = whet("show", "-C", trained, "run-1").stdout
    assert verdict_line(_report(trained)) in shown
    assert "test       start           17  100  0.170  0.109 to 0.255" in shown
    for step in _steps(trained):
        kept = "-" if step.ruling is None else "yes" if step.ruling.accepted else "no"
        assert re.search(rf"^ +{step.number} +{step.played.hard:.3f} +\d+ +\S+ +{kept} ", shown, re.MULTILINE)
    assert re.search(r"^target +rollout +\d+ +0 +\d+ +0 +\S+ +\$0\.00$", shown, re.MULTILINE)
    assert "+- Heating: heat(room,degrees)" in shown


def test_show_as_json_holds_the_same(whet: Whet, trained: Path) -> None:
    facts = json.loads(whet("show", "-C", trained, "--json").stdout)
    assert len(facts["steps"]) == len(_report(trained).steps)
    assert facts["standing"]["steps"] == 12
    assert facts["comparison"]["gain"] > 0.5
    assert {line["purpose"] for line in facts["spending"]} >= {"rollout", "reflect_failure"}


def test_show_step_has_reasons_patterns_and_every_edit_with_its_status(whet: Whet, trained: Path) -> None:
    steps = [step for step in _steps(trained) if step.ruling and not step.ruling.accepted and step.patterns]
    number = str(steps[0].number)
    shown = whet("show", "-C", trained, "--step", number).stdout
    assert "Rejected: it scores " in shown
    assert "no command, or a wrong one" in shown
    assert re.search(r"^1\. append in SKILL\.md, learned from \d+ (failed|successful) tr(y|ies): applied$", shown, re.M)
    assert shown.count("\n   + ") >= len(steps[0].edits)
    assert json.loads(whet("show", "-C", trained, "--step", number, "--json").stdout)[0]["number"] == steps[0].number


def test_show_task_has_every_try_with_what_was_said(whet: Whet, trained: Path) -> None:
    shown = whet("show", "-C", trained, "--task", "test-002").stdout
    assert shown.startswith("test-002 (heat), test: passed ")
    assert "agent: I do not know the command for that." in shown
    assert "agent: heat(cellar,20)" in shown
    tries = json.loads(whet("show", "-C", trained, "--task", "test-002", "--json").stdout)
    assert len(tries) == len(_report(trained).test)


def test_tries_that_eval_adds_do_not_make_the_interval_in_show_narrower(whet: Whet, trained: Path) -> None:
    whet("eval", trained, "--split", "selection", "--samples", "3")
    assert "selection  start           21  120  0.175  0.087 to 0.319" in whet("show", "-C", trained).stdout


@pytest.mark.parametrize("named", [[], ["start", "best"], ["start", "last"]])
def test_diff_of_names_and_steps(whet: Whet, trained: Path, named: list[str]) -> None:
    lines = whet("diff", "-C", trained, "run-1", *named).stdout.splitlines()
    assert lines[0] == "--- start/SKILL.md"
    assert "+- Heating: heat(room,degrees)" in lines


def test_diff_of_what_a_step_proposed(whet: Whet, trained: Path) -> None:
    step = next(step for step in _steps(trained) if step.edits)
    lines = whet("diff", "-C", trained, "run-1", step.current[:8], str(step.number)).stdout.splitlines()
    assert lines[:2] == [f"--- {step.current[:8]}/SKILL.md", f"+++ {step.number}/SKILL.md"]


def _changes(whet: Whet, project: Path, *named: str) -> list[dict[str, Any]]:
    return json.loads(whet("diff", "-C", project, "run-1", *named, "--json").stdout)["changes"]


def test_diff_says_who_brought_each_line_from_what_and_what_it_did(whet: Whet, trained: Path) -> None:
    changes = _changes(whet, trained)
    written = "\n".join(line for change in changes for line in change["added"])
    assert "- Heating: heat(room,degrees)" in written
    heating = next(change for change in changes if any("Heating" in line for line in change["added"]))
    step = next(s for s in _steps(trained) if heating["brought_by"].startswith(f"step {s.number},"))
    edit = next(done.edit for done in step.edits if "Heating" in done.edit.content)
    assert step.ruling is not None
    assert step.ruling.accepted
    assert set(edit.tasks) <= set(heating["learned_from"])
    assert heating["source"] == "failure"
    assert (tuple(heating["fixed"]), tuple(heating["broke"])) == (step.ruling.fixed_tasks, step.ruling.broke_tasks)
    assert heating["reasoning"] == step.reasoning
    printed = whet("diff", "-C", trained, "run-1").stdout
    assert f"by step {step.number}, epoch {step.epoch}; accepted: " in printed
    assert heating["learned_from"][0] in printed


def test_the_tasks_that_a_diff_names_are_those_that_the_gate_counted(trained: Path) -> None:
    rulings = [step.ruling for step in _steps(trained) if step.ruling]
    assert any(ruling.fixed for ruling in rulings)
    for ruling in rulings:
        assert (len(ruling.fixed_tasks), len(ruling.broke_tasks)) == (ruling.fixed, ruling.broke)
        assert not set(ruling.fixed_tasks) & set(ruling.broke_tasks)


def test_diff_tells_of_a_candidate_that_was_rejected(whet: Whet, trained: Path) -> None:
    rejected = next(step for step in _steps(trained) if step.ruling and not step.ruling.accepted)
    changes = _changes(whet, trained, rejected.current[:8], str(rejected.number))
    assert {change["brought_by"].partition(",")[0] for change in changes} == {f"step {rejected.number}"}
    assert all(change["outcome"].startswith("rejected: ") for change in changes)


def test_diff_of_skills_that_did_not_come_of_each_other_claims_nothing(whet: Whet, trained: Path) -> None:
    changes = _changes(whet, trained, "best", "start")
    assert changes
    assert {change["brought_by"] for change in changes} == {""}


def test_a_bare_diff_is_a_unified_one(whet: Whet, trained: Path) -> None:
    lines = whet("diff", "-C", trained, "run-1", "--bare").stdout.splitlines()
    assert lines == json.loads(whet("diff", "-C", trained, "run-1", "--json").stdout)["diff"]
    assert lines[2].startswith("@@ -")


def test_diff_of_equal_skills_says_so(whet: Whet, trained: Path) -> None:
    assert whet("diff", "-C", trained, "run-1", "best", "best").stdout == "no difference between best and best\n"


def test_export_writes_every_row_as_a_line_with_a_type(whet: Whet, trained: Path, tmp_path: Path) -> None:
    out = tmp_path / "run.jsonl"
    assert whet("export", "-C", trained, "run-1", "--out", out).exit_code == 0
    types = [json.loads(line)["type"] for line in out.read_text().splitlines()]
    with RunReader(trained / "runs/run-1/run.db") as reader:
        counts = reader.counts()
    assert [types.count(kind) for kind in ("step", "rollout", "call")] == [
        len(_report(trained).steps),
        counts["rollouts"],
        counts["calls"],
    ]


def test_export_of_one_kind_to_standard_output(whet: Whet, trained: Path) -> None:
    lines = whet("export", "-C", trained, "run-1", "--what", "rollouts").stdout.splitlines()
    assert {json.loads(line)["type"] for line in lines} == {"rollout"}
    assert json.loads(lines[0])["trajectory"]["messages"]


def test_eval_plays_once_and_keeps_it_for_the_training(whet: Whet, project: Path) -> None:
    first = whet("eval", project)
    assert first.exit_code == 0
    assert "start       17  100  0.170  0.109 to 0.255" in first.stdout
    whet("train", project)
    with RunReader(project / "runs/run-1/run.db") as reader:
        calls = {line.purpose: line.calls for line in reader.answered()}
        assert calls["assess"] == 100
        assert calls["rollout"] + calls["assess"] == reader.counts()["rollouts"]


def test_eval_compare_is_paired_and_claims_what_is_shown(whet: Whet, trained: Path) -> None:
    said = whet("eval", trained, "--compare", "start", "best").stdout
    found = _report(trained).comparison
    assert found is not None
    assert f"difference {found.gain:+.3f} (95% interval {found.interval.low:+.3f} to" in said
    assert f"{len(found.fixed)} fixed, {len(found.broke)} broken" in said
    assert "best is better than start." in said
    same = whet("eval", trained, "--compare", "best", "best").stdout
    assert "A difference is not shown: the interval includes 0." in same


def test_eval_of_a_skill_by_its_path(whet: Whet, trained: Path) -> None:
    told = json.loads(
        whet("eval", trained, "--policy", trained / "runs/run-1/best", "--split", "selection", "--json").stdout
    )
    assert told["policies"][0]["rate"] > 0.5
    assert told["policies"][0]["by_kind"]["heat"]["count"] == 7


def _played(passes: list[bool], sample: int = 0) -> list[Trajectory]:
    return [
        Trajectory("p", f"t{n}", Split.TEST, sample, (), "", End.ANSWERED, Verdict(hard, float(hard)))
        for n, hard in enumerate(passes)
    ]


def test_one_try_a_task_is_compared_as_the_report_does() -> None:
    before, after = _played([False, True, False, True]), _played([True, True, True, False])
    mine, reported = paired([before], [after], GateSettings()), compare(before, after, GateSettings())
    assert (mine.difference, mine.interval, mine.fixed, mine.broke, mine.p) == (
        reported.gain,
        reported.interval,
        reported.fixed,
        reported.broke,
        reported.p,
    )


def test_tries_at_the_same_tasks_do_not_make_an_interval_narrower_than_tasks_allow() -> None:
    passes = [True, False] * 10
    once = measured("p", [_played(passes)], GateSettings())
    often = measured("p", [_played(passes, sample) for sample in range(50)], GateSettings())
    assert often.tries == 50 * once.tries
    assert often.interval.high - often.interval.low > 0.9 * (once.interval.high - once.interval.low)
