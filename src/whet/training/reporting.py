"""The report of a training, made from what was played, and written as JSON and as text."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import msgspec

from whet.core import Policy, Score, Split, Trajectory
from whet.gate import mean_score, paired_interval, select_gate_score, sign_test, wilson
from whet.store import RunReader
from whet.training.config import GateSettings
from whet.training.folder import REPORT_FILE, REPORT_TEXT, STORE_FILE
from whet.training.records import Comparison, PolicyScore, Report, StepRecord
from whet.training.skills import replace_text
from whet.training.workshop import Workshop


class Finals:
    """The policies of start and end, and what was played with them."""

    start: Policy
    best: Policy
    last: Policy
    skilled: Policy | None = None
    """What the skill lever alone came to, where an adapter followed."""

    def __init__(self) -> None:
        self.selection: dict[str, list[Trajectory]] = {}
        self.test: dict[str, list[Trajectory]] = {}


def make_report(
    workshop: Workshop, finals: Finals, steps: Sequence[StepRecord], *, planned: int, stopped: str
) -> Report:
    config = workshop.project.config
    with RunReader(workshop.folder / STORE_FILE) as reader:
        calls = tuple(reader.answered())
    skilled = finals.skilled or finals.start
    named = list(dict.fromkeys(one.fingerprint for one in (finals.start, skilled, finals.best, finals.last)))
    return Report(
        run=workshop.folder.name,
        world=workshop.project.world.name,
        target=str(workshop.target.ref),
        optimizer=config.optimizer.model,
        seed=config.train.seed,
        metric=config.gate.metric,
        rule=config.gate.rule,
        steps_planned=planned,
        stopped=stopped,
        steps=tuple(steps),
        start=finals.start.fingerprint,
        best=finals.best.fingerprint,
        last=finals.last.fingerprint,
        selection=tuple(_selection_scores(finals, steps, config.gate)),
        test=tuple(policy_score(name, finals.test[name], config.gate) for name in named if finals.test.get(name)),
        comparison=_comparison(finals, config.gate),
        calls=calls,
        skill=finals.best.skill.files,
        adapter=finals.best.adapter.fingerprint if finals.best.adapter else "",
        skilled=skilled.fingerprint if finals.skilled else "",
    )


def policy_score(policy: str, played: Sequence[Trajectory], gate: GateSettings) -> PolicyScore:
    mean = mean_score((one.hard, one.soft) for one in played)
    passed = sum(one.hard == 1.0 for one in played)
    kinds = sorted({one.kind for one in played if one.kind})
    return PolicyScore(
        policy=policy,
        score=select_gate_score(mean.hard, mean.soft, gate.metric, gate.mix),
        hard=mean.hard,
        soft=mean.soft,
        count=mean.count,
        passed=passed,
        interval=wilson(passed, mean.count),
        by_kind={kind: _kind_score(played, kind) for kind in kinds},
    )


def compare(before: Sequence[Trajectory], after: Sequence[Trajectory], gate: GateSettings) -> Comparison:
    """Task by task; both were played on the same tasks in the same order."""
    differences = [_value(b, gate) - _value(a, gate) for a, b in zip(before, after, strict=True)]
    fixed = tuple(b.task for a, b in zip(before, after, strict=True) if b.hard > a.hard)
    broke = tuple(b.task for a, b in zip(before, after, strict=True) if b.hard < a.hard)
    gain = sum(differences) / len(differences) if differences else 0.0
    return Comparison(gain, paired_interval(differences), fixed, broke, sign_test(len(fixed), len(broke)))


def write_report(report: Report, folder: Path) -> None:
    replace_text(folder / REPORT_FILE, msgspec.json.format(msgspec.json.encode(report), indent=1).decode() + "\n")
    replace_text(folder / REPORT_TEXT, report_text(report))


def read_report(folder: Path) -> Report | None:
    path = folder / REPORT_FILE
    return msgspec.json.decode(path.read_bytes(), type=Report) if path.is_file() else None


def report_text(report: Report) -> str:
    """The report for people, as Markdown."""
    lines = [f"# {report.run}: {report.world}", "", verdict_line(report), ""]
    if report.stopped:
        lines += [f"Stopped early: {report.stopped}.", ""]
    lines += ["| policy | split | passed | rate | 95% interval |", "|---|---|---|---|---|"]
    for split, scores in ((Split.SELECTION, report.selection), (Split.TEST, report.test)):
        for score in scores:
            rate = f"{score.hard:.3f} | {score.interval.low:.3f} to {score.interval.high:.3f}"
            lines.append(f"| {names_of(report, score.policy)} | {split} | {score.passed} of {score.count} | {rate} |")
    lines += ["", "## Steps", "", "| step | played | edits | ruling |", "|---|---|---|---|"]
    lines += [_step_row(step) for step in report.steps]
    lines += ["", "## Calls whose answers count", "", "| role | purpose | calls | tokens in | tokens out |"]
    lines += ["|---|---|---|---|---|"]
    lines += [f"| {c.role} | {c.purpose} | {c.calls} | {c.input_tokens} | {c.output_tokens} |" for c in report.calls]
    lines += ["", "## The best skill", ""]
    lines += [f"### {name}\n\n{text}" for name, text in sorted(report.skill.items())]
    return "\n".join(lines).rstrip() + "\n"


def verdict_line(report: Report) -> str:
    """The gain in one sentence that claims no more than was shown."""
    found = report.comparison
    if found is None:
        return "No gain is claimed: the test split was not played to its end with both policies."
    interval = f"95% interval {found.interval.low:+.3f} to {found.interval.high:+.3f}, exact p {found.p:.2g}"
    changed = f"{len(found.fixed)} fixed, {len(found.broke)} broken"
    if report.best == report.start:
        return "Nothing was kept: the best policy is the one it started from."
    if not found.shown:
        return f"A gain is not shown: {found.gain:+.3f} on the test tasks ({interval}; {changed})."
    return f"Better by {found.gain:+.3f} on the test tasks ({interval}; {changed})."


def names_of(report: Report, policy: str) -> str:
    named = (("start", report.start), ("skilled", report.skilled), ("best", report.best), ("last", report.last))
    return ", ".join(name for name, fingerprint in named if fingerprint == policy) or policy[:8]


def _step_row(step: StepRecord) -> str:
    ruling = step.skipped if step.ruling is None else step.ruling.reason
    mark = "" if step.ruling is None else ("**accepted**: " if step.ruling.accepted else "rejected: ")
    changed = sum(edit.status.changed for edit in step.edits)
    return f"| {step.number} | {step.played.hard:.3f} | {changed} of {len(step.edits)} | {mark}{ruling} |"


def _selection_scores(finals: Finals, steps: Sequence[StepRecord], gate: GateSettings) -> list[PolicyScore]:
    """What the gate saw of the starting policy; rulings tell the rest."""
    played = finals.selection.get(finals.start.fingerprint)
    return [policy_score(finals.start.fingerprint, played, gate)] if played else []


def _comparison(finals: Finals, gate: GateSettings) -> Comparison | None:
    before, after = (finals.test.get(policy.fingerprint) for policy in (finals.start, finals.best))
    return compare(before, after, gate) if before and after else None


def _kind_score(played: Sequence[Trajectory], kind: str) -> Score:
    return mean_score((one.hard, one.soft) for one in played if one.kind == kind)


def _value(played: Trajectory, gate: GateSettings) -> float:
    return select_gate_score(played.hard, played.soft, gate.metric, gate.mix)
