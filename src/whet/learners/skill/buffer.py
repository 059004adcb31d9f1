"""What the earlier steps of an epoch tried, so that the optimizer does not propose it again. Pure."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from whet.core import EditResult, EditStatus, FailurePattern, Proposal, Ruling, Trajectory
from whet.learners.skill.evidence import show_edit


class BufferEntry(msgspec.Struct, frozen=True):
    step: int
    failed: int
    played: int
    patterns: tuple[FailurePattern, ...]
    accepted: bool | None
    """None: nothing was proposed."""
    rejected_edits: tuple[EditResult, ...] = ()
    left_out: tuple[EditResult, ...] = ()
    before: float = 0.0
    after: float = 0.0


def make_entry(step: int, trajectories: Sequence[Trajectory], proposal: Proposal, ruling: Ruling | None) -> BufferEntry:
    failed = [played for played in trajectories if not played.hard]
    rejected = ruling is not None and not ruling.accepted
    return BufferEntry(
        step=step,
        failed=len(failed),
        played=len(trajectories),
        patterns=proposal.patterns or group_failures(failed),
        accepted=None if ruling is None else ruling.accepted,
        rejected_edits=tuple(edit for edit in proposal.edits if edit.status.changed) if rejected else (),
        left_out=tuple(edit for edit in proposal.edits if edit.status is EditStatus.LEFT_OUT),
        before=0.0 if ruling is None else ruling.incumbent,
        after=0.0 if ruling is None else ruling.candidate,
    )


def group_failures(failed: Sequence[Trajectory]) -> tuple[FailurePattern, ...]:
    """By the reason that the verdict names, up to its first colon, each with its own tasks."""
    groups: dict[str, list[str]] = {}
    for played in failed:
        reason = played.verdict.feedback.partition(":")[0].strip() if played.verdict else ""
        groups.setdefault(reason or "failed", []).append(played.task)
    return tuple(FailurePattern(reason, "", tuple(tasks), len(tasks)) for reason, tasks in groups.items())


def show_buffer(entries: Sequence[BufferEntry]) -> str:
    return "\n\n".join(_show(entry) for entry in entries)


def _show(entry: BufferEntry) -> str:
    outcome = {True: "accepted", False: "rejected", None: "nothing proposed"}[entry.accepted]
    lines = [f"### Step {entry.step}: {outcome}; {entry.failed} of {entry.played} tries failed"]
    lines += [_pattern(pattern) for pattern in entry.patterns]
    if entry.rejected_edits:
        lines.append(f"These changes were tried and took the score from {entry.before:.4f} to {entry.after:.4f}:")
        lines += [f"- {show_edit(tried.edit)}" for tried in entry.rejected_edits]
        lines.append("Do not propose them again.")
    if entry.left_out:
        lines.append("These changes were tried alone and helped with none of the tasks that they came from:")
        lines += [f"- {show_edit(tried.edit)}" for tried in entry.left_out]
        lines.append("Do not propose them again.")
    return "\n".join(lines)


def _pattern(pattern: FailurePattern) -> str:
    tasks = f" (tasks {', '.join(pattern.task_ids)})" if pattern.task_ids else ""
    described = f": {pattern.description}" if pattern.description else ""
    return f"- {pattern.failure_type}{described}{tasks}"
