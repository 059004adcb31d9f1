"""From what stands on the command line to a project, with everything checked before anything is written."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from whet.core import InputError, Split
from whet.learners.skill import Teacher
from whet.project import is_reference
from whet.training import CONFIG_FILE, Config, Project, find_run, load_config, prepare
from whet.training.adapting import require_trainable
from whet.training.config import Lever


def config_file(path: Path) -> Path:
    """CONFIG may be the file, or the folder that it is in."""
    return path / CONFIG_FILE if path.is_dir() else path


def names_config(world: str) -> bool:
    """Whether a world is given by its configuration rather than by its name."""
    return world.endswith(".toml") or (config_file(Path(world)).is_file() and not is_reference(world))


def load_project(config: Path, overrides: Sequence[str] = (), *, agent: bool = True) -> Project:
    """Without `agent`, for commands that ask no model but the judge."""
    path = config_file(config)
    return prepare(load_config(path, overrides), path.parent, agent=agent)


def load_for_training(config: Path, overrides: Sequence[str] = ()) -> Project:
    """As `load_project`, and what only a training needs: whoever teaches, and tasks in every split that it plays."""
    project = load_project(config, overrides)
    settings: Config = project.config
    levers = settings.train.levers
    if Lever.SKILL in levers and settings.skill.teacher is Teacher.OPTIMIZER:
        project.models.check("optimizer", settings.optimizer, settings.budget)
    if Lever.ADAPTER in levers:
        require_trainable(project)
    for split in (Split.TRAIN, Split.SELECTION, *([Split.TEST] if settings.train.test else [])):
        project.tasks(split)
    return project


def find_folder(project: Path, run: str | None) -> Path:
    """The folder of a run by name or path; the latest without a name."""
    if not project.is_dir():
        raise InputError(f"there is no folder {project}")
    return find_run(project, run)
