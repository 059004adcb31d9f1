"""Which policy a name or a path stands for."""

from __future__ import annotations

from pathlib import Path

from whet.cli.diff import named_skill
from whet.core import InputError, Policy
from whet.store import RunReader
from whet.training import read_skill
from whet.training.folder import STORE_FILE

NAMES = ("start", "best", "last")


def policy_for(start: Policy, folder: Path, name: str) -> Policy:
    """`start` with the skill that is meant: of the run at `folder`, or at a path."""
    if name == "start":
        return start
    if name in NAMES:
        if not (folder / STORE_FILE).is_file():
            raise InputError(
                f"there is no run with these settings to take its {name} policy from",
                hint="Train first, name a run with --run, or give the path of a skill.",
            )
        with RunReader(folder / STORE_FILE) as reader:
            return start.with_skill(named_skill(reader, folder, name))
    path = Path(name)
    if not path.exists():
        raise InputError(f"there is no policy {name!r}", hint=f"It is {', '.join(NAMES)}, or the path of a skill.")
    return start.with_skill(read_skill(path))
