"""From a run to a draft of what is published: its best policy, what it was measured to do, and what proves it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from whet import __version__
from whet.core import InputError, Policy
from whet.gate import read_certificate
from whet.registry import Base, Draft, Measure, Origin, Proof, Registry
from whet.store import RunReader
from whet.training.adapters import ADAPTERS
from whet.training.certifying import CERTIFICATES
from whet.training.folder import STORE_FILE, stored_settings
from whet.training.records import PolicyScore, Report
from whet.training.reporting import read_report
from whet.training.workshop import Project


def base_of(project: Project) -> Base:
    """Which model the project's agent is, as the registry names it."""
    target = project.config.target
    return Base(target.model, project.models.base("target", target))


def draft_of(project: Project, folder: Path, registry: Registry, note: str = "") -> Draft:
    """The best policy of the run at `folder`. Raises InputError where there is nothing to publish."""
    report = read_report(folder)
    if report is None:
        raise InputError(f"{folder.name} has not come to an end yet", hint="The same `whet train` goes on with it.")
    if report.best == report.start:
        raise InputError(f"{folder.name} kept nothing: its best policy is the one it started from")
    best = stored_policies(folder)[report.best]
    project.shelf.look_in(folder / ADAPTERS)
    return Draft(
        best,
        report.world,
        base_of(project),
        _origin(project, folder, report),
        parents=tuple(record.id for record in registry.records(report.world) if record.policy == report.start),
        evidence=tuple(_measures(report)),
        proofs=tuple(proofs_in(folder, best)),
        adapter=project.shelf(best.adapter).parent if best.adapter else None,
        note=note,
    )


def stored_policies(folder: Path) -> dict[str, Policy]:
    with RunReader(folder / STORE_FILE) as reader:
        return {policy.fingerprint: policy for policy in reader.policies()}


def proofs_in(folder: Path, policy: Policy) -> list[Proof]:
    """The certificates beside a run that are about this policy."""
    texts = [path.read_text(encoding="utf-8") for path in sorted(folder.glob(CERTIFICATES))]
    claims = [(read_certificate(text).claim, text) for text in texts]
    return [
        Proof(claim.candidate, claim.incumbent, text) for claim, text in claims if claim.candidate == policy.fingerprint
    ]


def _origin(project: Project, folder: Path, report: Report) -> Origin:
    settings: dict[str, Any] = stored_settings(folder) or {}
    data = next((step.training.data for step in reversed(report.steps) if step.training), "")
    return Origin(report.run, __version__, settings, data, project.world.fingerprint)


def _measures(report: Report) -> list[Measure]:
    measured: list[Measure] = []
    for score in report.test:
        measured += [] if score.policy != report.best else _of_split(score, "test")
        measured += [] if score.policy != report.start else _of_split(score, "test, before")
    if report.comparison is not None:
        found = report.comparison
        count = next((score.count for score in report.test), 0)
        measured.append(
            Measure("test, gain", report.metric, found.gain, found.interval.low, found.interval.high, count)
        )
    return measured


def _of_split(score: PolicyScore, what: str) -> list[Measure]:
    return [Measure(what, "hard", score.hard, score.interval.low, score.interval.high, score.count)]
