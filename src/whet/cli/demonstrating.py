"""What a demonstration shows at its end: each stage of the agent on the sealed test tasks, from what the run stored."""

from __future__ import annotations

import time
from collections.abc import Sequence
from importlib.resources import files
from pathlib import Path

import click
import msgspec

from whet.cli.numbers import interval, share
from whet.cli.options import CONFIG
from whet.cli.output import number, print_table, rest, text
from whet.core import Policy, Split, Trajectory
from whet.gate import Interval, wilson
from whet.rollout.render import render, request_for
from whet.store import RunReader
from whet.training import Project, Report
from whet.training.folder import STORE_FILE
from whet.training.publishing import stored_policies

TIMED = 8
"""Calls that a stage's time is taken from."""


class StageLine(msgspec.Struct, frozen=True):
    """How the agent did at one stage."""

    stage: str
    passed: int
    tasks: int
    interval: Interval
    """Of the share that passed; what is not valid did not pass."""
    valid: float
    """Share of answers in the right form."""
    prompt_tokens: float
    """Mean over calls."""
    seconds: float
    """Mean wall time of a call, one after another."""
    policy: str = ""

    @property
    def rate(self) -> float:
        return self.passed / self.tasks if self.tasks else 0.0


def write_demo(folder: Path, name: str, *, as_json: bool) -> None:
    """The project of a demonstration, unless it is there already: then it is gone on with."""
    if (folder / CONFIG).exists():
        return
    folder.mkdir(parents=True, exist_ok=True)
    text = files("whet.cli.demos").joinpath(name).read_text(encoding="utf-8")
    (folder / CONFIG).write_text(text, encoding="utf-8")
    click.echo(f"made a project in {folder}", err=as_json)


async def stages_of(project: Project, folder: Path, report: Report) -> list[StageLine]:
    """The model as it is, with what the skill lever found, and with what the adapter lever made of that."""
    policies = stored_policies(folder)
    lines: list[StageLine] = []
    try:
        for stage, policy in _named(report):
            played = _played(folder, policy)
            if played:
                seconds = await _alone(project, policies[policy])
                lines.append(stage_line(stage, played, seconds, policy))
    finally:
        await project.models.aclose()
    return lines


def _named(report: Report) -> list[tuple[str, str]]:
    named = [("bare model", report.start)]
    if report.skilled and report.skilled != report.start:
        named.append(("with skill", report.skilled))
    if report.best not in (report.start, report.skilled):
        named.append(("with adapter" if report.adapter else "with skill", report.best))
    return named


def _played(folder: Path, policy: str) -> list[Trajectory]:
    """The first try at each test task."""
    with RunReader(folder / STORE_FILE) as reader:
        tries = [one.trajectory for one in reader.rollouts()]
    return [one for one in tries if (one.policy, one.split, one.sample) == (policy, Split.TEST, 0)]


async def _alone(project: Project, policy: Policy) -> float:
    """Seconds of a call when nothing else is under way; the first one, which reads the skill, is not counted."""
    model = project.models.embedded("target", project.config.target)
    assert model is not None, "a demonstration plays an embedded model"
    began = 0.0
    tasks = project.tasks(Split.TEST)[: TIMED + 1]
    for place, task in enumerate(tasks):
        session = await project.world.open(task, seed=0)
        rendered = render(policy, session.brief, ())
        await model.send(request_for(policy, rendered, rendered.opening, 0), 300.0, {})
        await session.close()
        if place == 0:
            began = time.monotonic()
    return (time.monotonic() - began) / max(1, len(tasks) - 1)


def stage_line(stage: str, played: Sequence[Trajectory], seconds: float, policy: str = "") -> StageLine:
    passed, count = sum(one.hard == 1.0 for one in played), len(played)
    valid = sum(bool(one.verdict and one.verdict.facts.get("valid", one.soft > 0)) for one in played)
    calls = sum(max(1, one.turns) for one in played)
    tokens = sum(one.usage.input_tokens for one in played)
    return StageLine(stage, passed, count, wilson(passed, count), valid / count, tokens / calls, seconds, policy)


def print_stages(lines: Sequence[StageLine]) -> None:
    columns = (
        text("stage"),
        number("passed"),
        number("of"),
        number("rate"),
        text("95% interval"),
        number("valid"),
        number("prompt tokens"),
        number("s a call"),
        rest("policy"),
    )
    print_table(columns, [_cells(line) for line in lines])


def _cells(line: StageLine) -> tuple[str, ...]:
    return (
        line.stage,
        str(line.passed),
        str(line.tasks),
        share(line.rate),
        interval(line.interval),
        share(line.valid),
        f"{line.prompt_tokens:.0f}",
        f"{line.seconds:.2f}",
        line.policy[:8],
    )
