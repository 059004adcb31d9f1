"""Starts a training, or goes on with one, and brings it to an end whatever happens."""

from __future__ import annotations

from pathlib import Path

from whet.core import BudgetExhausted, RunStopped, cause_of
from whet.learners.skill import Search
from whet.training.loop import Training
from whet.training.monitor import Monitor, Silent
from whet.training.pareto import ParetoTraining
from whet.training.records import Report
from whet.training.workshop import Project, Workshop, open_workshop


def make_training(workshop: Workshop, monitor: Monitor) -> Training:
    if workshop.project.config.skill.search is Search.PARETO:
        return ParetoTraining(workshop, monitor)
    return Training(workshop, monitor)


async def train(project: Project, folder: Path, monitor: Monitor | None = None) -> Report:
    """Train, or go on training, the run at `folder`.

    Raises RunStopped after a budget or an interrupt ended it early: what was learned until then is in the folder.
    """
    async with open_workshop(project, folder) as workshop:
        training = make_training(workshop, monitor or Silent())
        try:
            await training.run()
        except BaseExceptionGroup as group:
            reason = cause_of(group)
            if not isinstance(reason, BudgetExhausted | RunStopped):
                raise reason from group
            await training.finish(stopped=reason)
            raise RunStopped(reason.message, hint=reason.hint) from group
        return await training.finish()
