"""What each part of a skill is worth: the same tasks once more without it."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Sequence

import msgspec

from whet.core import SKILL_FILE, Policy, Skill, Task, Trajectory
from whet.gate import Interval, paired_interval, select_gate_score
from whet.rollout import Engine
from whet.training.config import GateSettings
from whet.training.judging import play_all
from whet.training.monitor import Monitor

_FRONT_MATTER = re.compile(r"\A---[ \t]*\n.*?\n---[ \t]*(?:\n|\Z)", re.DOTALL)


class Part(msgspec.Struct, frozen=True):
    """A stretch of the document that says one thing: a paragraph, a list item with what belongs to it, an example."""

    text: str
    start: int
    end: int


class Worth(msgspec.Struct, frozen=True):
    part: str
    worth: float
    """The score with it minus the score without it, on the same tasks."""
    interval: Interval
    needed_by: tuple[str, ...]
    """Tasks that pass with it and fail without it."""
    harms: tuple[str, ...]


def parts_of(text: str) -> list[Part]:
    """Headings go with what stands under them; front matter and marker comments are not parts."""
    matter = _FRONT_MATTER.match(text)
    offset = matter.end() if matter else 0
    found: list[Part] = []
    for block in re.finditer(r"(?:(?!\n[ \t]*\n).)+", text[offset:], re.DOTALL):
        items = _items(block.group())
        for start, end in items:
            piece = block.group()[start:end]
            if _says_something(piece):
                found.append(Part(piece.strip(), offset + block.start() + start, offset + block.start() + end))
    return found


def _items(block: str) -> list[tuple[int, int]]:
    """A list is cut into its items; anything else is one."""
    starts = [match.start() for match in re.finditer(r"^(?:[-*+]|\d+[.)])[ \t]", block, re.MULTILINE)]
    if len(starts) < 2:
        return [(0, len(block))]
    head = [(0, starts[0])] if starts[0] > 0 else []
    return head + list(zip(starts, [*starts[1:], len(block)], strict=True))


def _says_something(piece: str) -> bool:
    lines = [line for line in piece.strip().splitlines() if line.strip()]
    return any(not line.startswith("#") and not line.startswith("<!--") for line in lines)


def without(skill: Skill, part: Part) -> Skill:
    text = skill.text
    left = text[: part.start].rstrip() + "\n\n" + text[part.end :].lstrip()
    return skill.with_file(SKILL_FILE, left.strip() + "\n")


async def ablate(
    engine: Engine, policy: Policy, tasks: Sequence[Task], gate: GateSettings, monitor: Monitor
) -> list[Worth]:
    """In the order of the document. Each part costs one play of `tasks`; what was played before costs nothing."""
    parts = parts_of(policy.skill.text)
    stage = monitor.stage("ablate", len(tasks) * (len(parts) + 1))
    lesser = [policy.with_skill(without(policy.skill, part)) for part in parts]
    async with asyncio.TaskGroup() as playing:
        played = [playing.create_task(play_all(engine, each, tasks, stage)) for each in (policy, *lesser)]
    monitor.ended(stage)
    whole, *reduced = (one.result() for one in played)
    return [_worth(part, whole, less, gate) for part, less in zip(parts, reduced, strict=True)]


def _worth(part: Part, whole: Sequence[Trajectory], less: Sequence[Trajectory], gate: GateSettings) -> Worth:
    differences = [_score(a, gate) - _score(b, gate) for a, b in zip(whole, less, strict=True)]
    return Worth(
        part.text,
        sum(differences) / max(1, len(differences)),
        paired_interval(differences),
        tuple(a.task for a, b in zip(whole, less, strict=True) if a.hard > b.hard),
        tuple(a.task for a, b in zip(whole, less, strict=True) if a.hard < b.hard),
    )


def _score(played: Trajectory, gate: GateSettings) -> float:
    return select_gate_score(played.hard, played.soft, gate.metric, gate.mix)
