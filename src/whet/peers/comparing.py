"""Trains with whet and with peers, plays what each ships on the test tasks, and puts the results side by side."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from statistics import mean

import msgspec

from whet import __version__
from whet.core import Policy, Purpose, RunStopped, Skill, Split, dollars
from whet.gate import Interval, paired_interval, wilson
from whet.peers.bridge import Bridge
from whet.peers.running import Peer, run_peer
from whet.training import Monitor, Project, open_workshop, read_report, train
from whet.training.judging import play_all

WHET = "whet"
OVERSHOOT = 1.25
"""A peer cannot be stopped within an iteration: it may go over the budget by so much before its calls are refused."""


Prepared = Callable[[int, int | None], Project]
"""A project made ready for a seed and a cap on calls, without a test at the end: all trainers are tested alike."""


class Compared(msgspec.Struct, frozen=True):
    """One training by one trainer."""

    trainer: str
    version: str
    seed: int
    passed: int
    tasks: int
    calls: int
    tokens: int
    usd: float
    seconds: float
    skill: str
    settings: str

    @property
    def rate(self) -> float:
        return self.passed / self.tasks


class Comparison(msgspec.Struct, frozen=True):
    """A trainer over its seeds; whet's rate against its, seed by seed, is in `behind`."""

    trainer: str
    version: str
    seeds: int
    rate: float
    interval: Interval
    calls: int
    tokens: int
    usd: float
    seconds: float
    behind: float
    """What whet's rate is above this one's; 0 for whet itself."""
    behind_interval: Interval | None
    """None with fewer than two seeds."""


class _Trained(msgspec.Struct, frozen=True):
    skill: Skill
    version: str
    settings: str
    calls: int
    tokens: int
    usd: float
    seconds: float


async def compare_trainers(
    prepared: Prepared, peers: Sequence[Peer], *, seeds: Sequence[int], budget: int, folder: Path, monitor: Monitor
) -> list[Compared]:
    """Every trainer with every seed, `budget` calls each; the test tasks are played on top of it."""
    found: list[Compared] = []
    for seed in seeds:
        for peer in (None, *peers):
            name = WHET if peer is None else peer.name
            place = folder / f"{name}-{seed}"
            mine = prepared(seed, budget if peer is None else int(OVERSHOOT * budget))
            trained = (
                await _by_whet(mine, place, monitor)
                if peer is None
                else await _by_peer(mine, peer, place, seed, budget, monitor)
            )
            passed, tasks = await _held_out(
                prepared(seed, None), trained.skill, folder / "test", f"test, {name} {seed}", monitor
            )
            found.append(
                Compared(
                    name,
                    trained.version,
                    seed,
                    passed,
                    tasks,
                    trained.calls,
                    trained.tokens,
                    trained.usd,
                    trained.seconds,
                    trained.skill.text,
                    trained.settings,
                )
            )
            monitor.line(f"{name}, seed {seed}: {passed} of {tasks} test tasks after {trained.calls} calls")
    return found


def summarise(found: Sequence[Compared]) -> list[Comparison]:
    names = list(dict.fromkeys(one.trainer for one in found))
    ours = {one.seed: one.rate for one in found if one.trainer == WHET}
    return [_summary([one for one in found if one.trainer == name], ours) for name in names]


def _summary(rows: Sequence[Compared], ours: dict[int, float]) -> Comparison:
    ahead = [ours[one.seed] - one.rate for one in rows]
    return Comparison(
        trainer=rows[0].trainer,
        version=rows[0].version,
        seeds=len(rows),
        rate=mean(one.rate for one in rows),
        interval=wilson(sum(one.passed for one in rows), sum(one.tasks for one in rows)),
        calls=round(mean(one.calls for one in rows)),
        tokens=round(mean(one.tokens for one in rows)),
        usd=mean(one.usd for one in rows),
        seconds=mean(one.seconds for one in rows),
        behind=mean(ahead),
        behind_interval=paired_interval(ahead) if len(ahead) > 1 and rows[0].trainer != WHET else None,
    )


async def _by_whet(project: Project, folder: Path, monitor: Monitor) -> _Trained:
    try:
        skill = (await train(project, folder, monitor)).skill
    except RunStopped:
        report = read_report(folder)
        if report is None:
            raise
        skill = report.skill
    async with open_workshop(project, folder) as workshop:
        ledger = workshop.ledger
        return _Trained(
            Skill(skill),
            __version__,
            "whet.toml",
            ledger.calls,
            ledger.tokens,
            dollars(ledger.nanodollars),
            ledger.seconds,
        )


async def _by_peer(project: Project, peer: Peer, folder: Path, seed: int, budget: int, monitor: Monitor) -> _Trained:
    stage = monitor.stage(f"{peer.name} {seed}", 1)
    splits = {split: project.tasks(split) for split in (Split.TRAIN, Split.SELECTION)}
    async with open_workshop(project, folder) as workshop:
        monitor.started(f"{peer.name}, seed {seed}", 0, workshop.ledger)
        optimizer = project.models.open("optimizer", project.config.optimizer, workshop.store, workshop.ledger)
        async with Bridge(workshop, optimizer, project.config.optimizer.sampling) as bridge:
            shipped = await run_peer(
                peer,
                bridge,
                folder=folder / "peer",
                skill=project.start.skill,
                splits=splits,
                seed=seed,
                budget=budget,
            )
        ledger = workshop.ledger
        stage.done = 1
        monitor.ended(stage)
        return _Trained(
            Skill.from_text(shipped.skill),
            shipped.version,
            shipped.settings,
            ledger.calls,
            ledger.tokens,
            dollars(ledger.nanodollars),
            ledger.seconds,
        )


async def _held_out(project: Project, skill: Skill, folder: Path, name: str, monitor: Monitor) -> tuple[int, int]:
    policy: Policy = project.start.with_skill(skill)
    tasks = project.tasks(Split.TEST)
    async with open_workshop(project, folder) as workshop:
        stage = monitor.stage(name, len(tasks))
        played = await play_all(workshop.engine, policy, tasks, stage, purpose=Purpose.ASSESS)
        monitor.ended(stage)
    return sum(one.hard == 1.0 for one in played), len(played)
