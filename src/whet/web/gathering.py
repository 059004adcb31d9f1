"""What a page needs, read from a run's folder. The only part of this room that touches files; it writes none."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec

from whet.core import Message, Speaker, Split, Trajectory
from whet.gate import Metric
from whet.store import RunReader
from whet.training import Comparison, GateSettings, Report
from whet.training.folder import CONFIG_COPY, STORE_FILE
from whet.training.reporting import compare
from whet.web.facts import ChangedTask, Facts, Timing
from whet.web.report import render_report

_SHOWN_FAILURES = 5
_SHOWN_CHANGES = 100
"""Of the tasks that were fixed, and of those that broke; the others are only named."""
_LONGEST = 1500

Played = dict[str, Trajectory]


def page_of(folder: Path, report: Report, note: str = "") -> str:
    """The whole page of the run at `folder`. `note` says why it is not at its end."""
    with RunReader(folder / STORE_FILE) as reader:
        facts, timing = gather_facts(reader, report, note), gather_timing(reader)
    copy = folder / CONFIG_COPY
    return render_report(report, facts, timing, copy.read_text(encoding="utf-8") if copy.is_file() else "")


def gather_facts(reader: RunReader, report: Report, note: str = "") -> Facts:
    wanted = sorted({report.start, *(record.current for record in report.steps)})
    skills = {name: policy.skill.files for name in wanted if (policy := reader.policy(name)) is not None}
    before, best = (_first_tries(reader, policy) for policy in (report.start, report.best))
    return Facts(
        start_skill=skills.get(report.start, {}),
        skills=skills,
        changed=_changed(report.comparison, before, best),
        kinds=_kinds(report.comparison, before),
        last=_last(reader, report, before),
        note=note,
    )


def gather_timing(reader: RunReader) -> Timing:
    return Timing(
        spending=tuple(reader.spending()),
        seconds=reader.seconds(),
        at=reader.last_activity(),
        failures=reader.counts()["failures"],
        latest_failures=tuple(reader.failures(_SHOWN_FAILURES)),
    )


def _first_tries(reader: RunReader, policy: str) -> Played:
    """Later tries are an evaluation's, and no part of the report."""
    tries = (stored.trajectory for stored in reader.rollouts(policy=policy, split=Split.TEST))
    return {one.task: _short(one) for one in tries if one.sample == 0}


def _short(played: Trajectory) -> Trajectory:
    """All that is shown of it, so that a large test split fits into memory."""
    asked = next((message for message in played.messages if message.speaker is Speaker.USER), None)
    return msgspec.structs.replace(
        played,
        messages=() if asked is None else (Message(Speaker.USER, _clipped(asked.text)),),
        answer=_clipped(played.answer),
    )


def _changed(found: Comparison | None, before: Played, after: Played) -> tuple[ChangedTask, ...]:
    if found is None:
        return ()
    named = (*found.broke[:_SHOWN_CHANGES], *found.fixed[:_SHOWN_CHANGES])
    broke = set(found.broke)
    return tuple(
        _change(before[task], after[task], broken=task in broke) for task in named if task in before and task in after
    )


def _kinds(found: Comparison | None, before: Played) -> dict[str, str]:
    changed = () if found is None else (*found.fixed, *found.broke)
    return {task: before[task].kind for task in changed if task in before}


def _change(before: Trajectory, after: Trajectory, *, broken: bool) -> ChangedTask:
    failed = after if broken else before
    return ChangedTask(
        task=before.task,
        kind=before.kind,
        question=before.messages[0].text if before.messages else "",
        before=before.answer,
        after=after.answer,
        feedback=_clipped(failed.verdict.feedback) if failed.verdict else "",
    )


def _last(reader: RunReader, report: Report, before: Played) -> Comparison | None:
    if report.comparison is None or report.last in (report.start, report.best):
        return None
    last = _first_tries(reader, report.last)
    shared = sorted(before.keys() & last.keys())
    return compare([before[task] for task in shared], [last[task] for task in shared], _gate(reader, report))


def _gate(reader: RunReader, report: Report) -> GateSettings:
    settings: Mapping[str, Any] = msgspec.json.decode(reader.meta("settings") or "{}", type=dict[str, Any])
    return GateSettings(metric=Metric(report.metric), mix=settings.get("gate.mix", GateSettings().mix))


def _clipped(said: str) -> str:
    return said if len(said) <= _LONGEST else f"{said[:_LONGEST].rstrip()} … ({len(said) - _LONGEST:,} letters more)"
