"""How the skill lever learns."""

from __future__ import annotations

from enum import StrEnum

import msgspec


class Teacher(StrEnum):
    OPTIMIZER = "optimizer"
    DEMONSTRATIONS = "demonstrations"


class Search(StrEnum):
    GREEDY = "greedy"
    PARETO = "pareto"


class Schedule(StrEnum):
    CONSTANT = "constant"
    LINEAR = "linear"
    COSINE = "cosine"
    AUTONOMOUS = "autonomous"
    NONE = "none"


class UpdateMode(StrEnum):
    PATCH = "patch"
    REWRITE = "rewrite"
    FULL_REWRITE = "full_rewrite"


class PairPolicy(StrEnum):
    MIXED = "mixed"
    CHANGED = "changed"
    UNCHANGED = "unchanged"


class AppendixSource(StrEnum):
    BOTH = "both"
    FAILURE_ONLY = "failure_only"


class SkillSettings(msgspec.Struct, frozen=True, omit_defaults=True, forbid_unknown_fields=True):
    path: str = "skill"
    """The skill to start from: a folder with SKILL.md, or a markdown file. Missing: an empty one."""
    teacher: Teacher = Teacher.OPTIMIZER
    """optimizer: a model reads what happened; demonstrations: verified examples and rules from verdicts, no model."""
    search: Search = Search.GREEDY
    """greedy: one current policy; pareto: all that are best at some selection task, joined at ends of epochs."""
    examples: int = 12
    """Examples that demonstrations may hold at once."""
    try_renderings: bool = False
    """demonstrations: try each candidate as chat and as plain text, and take the more promising (local models)."""
    prompts: str = ""
    """A folder whose NAME.md files replace whet's prompts of the same name; they may use the same inputs."""
    minibatch_size: int = 8
    """Trajectories that one reflection reads."""
    merge_size: int = 8
    """Patches that one merge joins; at least 2."""
    failure_only: bool = False
    """Reflect on failures alone."""
    update: UpdateMode = UpdateMode.PATCH
    """patch: edits; rewrite: suggestions, then the document anew; full_rewrite: each reflection writes it anew."""
    learning_rate: int = 4
    """Edits that a step may make at most."""
    min_learning_rate: int = 2
    """Edits that a schedule comes down to."""
    schedule: Schedule = Schedule.COSINE
    """How the edit budget shrinks; autonomous: the optimizer says each time; none: no limit."""
    slow_update: bool = True
    """At the end of each epoch but the first, compare with the epoch before and write guidance."""
    slow_samples: int = 20
    """Train tasks that are compared at the end of an epoch."""
    slow_gate: bool = True
    """Guidance must pass the gate like a step; false puts it in unconditionally, never into the best."""
    pairs: PairPolicy = PairPolicy.MIXED
    """Which comparisons are shown: mixed: all; changed: improved and regressed ones, topped up; unchanged: the rest."""
    memory: bool = True
    """Distil the same comparisons into a memory that later optimizer calls are given. The agent never sees it."""
    skill_aware: bool = False
    """Tell defects of the skill from lapses of the agent, and answer lapses with reminders in an appendix."""
    appendix_source: AppendixSource = AppendixSource.BOTH
    """Whose reminders are taken: both, or failure_only."""
    consolidate_above: int = 0
    """Reminders above which one call compacts them; 0 never does."""
    max_tokens: int = 0
    """Tokens that the skill may have (four letters count as one); 0 sets no limit."""
    tidy: bool = False
    """At the end of each epoch, ask what can go; it goes if the selection tasks lose nothing by it."""
    try_edits: int = 0
    """Tasks, of those it came from, that each edit is tried on alone; what helps with none is left out. 0: no trial."""
    proposals: int = 1
    """Candidates a step, from different minibatches; the most promising on a small sample goes to the gate."""
    screen_tasks: int = 8
    """Train tasks of the step's own batch on which several candidates are compared."""

    def __post_init__(self) -> None:
        least = {
            "examples": 0,
            "minibatch_size": 1,
            "merge_size": 2,
            "learning_rate": 0,
            "min_learning_rate": 0,
            "slow_samples": 1,
            "consolidate_above": 0,
            "max_tokens": 0,
            "try_edits": 0,
            "proposals": 1,
            "screen_tasks": 1,
        }
        if self.search is Search.PARETO and self.skill_aware:
            raise ValueError('`search` = "pareto" has no one skill to put reminders into: set `skill_aware` = false')
        if self.try_edits and self.update is not UpdateMode.PATCH:
            raise ValueError('`try_edits` tries edits one by one: set `update` = "patch", or `try_edits` = 0')
        for name, value in least.items():
            if getattr(self, name) < value:
                raise ValueError(f"`{name}` is at least {value}")
