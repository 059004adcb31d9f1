"""`whet train` from start to end, again, with other settings, and with a cap that it runs into."""

from __future__ import annotations

import json
from pathlib import Path

from calling_whet import Whet

from whet.cli.standing import State, standing_of


def test_training_ends_well_above_the_start_with_steps_kept_and_steps_rejected(whet: Whet, trained: Path) -> None:
    report = json.loads((trained / "runs/run-1/report.json").read_text())
    rulings = [step["ruling"]["accepted"] for step in report["steps"] if step["ruling"]]
    assert report["comparison"]["gain"] > 0.5
    assert rulings.count(True) >= 3
    assert rulings.count(False) >= 3
    assert (trained / "runs/run-1/best/SKILL.md").read_text() != (trained / "skill/SKILL.md").read_text()


def test_plain_output_says_why_this_run_what_happened_and_where_it_is(whet: Whet, project: Path) -> None:
    done = whet("train", project / "whet.toml")
    assert done.exit_code == 0
    lines = done.stdout.splitlines()
    assert lines[0] == "new run run-1"
    assert any(line.startswith("step 12/12: ") for line in lines)
    assert any(line.startswith("Better by +0.") for line in lines)
    assert lines[-4:-2] == [
        f"skill   {project / 'runs/run-1/best'}",
        f"report  {project / 'runs/run-1/report.html'}",
    ]
    assert lines[-1] == "look    whet show run-1"


def test_two_logs_of_the_same_training_are_equal(whet: Whet, tmp_path: Path) -> None:
    # A call that is late is sent again, and counts twice: that alone depends on time.
    once = ("--set", "target.send_late_again=false", "--set", "optimizer.send_late_again=false")
    logs: list[str] = []
    for name in ("a", "b"):
        whet("init", tmp_path / name)
        logs.append(whet("train", tmp_path / name / "whet.toml", *once).stdout.replace(str(tmp_path / name), ""))
    assert logs[0] == logs[1]


def test_training_again_goes_on_and_sends_nothing(whet: Whet, trained: Path) -> None:
    before = standing_of(trained / "runs/run-1").sent
    done = whet("train", trained / "whet.toml")
    assert done.stdout.startswith("going on with run-1\n")
    assert standing_of(trained / "runs/run-1").sent == before


def test_another_setting_makes_a_new_run_and_says_why(whet: Whet, trained: Path) -> None:
    done = whet("train", trained / "whet.toml", "--set", "train.seed=4")
    assert done.stdout.startswith("new run run-2: since run-1, train.seed (3, now 4) changed\n")


def test_a_run_can_be_named(whet: Whet, project: Path) -> None:
    assert whet("train", project, "--run", "mine").exit_code == 0
    assert (project / "runs/mine/best/SKILL.md").is_file()
    assert "going on with mine" in whet("train", project, "--run", "mine").stdout


def test_a_cap_ends_it_with_1_and_raising_it_ends_in_the_same_report(whet: Whet, project: Path, trained: Path) -> None:
    stopped = whet("train", project / "whet.toml", "--set", "budget.calls=300")
    assert stopped.exit_code == 1
    assert stopped.stderr.startswith("whet: budget.calls is used up: ")
    assert len(stopped.stderr.splitlines()) == 1
    assert "what was learned until now is in" in stopped.stdout
    standing = standing_of(project / "runs/run-1")
    assert standing.state is State.STOPPED
    assert 0 < standing.steps < 12
    assert standing.sent <= 300

    assert whet("train", project / "whet.toml").exit_code == 0
    assert (project / "runs/run-1/report.md").read_text() == (trained / "runs/run-1/report.md").read_text()


def test_json_is_the_report_alone(whet: Whet, project: Path) -> None:
    done = whet("train", project, "--json")
    assert json.loads(done.stdout)["run"] == "run-1"
    assert "new run run-1" in done.stderr


def test_json_of_a_stopped_training_is_its_report_too(whet: Whet, project: Path) -> None:
    done = whet("train", project, "--json", "--set", "budget.calls=300")
    assert done.exit_code == 1
    assert json.loads(done.stdout)["stopped"].startswith("budget.calls")


def test_the_scripted_demo_does_the_whole_job_and_goes_on_when_called_again(whet: Whet, tmp_path: Path) -> None:
    first = whet("demo", "--scripted", "--dir", tmp_path / "demo")
    assert first.exit_code == 0
    assert "Better by +0." in first.stdout
    assert first.stdout.count("\n  whet ") == 3
    again = whet("demo", "--scripted", "--dir", tmp_path / "demo")
    assert again.exit_code == 0
    assert "going on with run-1" in again.stdout


def test_a_training_without_an_optimizer_needs_none(whet: Whet, project: Path) -> None:
    config = project / "whet.toml"
    text = config.read_text().replace('model = "scripted/models.py:coach"', "max_tokens = 100")
    config.write_text(text.replace('path = "skill"', 'path = "skill"\nteacher = "demonstrations"'))
    done = whet("train", project)
    assert done.exit_code == 0, done.output
