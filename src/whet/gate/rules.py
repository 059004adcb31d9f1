"""The rules by name. Each is a pure state machine: it asks for plays until it can rule."""

from __future__ import annotations

from collections.abc import Sequence

from whet.core import ConfigError
from whet.gate.evidence import Rule
from whet.gate.metrics import Metric
from whet.gate.paired import PairedRule
from whet.gate.strict import OffRule, StrictRule

RULES = ("paired", "strict", "off")


def make_rule(
    name: str,
    *,
    tasks: Sequence[str],
    metric: str = Metric.HARD,
    mix: float = 0.5,
    best: float | None = None,
    level: float = 0.025,
    max_passes: int = 6,
    seed: int = 0,
    chunk: int = 0,
    first_sample: int = 0,
) -> Rule:
    """The rule of this name over these tasks.

    `best` is the best score so far, where that is not the incumbent's (strict, off). `chunk` is how many tasks are
    asked for between two looks; 0 lets the rule choose, and as many as there are tasks asks for a whole pass at once.
    `level`, `max_passes` and `seed` are for paired, and so is `first_sample`: samples of the incumbent from there on
    were not looked at when it was chosen.
    """
    if not tasks:
        raise ConfigError("the gate has no selection tasks", hint="Give the world a selection split.")
    if chunk < 0:
        raise ConfigError(f"gate.chunk is {chunk}", hint="It is the number of tasks to ask for at once, or 0.")
    match name:
        case "paired":
            return PairedRule(
                tasks,
                metric,
                mix,
                level=level,
                max_passes=max_passes,
                seed=seed,
                chunk=chunk,
                first_sample=first_sample,
            )
        case "strict":
            return StrictRule(tasks, metric, mix, best, chunk)
        case "off":
            return OffRule(tasks, metric, mix, best, chunk)
        case _:
            raise ConfigError(f"gate.rule is {name!r}", hint=f"It is one of: {', '.join(RULES)}.")
