"""The page of a run that was stopped or killed is that of an undisturbed one, but for times and sendings."""

from __future__ import annotations

import asyncio
import signal
import sys
from pathlib import Path

import msgspec
import pytest
from reading_pages import Page, train_in, write_project

from whet.core import RunStopped, Split
from whet.store import RolloutRow, RunReader, open_run
from whet.training import read_report
from whet.web import Facts, findings, gather_facts, page_of


def gathered(folder: Path) -> tuple[Facts, str]:
    run = folder / "runs" / "run-1"
    report = read_report(run)
    assert report is not None
    with RunReader(run / "run.db") as reader:
        facts = gather_facts(reader, report)
    return facts, findings(report, facts)


async def test_a_run_that_was_stopped_by_a_cap_and_went_on_has_the_same_page(tmp_path: Path) -> None:
    undisturbed, stopped = write_project(tmp_path / "undisturbed"), write_project(tmp_path / "stopped")
    await train_in(undisturbed)
    for cap in (60, 140):
        with pytest.raises(RunStopped):
            await train_in(stopped, f"budget.calls={cap}")
    await train_in(stopped)
    assert gathered(stopped) == gathered(undisturbed)


@pytest.mark.slow
async def test_a_run_that_was_killed_has_the_same_page(tmp_path: Path) -> None:
    undisturbed, killed = write_project(tmp_path / "undisturbed"), write_project(tmp_path / "killed")
    await train_in(undisturbed)
    for calls in (20, 45, 30):
        (killed / "die-at").write_text(str(calls))
        assert await _train(killed) == -signal.SIGKILL
    assert await _train(killed) == 0
    assert gathered(killed) == gathered(undisturbed)


async def _train(folder: Path) -> int:
    command = (sys.executable, "-m", "whet", "train", "--plain")
    process = await asyncio.create_subprocess_exec(*command, cwd=folder, stdout=asyncio.subprocess.DEVNULL)
    return await process.wait()


async def test_tries_that_an_evaluation_adds_do_not_change_the_page(tmp_path: Path) -> None:
    folder = write_project(tmp_path / "project")
    await train_in(folder)
    before = gathered(folder)
    with RunReader(folder / "runs" / "run-1" / "run.db") as reader:
        tries = [stored.trajectory for stored in reader.rollouts(split=Split.TEST)]
    store = open_run(folder / "runs" / "run-1" / "run.db")
    for place, one in enumerate(tries):
        again = msgspec.structs.replace(one, sample=1, answer="something else")
        await store.write(RolloutRow(f"again {place}".encode(), again, 0.0, 0.0))
    store.close()
    assert gathered(folder) == before


async def test_the_page_of_a_run_has_what_the_store_knows(tmp_path: Path) -> None:
    folder = write_project(tmp_path / "project")
    report = await train_in(folder)
    facts, _ = gathered(folder)
    assert report.comparison is not None
    assert {change.task for change in facts.changed} == {*report.comparison.fixed, *report.comparison.broke}
    assert all(change.question.startswith("Task test") and change.feedback for change in facts.changed)
    assert facts.start_skill == {}
    text = Page(page_of(folder / "runs" / "run-1", report, "A note.")).text
    for said in ("A note.", "I do not know.", "target: rollout", "batch_size", "epochs"):
        assert said in text
