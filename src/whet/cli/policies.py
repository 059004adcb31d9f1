"""Which policy a name or a path stands for."""

from __future__ import annotations

import re
from pathlib import Path

from whet.cli.diff import named_skill
from whet.core import InputError, Policy
from whet.store import RunReader
from whet.training import Project, read_report, read_skill
from whet.training.folder import STORE_FILE
from whet.training.published import ACTIVE

NAMES = ("start", "best", "last")
_RECORD = re.compile(r"[0-9a-f]{4,16}")


def policy_for(project: Project, folder: Path, name: str) -> Policy:
    """Of the run at `folder`, of the registry, or the starting policy with the skill at a path."""
    start = project.start
    if name == "start":
        return start
    if name in NAMES:
        return _of_run(start, folder, name)
    path = Path(name)
    if path.exists():
        return start.with_skill(read_skill(path))
    if name == ACTIVE or _RECORD.fullmatch(name):
        return project.published(name)
    raise InputError(
        f"there is no policy {name!r}",
        hint=f"It is {', '.join(NAMES)}, {ACTIVE}, the id of a published record, or the path of a skill.",
    )


def _of_run(start: Policy, folder: Path, name: str) -> Policy:
    if not (folder / STORE_FILE).is_file():
        raise InputError(
            f"there is no run with these settings to take its {name} policy from",
            hint="Train first, name a run with --run, or give the path of a skill.",
        )
    with RunReader(folder / STORE_FILE) as reader:
        report = read_report(folder)
        fingerprint = "" if report is None else {"best": report.best, "last": report.last}[name]
        stored = next((policy for policy in reader.policies() if policy.fingerprint == fingerprint), None)
        return stored or start.with_skill(named_skill(reader, folder, name))
