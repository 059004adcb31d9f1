"""Certifies a run's best policy against the one it started from, on tasks that nobody selected on.

Every attempt of a project spends from one alpha for its world, kept in runs/alpha.json, so that asking again
and again cannot buy a certificate. An attempt that was cut off goes on with what it was granted.
"""

from __future__ import annotations

import asyncio
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from pathlib import Path

import msgspec

from whet.core import InputError, Policy, Split, Task, Trajectory
from whet.gate import AlphaLedger, Arm, Ask, Certifier, Claim, Evidence, Finding, PlannedPlay, write_certificate
from whet.rollout import Engine
from whet.store.lock import WriterLock
from whet.training.folder import RUNS
from whet.training.monitor import Monitor
from whet.training.skills import replace_text
from whet.training.workshop import Project, Workshop

ALPHA_FILE = "alpha.json"
CERTIFICATE = "certificate.json"
CERTIFICATES = "certificate*.json"


def split_for(project: Project) -> Split:
    """`confirm` if the world has one, else the sealed test split."""
    return Split.CONFIRM if project.world.tasks(Split.CONFIRM) else Split.TEST


async def certify(
    workshop: Workshop, best: Policy, split: Split, samples: int, monitor: Monitor, over: Policy | None = None
) -> Finding:
    """Play until the gain over the starting policy, or `over`, is proven or cannot be.

    A certificate is written beside the run's best skill.
    """
    incumbent = over or workshop.project.start
    project, folder = workshop.project, workshop.folder
    tasks = project.tasks(split)
    claim = _claim(workshop, best, incumbent, split, samples)
    key, campaign = claim.key(tasks), project.world.name
    with _alphas(project.base_dir) as alphas:
        ledger, alpha = alphas.setdefault(campaign, AlphaLedger()).open(key)
        alphas[campaign] = ledger
    certifier = Certifier(
        claim, tasks, alpha, campaign_alpha=ledger.total, attempt=ledger.number_of(key), chunk=max(8, len(tasks) // 8)
    )
    finding = await _decide(certifier, workshop.engine, best, incumbent, tasks, monitor)
    if finding.certificate is not None:
        replace_text(
            folder / file_for(incumbent.fingerprint, project.start.fingerprint), write_certificate(finding.certificate)
        )
    with _alphas(project.base_dir) as alphas:
        alphas[campaign] = alphas[campaign].close(key, finding.certificate is not None)
    return finding


def file_for(incumbent: str, start: str) -> str:
    """Each certificate has a file of its own: it is about one incumbent, by fingerprint."""
    return CERTIFICATE if incumbent == start else f"certificate-{incumbent[:12]}.json"


def _claim(workshop: Workshop, best: Policy, incumbent: Policy, split: Split, samples: int) -> Claim:
    project = workshop.project
    gate = project.config.gate
    return Claim(
        candidate=best.fingerprint,
        incumbent=incumbent.fingerprint,
        world=project.world.name,
        world_fingerprint=project.world.fingerprint,
        split=split,
        replay=f"whet certify {workshop.folder.name} --split {split} --samples {samples}",
        metric=gate.metric,
        mix=gate.mix,
        seed=project.config.train.seed,
        samples=samples,
        # The first sample of a test task is in the report, and whoever read it may have chosen by it what to certify.
        first_sample=1 if split is Split.TEST else 0,
    )


async def _decide(
    certifier: Certifier, engine: Engine, best: Policy, incumbent: Policy, tasks: Sequence[Task], monitor: Monitor
) -> Finding:
    by_id = {task.id: task for task in tasks}
    policies = {Arm.CANDIDATE: best, Arm.INCUMBENT: incumbent}
    evidence = Evidence()

    async def play(asked: PlannedPlay) -> Trajectory:
        return await engine.play(policies[asked.arm], by_id[asked.task], sample=asked.sample)

    while isinstance(step := certifier.next(evidence), Ask):
        stage = monitor.stage("certify", len(step.plays))
        async with asyncio.TaskGroup() as plays:
            started = [plays.create_task(play(asked)) for asked in step.plays]
        for asked, played in zip(step.plays, started, strict=True):
            outcome = played.result()
            evidence.add(asked.task, asked.arm, asked.sample, hard=outcome.hard, soft=outcome.soft)
        stage.done = stage.total
        monitor.ended(stage)
    return step


@contextmanager
def _alphas(base_dir: Path) -> Generator[dict[str, AlphaLedger]]:
    """The project's alpha ledgers, changed by one process at a time and written whole."""
    path = base_dir / RUNS / ALPHA_FILE
    path.parent.mkdir(parents=True, exist_ok=True)
    lock = WriterLock(path.with_suffix(".lock"))
    try:
        try:
            alphas = msgspec.json.decode(path.read_bytes(), type=dict[str, AlphaLedger]) if path.exists() else {}
        except msgspec.DecodeError as error:
            raise InputError(f"{path} cannot be read: {error}", hint="It says what was spent; restore it.") from error
        yield alphas
        replace_text(path, msgspec.json.format(msgspec.json.encode(alphas), indent=1).decode() + "\n")
    finally:
        lock.release()
