"""How records stem from each other, and what differs between two. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from difflib import unified_diff

import msgspec

from whet.registry.records import Record


class TreeLine(msgspec.Struct, frozen=True):
    record: Record
    branch: str
    """What is drawn before it: "├── "."""


class Difference(msgspec.Struct, frozen=True):
    """What differs between two records."""

    settings: tuple[str, ...]
    """One line each: "train.epochs: 4, then 2"."""
    evidence: tuple[str, ...]
    files: tuple[str, ...]
    """Files that are in one only, or not the same."""
    skill: tuple[str, ...]
    """A unified diff of the texts."""


def tree(records: Sequence[Record]) -> list[TreeLine]:
    """Each record under the first of its parents that is among them; the others are roots."""
    known = {record.id for record in records}
    children: dict[str, list[Record]] = {}
    for record in records:
        parent = next((parent for parent in record.body.parents if parent in known and parent != record.id), "")
        children.setdefault(parent, []).append(record)
    lines: list[TreeLine] = []
    seen: set[str] = set()

    def draw(record: Record, mark: str, indent: str) -> None:
        if record.id in seen:
            return
        seen.add(record.id)
        lines.append(TreeLine(record, mark))
        inside = children.get(record.id, [])
        for child in inside:
            last = child is inside[-1]
            draw(child, f"{indent}{'└── ' if last else '├── '}", f"{indent}{'    ' if last else '│   '}")

    for root in children.get("", []):
        draw(root, "", "")
    for record in records:  # parents that go in a circle, which only a foreign file can bring
        draw(record, "", "")
    return lines


def difference(before: Record, after: Record, texts: tuple[dict[str, str], dict[str, str]]) -> Difference:
    """`texts` are the skills' files of both."""
    files = before.body.files, after.body.files
    changed = sorted(name for name in files[0].keys() | files[1].keys() if files[0].get(name) != files[1].get(name))
    return Difference(
        tuple(_settings(before, after)),
        tuple(_evidence(before)) + tuple(_evidence(after)),
        tuple(changed),
        tuple(_diff(*texts)),
    )


def _settings(before: Record, after: Record) -> list[str]:
    old = {"base": before.base.name, "world": before.world, **before.body.origin.config}
    new = {"base": after.base.name, "world": after.world, **after.body.origin.config}
    keys = sorted(key for key in old.keys() | new.keys() if old.get(key) != new.get(key))
    return [f"{key}: {old.get(key, 'default')!r}, then {new.get(key, 'default')!r}" for key in keys]


def _evidence(record: Record) -> list[str]:
    return [
        f"{record.id} {measure.what} {measure.metric} {measure.value:.3f}"
        f" ({measure.low:.3f} to {measure.high:.3f}, {measure.count} tasks)"
        for measure in record.body.evidence
    ]


def _diff(before: dict[str, str], after: dict[str, str]) -> list[str]:
    lines: list[str] = []
    for name in sorted(before.keys() | after.keys()):
        old, new = before.get(name, "").splitlines(), after.get(name, "").splitlines()
        lines += [line.rstrip("\n") for line in unified_diff(old, new, name, name, lineterm="")]
    return lines
