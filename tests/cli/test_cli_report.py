"""`whet report`: the page, the text, and runs that are not at their end."""

from __future__ import annotations

import json
import sqlite3
from pathlib import Path

from calling_whet import Whet

from whet.store import open_run
from whet.training import read_report, verdict_line


def _cut_short(run: Path, kept: int) -> None:
    """As if the run had been killed after so many records."""
    for name in ("report.json", "report.md"):
        (run / name).unlink(missing_ok=True)
    with sqlite3.connect(run / "run.db") as db:
        db.execute("DELETE FROM decisions WHERE kind = 'step' AND label > ?", (f"{kept:06d}",))
    db.close()


def test_it_writes_a_page_into_the_run_and_prints_where(whet: Whet, trained: Path) -> None:
    done = whet("report", "-C", trained)
    page = trained / "runs/run-1/report.html"
    assert done.stdout == f"{page}\n"
    report = read_report(trained / "runs/run-1")
    assert report is not None
    html = page.read_text()
    assert html.startswith("<!doctype html>")
    assert f"<title>run-1: {verdict_line(report)}</title>" in html
    assert not list(page.parent.glob(".*.part"))


def test_the_page_goes_where_it_is_wanted(whet: Whet, trained: Path, tmp_path: Path) -> None:
    target = tmp_path / "tuesday.html"
    (trained / "runs/run-1/report.html").unlink()
    assert whet("report", "-C", trained, "run-1", "--out", target).stdout == f"{target}\n"
    assert target.is_file()
    assert not (trained / "runs/run-1/report.html").exists()


def test_a_place_that_cannot_be_written_is_one_line(whet: Whet, trained: Path, tmp_path: Path) -> None:
    for target in (tmp_path, tmp_path / "missing" / "page.html"):
        done = whet("report", "-C", trained, "--out", target)
        assert done.exit_code == 2
        assert "cannot be written" in done.stderr
        assert "Traceback" not in done.stderr


def test_as_text_it_is_the_file_to_the_byte(whet: Whet, trained: Path) -> None:
    (trained / "runs/run-1/report.html").unlink()
    assert whet("report", "-C", trained, "--text").stdout == (trained / "runs/run-1/report.md").read_text()
    assert not (trained / "runs/run-1/report.html").exists()


def test_as_json_it_is_the_report(whet: Whet, trained: Path) -> None:
    written = json.loads((trained / "runs/run-1/report.json").read_text())
    assert json.loads(whet("report", "-C", trained, "--json").stdout) == written


def test_one_form_at_a_time(whet: Whet, trained: Path) -> None:
    for options in (("--text", "--json"), ("--text", "--out", "x"), ("--json", "--out", "x")):
        done = whet("report", "-C", trained, *options)
        assert done.exit_code == 2
        assert "choose one" in done.stderr


def test_an_interrupted_run_is_reported_as_far_as_it_came(whet: Whet, trained: Path) -> None:
    run = trained / "runs/run-1"
    _cut_short(run, kept=3)
    whet("report", "-C", trained)
    html = (run / "report.html").read_text()
    assert "Not at its end: the run was interrupted after 3 of 12 steps." in html
    assert "No gain is claimed" in html
    assert 'id="record-2"' in html
    assert 'id="record-3"' not in html
    told = whet("report", "-C", trained, "--json")
    assert "Not at its end" in told.stderr
    report = json.loads(told.stdout)
    assert (len(report["steps"]), report["test"], report["comparison"]) == (3, [], None)
    assert "3 of 12 steps" in report["stopped"]


def test_what_is_reported_so_far_is_what_the_whole_report_has(whet: Whet, trained: Path) -> None:
    whole = json.loads((trained / "runs/run-1/report.json").read_text())
    _cut_short(trained / "runs/run-1", kept=len(whole["steps"]))
    so_far = json.loads(whet("report", "-C", trained, "--json").stdout)
    played_at_the_end = {"stopped", "test", "comparison"}
    assert {key for key in whole if whole[key] != so_far[key]} == played_at_the_end


def test_before_the_first_step_there_is_a_page_too(whet: Whet, trained: Path) -> None:
    _cut_short(trained / "runs/run-1", kept=0)
    whet("report", "-C", trained)
    assert "No step has ended yet." in (trained / "runs/run-1/report.html").read_text()


def test_a_run_that_is_being_trained_says_so(whet: Whet, trained: Path) -> None:
    _cut_short(trained / "runs/run-1", kept=3)
    store = open_run(trained / "runs/run-1/run.db")
    try:
        whet("report", "-C", trained)
    finally:
        store.close()
    assert "is being trained, and has done 3 of 12 steps." in (trained / "runs/run-1/report.html").read_text()
