"""From a trained run to a record that is served, moved, rolled back and removed, as a user does it."""

from __future__ import annotations

import json
from functools import partial
from pathlib import Path

import pytest
from calling_whet import Whet


@pytest.fixture
def here(whet: Whet, tmp_path: Path) -> Whet:
    """`whet` with a registry of its own."""
    return partial(whet, WHET_HOME=str(tmp_path / "home"))


def published(here: Whet, project: Path, *more: str) -> str:
    done = here("registry", "publish", "-C", project, "--json", *more)
    assert done.exit_code == 0, done.output
    return json.loads(done.stdout)["id"]


def test_an_empty_registry_says_how_to_fill_it(here: Whet) -> None:
    assert "whet registry publish" in here("registry", "list").stdout


def test_a_certified_run_is_published_activated_and_rolled_back(here: Whet, trained: Path) -> None:
    assert here("certify", "-C", trained).exit_code == 0
    record = published(here, trained)
    done = here("registry", "activate", record[:6])
    assert done.exit_code == 0
    assert "force" not in done.stdout
    shown = here("registry", "show", record).stdout
    assert "certificate" in here("registry", "list").stdout
    assert "whet certify run-1" in shown
    assert "test, gain" in shown
    refused = here("registry", "rollback", "jsonl")
    assert refused.exit_code == 2
    assert "nothing was active" in refused.output


def test_what_no_certificate_speaks_for_needs_force_and_says_so(here: Whet, trained: Path) -> None:
    record = published(here, trained)
    refused = here("registry", "activate", record)
    assert refused.exit_code == 2
    assert refused.output.startswith("whet: nothing proves that record")
    assert here("registry", "activate", record, "--force").exit_code == 0
    assert "without a certificate" in here("registry", "show", record).stdout
    assert f"Active without a certificate: {record}" in here("registry", "list").stdout


def test_the_active_policy_is_evaluated_and_started_from(here: Whet, trained: Path) -> None:
    none_yet = here("eval", trained, "--policy", "active")
    assert none_yet.exit_code == 2
    assert "nothing is active" in none_yet.output
    record = published(here, trained, "--activate", "--force")
    best = json.loads(here("eval", trained, "--policy", "best", "--json").stdout)
    active = json.loads(here("eval", trained, "--policy", "active", "--json").stdout)
    assert active["policies"][0]["passed"] == best["policies"][0]["passed"] > 0
    same = here("certify", "-C", trained, "--over", "active")
    assert same.exit_code == 2
    assert "the same as active" in same.output
    again = json.loads(here("train", trained, "--set", f"target.policy={record}", "--json").stdout)
    assert again["start"] == json.loads((trained / "runs/run-1/report.json").read_text())["best"]


def test_a_record_moves_to_another_registry(here: Whet, whet: Whet, trained: Path, tmp_path: Path) -> None:
    record = published(here, trained)
    file = tmp_path / "one.whet"
    assert here("registry", "export", record, file).exit_code == 0
    elsewhere = partial(whet, WHET_HOME=str(tmp_path / "elsewhere"))
    assert elsewhere("registry", "import", file).exit_code == 0
    assert record in elsewhere("registry", "list").stdout
    file.write_bytes(file.read_bytes()[:-40])
    refused = elsewhere("registry", "import", file)
    assert refused.exit_code == 2
    assert len(refused.output.strip().splitlines()) == 1


def test_two_records_differ_in_words(here: Whet, trained: Path) -> None:
    one = published(here, trained)
    assert here("train", trained, "--set", "train.seed=4").exit_code == 0
    two = published(here, trained, "run-2")
    said = here("registry", "diff", one, two).stdout
    assert "train.seed: 3, then 4" in said


def test_a_record_is_rejected_and_deleted_but_not_while_it_is_active(here: Whet, trained: Path) -> None:
    record = published(here, trained, "--activate", "--force")
    assert here("registry", "delete", record, "--yes").exit_code == 2
    here("train", trained, "--set", "train.seed=4")
    other = published(here, trained, "run-2")
    assert here("registry", "reject", other, "--why", "it leaks").exit_code == 0
    assert "it leaks" in here("registry", "show", other).stdout
    assert here("registry", "activate", other, "--force").exit_code == 2
    assert here("registry", "delete", other, "--yes").exit_code == 0
    assert other not in here("registry", "list").stdout


def test_a_damaged_record_is_said_to_be(here: Whet, trained: Path, tmp_path: Path) -> None:
    record = published(here, trained)
    skill = next((tmp_path / "home/registry/packages").glob("*/skill/SKILL.md"))
    skill.write_text("changed")
    shown = here("registry", "show", record)
    assert shown.exit_code != 0


@pytest.mark.parametrize("wrong", ["nothing", "zz", "0123"])
def test_a_record_that_is_not_there_is_one_clear_line(here: Whet, wrong: str) -> None:
    done = here("registry", "show", wrong)
    assert done.exit_code == 2
    assert "whet registry list" in done.output
