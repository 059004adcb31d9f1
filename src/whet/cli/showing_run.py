"""A whole run on one page: scores, steps, spending, failures, and the change in its skill."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import click
import msgspec

from whet.cli.numbers import interval, money, plural, share, short_count, when
from whet.cli.output import number, pairs, paragraph, print_diff, print_table, rest, text, title
from whet.cli.skills import diff_lines
from whet.cli.standing import Standing, State, read_standing, report_of, settings_of, skill_of
from whet.cli.steps import difference, given_up, label, why_skipped
from whet.core import Score, Skill, Split
from whet.gate import Interval, wilson
from whet.store import FailureLine, RunReader, SpendingLine
from whet.training import Comparison, Report, StepRecord, verdict_line
from whet.training.folder import STORE_FILE
from whet.training.telling import duration

_SHOWN_FAILURES = 5


class ScoreLine(msgspec.Struct, frozen=True):
    """A named policy on one split."""

    policy: str
    split: Split
    passed: int
    tries: int
    rate: float
    interval: Interval
    """As of so many tasks, however often each of them was tried."""


class RunFacts(msgspec.Struct, frozen=True):
    standing: Standing
    world: str
    target: str
    optimizer: str
    verdict: str
    comparison: Comparison | None
    scores: tuple[ScoreLine, ...]
    steps: tuple[StepRecord, ...]
    spending: tuple[SpendingLine, ...]
    recent_failures: tuple[FailureLine, ...]
    skill_diff: tuple[str, ...]


def facts_of(folder: Path) -> RunFacts:
    report = report_of(folder)
    with RunReader(folder / STORE_FILE) as reader:
        standing = read_standing(folder, reader, report)
        steps = reader.decisions("step", StepRecord)
        settings = settings_of(reader)
        lineage = standing.lineage
        start, best = (skill_of(reader, policy, steps) or Skill({}) for policy in (lineage.start, lineage.best))
        return RunFacts(
            standing=standing,
            world=reader.meta("world") or "",
            target=str(settings.get("target.model", "")),
            optimizer=str(settings.get("optimizer.model", "")),
            verdict=_verdict(standing, report),
            comparison=report.comparison if report else None,
            scores=tuple(_scores(standing, reader, report)),
            steps=tuple(steps),
            spending=tuple(reader.spending()),
            recent_failures=tuple(reader.failures(_SHOWN_FAILURES)),
            skill_diff=tuple(diff_lines(start, best, "start", "best")),
        )


def print_run(facts: RunFacts) -> None:
    standing = facts.standing
    click.secho(f"{standing.run}: {_state(standing)}", bold=True)
    pairs(
        [
            ("world", facts.world),
            ("target", facts.target),
            ("optimizer", facts.optimizer),
            ("worked", f"{duration(standing.seconds)}, until {when(standing.at)}"),
            ("folder", standing.folder),
        ]
    )
    if facts.verdict:
        click.echo("")
        paragraph(facts.verdict)
    _print_scores(facts.scores)
    _print_steps(facts.steps)
    _print_spending(facts.spending)
    _print_failures(facts)
    _print_diff(facts.skill_diff)


def _state(standing: Standing) -> str:
    done = f"{standing.steps} of {standing.planned} steps" if standing.planned else plural(standing.steps, "step")
    match standing.state:
        case State.RUNNING:
            return f"running (pid {standing.pid}), {done}"
        case State.STOPPED:
            return f"stopped early, {done}: {standing.stopped}"
        case State.INTERRUPTED:
            return f"interrupted, {done}; `whet train` goes on with it"
        case State.FINISHED:
            return f"finished, {done}"


def _verdict(standing: Standing, report: Report | None) -> str:
    current = report is not None and standing.state in (State.FINISHED, State.STOPPED)
    return verdict_line(report) if report is not None and current else ""


def _scores(standing: Standing, reader: RunReader, report: Report | None) -> list[ScoreLine]:
    """Selection from the store; test from the report, which counts the first try at each task and no other."""
    lineage = standing.lineage
    order = list(dict.fromkeys(policy for policy in (lineage.start, lineage.best, lineage.current) if policy))
    reported = {score.policy: score for score in report.test} if report else {}
    stored = {(line.policy, line.split): line.score for line in reader.scores()}
    lines: list[ScoreLine] = []
    for split in (Split.SELECTION, Split.TEST):
        for policy in order:
            name = lineage.named(policy)
            told = reported.get(policy) if split is Split.TEST else None
            found = stored.get((policy, split))
            if told is not None:
                lines.append(ScoreLine(name, split, told.passed, told.count, told.hard, told.interval))
            elif found is not None:
                lines.append(_stored_line(name, split, found, reader.tasks_played(policy, split)))
    return lines


def _stored_line(name: str, split: Split, found: Score, tasks: int) -> ScoreLine:
    """Tries at one task resemble each other, so the interval is that of as many tasks as were played."""
    bounds = wilson(round(found.hard * tasks), tasks)
    return ScoreLine(name, split, round(found.hard * found.count), found.count, found.hard, bounds)


def _print_scores(scores: Sequence[ScoreLine]) -> None:
    if not scores:
        return
    title("Scores")
    columns = (text("split"), text("policy"), number("passed"), number("of"), number("rate"), text("95% interval"))
    print_table(
        columns,
        [
            (line.split, line.policy, str(line.passed), str(line.tries), share(line.rate), interval(line.interval))
            for line in scores
        ],
    )


def _print_steps(steps: Sequence[StepRecord]) -> None:
    if not steps:
        return
    title("Steps")
    columns = (number("step"), number("played"), number("edits"), number("score"), text("kept"), rest("why"))
    print_table(columns, [_step_row(step) for step in steps])


def _step_row(record: StepRecord) -> tuple[str, ...]:
    played = share(record.played.hard) if record.played.count else "-"
    changed = str(sum(edit.status.changed for edit in record.edits))
    ruling = record.ruling
    if ruling is None:
        return (label(record), played, changed, "-", "-", why_skipped(record))
    score = f"{'≤' if given_up(ruling) else ''}{share(ruling.candidate)}"
    return (label(record), played, changed, score, "yes" if ruling.accepted else "no", difference(ruling))


def _print_spending(spending: Sequence[SpendingLine]) -> None:
    if not spending:
        return
    title("Spending")
    columns = (text("role"), text("purpose"), *(number(name) for name in _SPENDING_COLUMNS))
    rows = [_spending_row(line.role, line.purpose, [line]) for line in spending]
    print_table(columns, [*rows, _spending_row("all", "", spending)])
    for note in _wasted(spending):
        click.echo(note)


_SPENDING_COLUMNS = ("sent", "failed", "given up", "lost", "tokens", "cost")


def _spending_row(role: str, purpose: str, lines: Sequence[SpendingLine]) -> tuple[str, ...]:
    return (
        role,
        purpose,
        str(sum(line.attempts for line in lines)),
        str(sum(line.failed for line in lines)),
        str(sum(line.abandoned for line in lines)),
        str(sum(line.lost for line in lines)),
        short_count(sum(line.tokens for line in lines)),
        money(sum(line.nanodollars for line in lines)),
    )


def _wasted(spending: Sequence[SpendingLine]) -> list[str]:
    notes: list[str] = []
    if any(line.failed for line in spending):
        notes.append("failed: the endpoint refused or broke off; sent again.")
    if any(line.abandoned for line in spending):
        notes.append("given up: another sending of the same call answered first, or the run was stopped.")
    if any(line.lost for line in spending):
        notes.append("lost: the process died while they were open; counted at what was reserved for them.")
    return notes


def _print_failures(facts: RunFacts) -> None:
    if not facts.recent_failures:
        return
    title("Failures (never scored)")
    paragraph(f"{plural(facts.standing.failures, 'try', 'tries')} ended without a verdict; the latest:")
    print_table(
        (text("kind"), text("task"), rest("what")),
        [(line.kind, line.task, line.message) for line in facts.recent_failures],
    )


def _print_diff(lines: Sequence[str]) -> None:
    title("The best skill against the start")
    if lines:
        print_diff(lines)
    else:
        click.echo("no change was kept")
