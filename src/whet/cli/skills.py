"""Skills side by side. Pure."""

from __future__ import annotations

from collections.abc import Iterator
from difflib import unified_diff

from whet.core import Skill


def diff_lines(before: Skill, after: Skill, name_before: str, name_after: str) -> Iterator[str]:
    """A unified diff of every file that differs; nothing if none does."""
    for path in sorted(before.files.keys() | after.files.keys()):
        old, new = before.files.get(path, "").splitlines(), after.files.get(path, "").splitlines()
        yield from unified_diff(old, new, f"{name_before}/{path}", f"{name_after}/{path}", n=2, lineterm="")
