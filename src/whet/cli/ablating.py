"""`whet show --ablate`: what each part of a run's best skill is worth."""

from __future__ import annotations

from pathlib import Path

from whet.cli.numbers import signed_interval
from whet.cli.output import number, print_table, rest
from whet.cli.policies import policy_for
from whet.cli.working import work_on
from whet.core import InputError, Split
from whet.training import Monitor, load_config, open_workshop, prepare
from whet.training.ablation import Worth, ablate, parts_of
from whet.training.folder import CONFIG_COPY


def ablated(base_dir: Path, folder: Path, *, log: bool) -> list[Worth]:
    """Plays the selection tasks without each part in turn, in the run's own store."""
    project = prepare(load_config(folder / CONFIG_COPY), base_dir)
    best = policy_for(project, folder, "best")
    if not parts_of(best.skill.text):
        raise InputError(f"the best skill of {folder.name} has no parts to leave out")

    async def work(monitor: Monitor) -> list[Worth]:
        async with open_workshop(project, folder) as workshop:
            monitor.started(folder.name, 0, workshop.ledger)
            tasks = project.tasks(Split.SELECTION)
            return await ablate(workshop.engine, best, tasks, project.config.gate, monitor)

    worths, _ = work_on(work, project.clock, plain=False, log=log)
    return worths


def print_worths(worths: list[Worth]) -> None:
    print_table(
        (number("worth"), number("95% interval"), number("needed by"), number("harms"), rest("part")),
        [
            (
                f"{worth.worth:+.3f}",
                signed_interval(worth.interval),
                str(len(worth.needed_by)),
                str(len(worth.harms)),
                " ".join(worth.part.split()),
            )
            for worth in worths
        ],
    )
