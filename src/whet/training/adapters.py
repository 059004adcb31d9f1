"""Where the files of adapters are: those of a run, and those that were published."""

from __future__ import annotations

import shutil
from pathlib import Path

from whet.core import AdapterRef, InputError, Policy
from whet.training.folder import BEST
from whet.training.skills import write_skill

ADAPTERS = "adapters"
"""The folder of a run that holds them, each under its fingerprint."""
FILE = "adapter.gguf"


def write_best(policy: Policy, run: Path, shelf: Shelf) -> None:
    """The run's best policy as files: its skill, and its adapter beside it, which may have been published before."""
    write_skill(policy.skill, run / BEST)
    place = run / BEST / "adapter"
    if policy.adapter is None:
        shutil.rmtree(place, ignore_errors=True)
        return
    beside = run / BEST / ".adapter.part"
    shutil.rmtree(beside, ignore_errors=True)
    shutil.copytree(shelf(policy.adapter).parent, beside)
    shutil.rmtree(place, ignore_errors=True)
    beside.rename(place)


class Shelf:
    """Finds an adapter by its content. What is asked of it is a file that llama.cpp loads."""

    def __init__(self) -> None:
        self._folders: list[Path] = []
        self._known: dict[str, Path] = {}

    def look_in(self, folder: Path) -> None:
        """Adapters in `folder`, each in a folder named by its fingerprint."""
        if folder not in self._folders:
            self._folders.append(folder)

    def know(self, adapter: AdapterRef, file: Path) -> None:
        self._known[adapter.fingerprint] = file

    def __call__(self, adapter: AdapterRef) -> Path:
        places = [folder / adapter.fingerprint / FILE for folder in self._folders]
        if adapter.fingerprint in self._known:
            places.insert(0, self._known[adapter.fingerprint])
        for file in places:
            if file.is_file():
                return file
        raise InputError(
            f"the files of adapter {adapter.fingerprint[:12]} are not there",
            hint="They are made by the run that trained it: the same `whet train` makes them again.",
        )
