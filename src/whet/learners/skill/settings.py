"""How the skill lever learns."""

from __future__ import annotations

from enum import StrEnum

import msgspec


class Schedule(StrEnum):
    CONSTANT = "constant"
    LINEAR = "linear"
    COSINE = "cosine"
    NONE = "none"


class SkillSettings(msgspec.Struct, frozen=True, omit_defaults=True, forbid_unknown_fields=True):
    path: str = "skill"
    """The skill to start from: a folder with SKILL.md, or a markdown file. Missing: an empty one."""
    minibatch_size: int = 8
    """Trajectories that one reflection reads."""
    merge_size: int = 8
    """Patches that one merge joins; at least 2."""
    learning_rate: int = 4
    """Edits that a step may make at most."""
    min_learning_rate: int = 2
    """Edits that a schedule comes down to."""
    schedule: Schedule = Schedule.COSINE
    """How the edit budget shrinks from learning_rate to min_learning_rate; none sets no limit."""
    failure_only: bool = False
    """Reflect on failures alone."""

    def __post_init__(self) -> None:
        for name, least in (("minibatch_size", 1), ("merge_size", 2), ("learning_rate", 0), ("min_learning_rate", 0)):
            if getattr(self, name) < least:
                raise ValueError(f"`{name}` is at least {least}")
