"""The edit budget of a step: a learning rate, in edits."""

from __future__ import annotations

import math

from whet.learners.skill.settings import Schedule, SkillSettings, UpdateMode


def edit_budget(settings: SkillSettings, step: int, total: int) -> int | None:
    """Edits that step `step` of `total` (counted from 1) may make; None: no limit, or one asked for later."""
    most = settings.learning_rate
    least = min(most, settings.min_learning_rate)
    if settings.schedule in (Schedule.NONE, Schedule.AUTONOMOUS) or settings.update is UpdateMode.FULL_REWRITE:
        return None
    if settings.schedule is Schedule.CONSTANT or total <= 1:
        return most
    x = step / total
    if settings.schedule is Schedule.LINEAR:
        value = most + (least - most) * x
    else:
        value = least + (most - least) * (1.0 + math.cos(math.pi * x)) / 2.0
    return max(least, round(value))
