"""Following a run: every step once, until its writer is gone."""

from __future__ import annotations

import io
from pathlib import Path

import msgspec
from calling_whet import Whet
from rich.console import Console

from whet.cli.live import Live, StandingScreen
from whet.cli.standing import Standing, State, followed, standing_of
from whet.cli.steps import difference, given_up, in_one_line
from whet.cli.watch import follow, standing_lines
from whet.core import Clock, Ruling, Timer
from whet.models import Caps, Ledger
from whet.store import RunReader, Spending, open_run
from whet.training import StepRecord, read_report
from whet.training.records import RecordKind


class Turned:
    """A clock that somebody turns: each sleep is one look later."""

    def __init__(self) -> None:
        self.time = 0.0
        self.slept: list[float] = []

    def now(self) -> float:
        return self.time

    def wall(self) -> float:
        return self.time

    async def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)
        self.time += seconds

    def call_later(self, seconds: float, callback: object) -> Timer:
        raise NotImplementedError


class Seen:
    def __init__(self) -> None:
        self.lines: list[str] = []
        self.standings: list[Standing] = []

    def line(self, text: str) -> None:
        self.lines.append(text)

    def standing(self, standing: Standing) -> None:
        self.standings.append(standing)


def _records(folder: Path) -> list[StepRecord]:
    with RunReader(folder / "run.db") as reader:
        return reader.decisions("step", StepRecord)


def _standing(folder: Path, state: State) -> Standing:
    return msgspec.structs.replace(standing_of(folder), state=state)


async def test_each_step_is_told_once_and_it_ends_when_the_writer_is_gone(trained: Path) -> None:
    records = _records(trained / "runs/run-1")
    looks = [(State.RUNNING, 0), (State.RUNNING, 2), (State.RUNNING, 2), (State.RUNNING, 3)]
    coming = iter([*looks, (State.FINISHED, len(records))])

    def look() -> tuple[Standing, list[StepRecord]]:
        state, count = next(coming)
        return _standing(trained / "runs/run-1", state), records[:count]

    seen, clock = Seen(), Turned()
    last = await follow(look, seen, clock)
    assert last.state is State.FINISHED
    assert seen.lines == [in_one_line(record) for record in records]
    assert [standing.state for standing in seen.standings] == [*[State.RUNNING] * 4, State.FINISHED]
    assert clock.slept == [0.5] * 4


def test_an_epoch_end_and_a_last_competition_are_told_as_what_they_are(trained: Path) -> None:
    step = _records(trained / "runs/run-1")[0]
    slow = msgspec.structs.replace(step, kind=RecordKind.SLOW_UPDATE, ruling=None, candidate="abc", skipped="")
    assert in_one_line(slow).startswith("end of epoch 1: ")
    assert in_one_line(slow).endswith(", put in without a gate")
    last = msgspec.structs.replace(step, kind=RecordKind.LAST)
    assert in_one_line(last).startswith("end of the run: the last policy")


def test_a_candidate_that_was_given_up_shows_a_bound_and_not_a_score() -> None:
    early = Ruling(False, False, 0.8, 0.85, 0.85, "at most", fixed=0, broke=2, both=6, saved=32)
    assert given_up(early)
    assert difference(early) == "0 fixed, 2 broken in 8, could not win"
    assert not given_up(msgspec.structs.replace(early, saved=0))
    assert not given_up(msgspec.structs.replace(early, p=0.3))
    assert difference(msgspec.structs.replace(early, saved=0, broke=0)) == "no task changed"


def test_a_lineage_without_a_report_is_the_one_that_the_report_has(trained: Path) -> None:
    report = read_report(trained / "runs/run-1")
    assert report is not None
    assert followed(report.steps, "") == (report.start, report.last, report.best)


def test_guidance_put_in_without_a_gate_and_a_last_policy_that_wins_are_followed(trained: Path) -> None:
    step = _records(trained / "runs/run-1")[0]
    put_in = msgspec.structs.replace(
        step, kind=RecordKind.SLOW_UPDATE, current="b", candidate="c", ruling=None, skipped=""
    )
    better = Ruling(accepted=False, new_best=False, candidate=0.9, incumbent=0.5, best=0.5, reason="it is better")
    won = msgspec.structs.replace(step, kind=RecordKind.LAST, candidate="c", ruling=better)
    first = msgspec.structs.replace(step, current="a", candidate="", ruling=None, skipped="skip_no_patches")
    assert followed([first, put_in], "") == ("a", "c", "a")
    assert followed([first, put_in, won], "") == ("a", "c", "c")


def test_a_run_that_nobody_trains_is_told_and_ends(whet: Whet, trained: Path) -> None:
    done = whet("watch", "-C", trained)
    assert done.exit_code == 0
    assert done.stdout.splitlines()[-1].startswith("run-1: finished, 12 steps, best score ")


def test_a_run_before_its_first_step_has_a_standing(tmp_path: Path) -> None:
    folder = tmp_path / "run-1"
    store = open_run(folder / "run.db")
    try:
        standing = standing_of(folder)
    finally:
        store.close()
    assert standing.state is State.RUNNING
    assert standing.at > 0
    assert standing_lines(standing)[0].startswith("run-1, step 1 under way, ")


def _drawn(width: int) -> tuple[Console, io.StringIO]:
    text = io.StringIO()
    return Console(file=text, force_terminal=True, width=width, color_system=None, highlight=False), text


def test_the_screen_fits_40_columns(trained: Path) -> None:
    console, text = _drawn(40)
    with StandingScreen(standing_lines, console) as screen:
        screen.standing(standing_of(trained / "runs/run-1"))
    assert "run-1, finished" in text.getvalue()


def _live(clock: Clock, width: int) -> tuple[Live, io.StringIO]:
    console, text = _drawn(width)
    live = Live(clock, console)
    live.started("run-1", 10, Ledger(Caps(usd=5), Spending(3, 4000, 20_000_000, 1.0, 3), clock))
    return live, text


def test_live_progress_fits_80_and_40_columns() -> None:
    for width in (80, 40):
        live, text = _live(Turned(), width)
        live.stage("step 3: play", 20).done = 12
        live.score(0.5, 0.75)
        live._console.print(live.drawn())  # pyright: ignore[reportPrivateUsage]
        lines = text.getvalue().splitlines()
        assert max(len(line) for line in lines) <= width
        assert "score 0.500, best 0.750" in text.getvalue()
        assert "$0.0200 of $5, 3 calls, 4000 tokens" in text.getvalue()[: 400 if width == 80 else None]
        assert any("12/20" in line for line in lines)


def test_the_time_left_follows_the_last_steps_and_not_those_from_the_store() -> None:
    clock = Turned()
    live, _ = _live(clock, 80)
    assert live.seconds_left() is None
    for number in range(1, 9):
        live.stage(f"step {number}: play", 1)
        clock.time += 10.0 if number > 1 else 0.0
    assert live.seconds_left() == 20.0
    assert live.headline() == "run-1, step 8/10, about 20 s left"


def test_two_equal_stages_end_one_at_a_time() -> None:
    live, _ = _live(Turned(), 80)
    first, second = live.stage("play", 3), live.stage("play", 3)
    live.ended(second)
    assert live.stages == [first]
    assert live.stages[0] is first
